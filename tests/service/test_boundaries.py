"""`GET /boundaries` over HTTP, of a running service that clusters in the background."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aftercall.models import Boundaries
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import (
    RunningService,
    eventually,
    failure,
    hashing_settings,
    running,
)


def a_referral(tool: str, *axes: str) -> dict[str, Any]:
    details = {"boundaryAxes": list(axes), "evidence": "only JSON is read here"}
    error = {"type": "wrong_tool_boundary", "message": "not my job", "details": details}
    now = datetime.now(UTC).isoformat()
    return failure(toolName=tool, serverName=None, error=error, timestamp=now)


def boundaries_of(service: RunningService, **query: Any) -> dict[str, Any]:
    response = service.client.get("/boundaries", params=query)
    assert response.status_code == 200, response.text
    Boundaries.model_validate_json(response.content)
    found: dict[str, Any] = response.json()
    return found


def clustered(service: RunningService) -> dict[str, Any]:
    """The boundaries, once all axes are clustered."""
    Fitness(service).learned()

    def done() -> dict[str, Any] | None:
        found = boundaries_of(service, limit=1000)
        return found if found["clusteredAt"] and not found["unclustered"] else None

    return eventually(done)


def test_axes_are_clustered_and_a_tool_of_two_jobs_is_told(service: RunningService) -> None:
    """Wordings of one axis are members of one cluster; what is named together co-occurs."""
    tool, other = fresh("read_page"), fresh("fetch_page")
    for axis in ["HTML_table_extraction"] * 3 + ["extracting HTML tables"] * 2:
        assert service.record(a_referral(tool, axis, "transport")).status_code == 202
    assert service.record(a_referral(other, "Transport")).status_code == 202
    found = clustered(service)
    clusters = {each["name"]: each for each in found["clusters"]}
    tables = clusters["html table extraction"]
    assert {(each["axis"], each["count"]) for each in tables["members"]} == {
        ("HTML_table_extraction", 3),
        ("extracting HTML tables", 2),
    }
    assert [each["toolName"] for each in tables["tools"]] == [tool]
    transport = clusters["transport"]
    assert transport["count"] == 6
    assert {each["toolName"] for each in transport["tools"]} == {tool, other}
    [pair] = [each for each in found["coOccurrences"] if "transport" in each["names"]]
    assert (set(pair["clusterIds"]), pair["count"]) == (
        {tables["clusterId"], transport["clusterId"]},
        5,
    )
    told = {each["tool"]["toolName"]: each["cohesion"] for each in found["tools"]}
    assert told[tool]["warning"]
    assert "html table extraction (100%) and transport (100%)" in told[tool]["message"]
    assert not told[other]["warning"]


def test_the_answer_is_bounded(service: RunningService) -> None:
    """A thousand axes of one agent are remembered, and told as far as is asked for."""
    tool = fresh("hostile")
    axes = [f"{fresh('axis')}" for _ in range(200)]
    for start in range(0, 200, 20):
        service.record(a_referral(tool, *axes[start : start + 20]))
    Fitness(service).learned()
    found = boundaries_of(service, limit=5)
    assert len(found["clusters"]) == len(found["coOccurrences"]) == 5
    assert len(found["tools"]) <= 5


def test_when_a_tool_is_warned_of_is_a_setting(tmp_path: Path) -> None:
    """Two referrals are enough where they are said to be."""
    rules = {"min_failures": 2, "min_confidence": 0.5}
    with running(hashing_settings(tmp_path, boundaries=rules)) as service:
        for _ in range(2):
            service.record(a_referral("read_page", "transport", "extraction"))
        Fitness(service).learned()
        cohesion = service.client.get("/tools/read_page/health").json()["cohesion"]
        found = service.client.get("/recommendations").json()["recommendations"]
        [bounded] = boundaries_of(service)["tools"]
        known = service.client.get("/known-tools").text
        [listed] = service.client.get("/stats/tools").json()["tools"]
    assert (cohesion["failures"], cohesion["warning"]) == (2, True)
    assert "split" in {each["kind"] for each in found}
    assert listed["cohesionWarning"]
    assert bounded["cohesion"]["warning"]
    assert "Consider splitting the tool" in known


def test_clusters_outlive_the_service(tmp_path: Path) -> None:
    """Ids and names are those of before; axes that came to nothing before the end are clustered."""
    settings = hashing_settings(tmp_path)
    with running(settings) as service:
        assert boundaries_of(service)["clusters"] == []
        service.record(a_referral("read_page", "transport", "extraction"))
        before = clustered(service)
        service.record(a_referral("read_page", "payment"))
        Fitness(service).learned()
    with running(settings) as service:
        after = clustered(service)
    ids = {each["name"]: each["clusterId"] for each in after["clusters"]}
    assert {each["name"]: each["clusterId"] for each in before["clusters"]}.items() <= ids.items()
    assert "payment" in ids
