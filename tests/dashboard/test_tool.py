"""Tools: which are listed, their versions, and what a tool's page reads from a store."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from aftercall.models import Tool, ToolName, ToolStatistics
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.knowledge.rows.statistics import ToolTrials as Remembered
from retrieval.knowledge.rows.statistics import trial_of
from service.api.health import read_health
from service.context import Space
from service.dashboard.tool import UNNAMED, read_evidence, version_rows
from service.dashboard.tools import with_never_called
from tests.dashboard.made import NOW
from tests.dashboard.test_look import look
from tests.dashboard.test_pattern import learned, repaired
from tests.service.fitness_client import fresh
from tests.service.running_service import RunningService, hashing_settings, on_loop, running

TOOL = ToolKey("default", "calc", "sum")


def registered(tool_id: str, name: str = "sum", days: int = 0, **fields: Any) -> StoredTool:
    """A registered tool."""
    at = NOW + timedelta(days=days)
    tool = Tool(tool_id=tool_id, name=name, updated_at=at, **{"server_name": "calc", **fields})
    return StoredTool("default", tool)


def test_tools_that_were_never_called_come_last() -> None:
    """By id; those that were called are there once, and the latest put of several of one name."""
    called = [
        ToolStatistics(tool=ToolName(server_name="calc", tool_name="sum"), successes=1),
        ToolStatistics(tool=ToolName(tool_name="calc/max"), successes=1),
    ]
    found = with_never_called(
        called,
        [registered("z", "min", days=1), registered("s"), registered("a", "max"),
         registered("old", "min")],
    )  # fmt: skip
    assert [each.tool.tool_name for each in found] == ["sum", "calc/max", "max", "min"]
    assert found[-1].tool.tool_id == "z"


def remembered(*calls: tuple[str | None, bool, int]) -> Remembered:
    """Calls: the version, whether they succeeded, and how many hours ago."""
    known = Remembered()
    for number, (version, succeeded, hours) in enumerate(calls):
        at = NOW - timedelta(hours=hours)
        trial = trial_of(at, str(number), "success" if succeeded else "failure")
        known.version_to_update(version).add(trial, at)
    return known


def test_each_version_has_its_own_record() -> None:
    """The latest used first; quality falls with failures."""
    known = remembered(("1.0", False, 9), ("1.0", True, 8), ("1.1", True, 1), (None, True, 20))
    rows = version_rows(TOOL, [], known, NOW)
    assert [(row["version"], row["successes"], row["failures"]) for row in rows] == [
        ("1.1", 1, 0), ("1.0", 1, 1), (UNNAMED, 1, 0),
    ]  # fmt: skip
    assert float(str(rows[0]["quality"])) == 1.0
    assert 0 < float(str(rows[1]["quality"])) < 1


def test_registered_ids_stand_with_their_versions() -> None:
    """`1.0` and `1.0.0` are one version; tools of other names are no versions of it."""
    rows = version_rows(
        TOOL,
        [
            registered("sum-1", version="1.0.0"),
            registered("sum-2", version="2.0.0"),
            registered("x", "max", version="1.0"),
        ],
        remembered(("1.0", True, 1)),
        NOW,
    )
    assert [(row["version"], row["ids"], row["successes"]) for row in rows] == [
        ("1.0", "sum-1", 1), ("2.0.0", "sum-2", 0),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("evidence"))) as started:
        yield started


def test_what_is_known_of_a_tool_is_read_together(service: RunningService) -> None:
    """Versions, fitness, marks, what it is not offered for, and the block that agents get."""
    tool, tool_id = fresh("tool"), fresh("id")
    spec = {
        "name": tool, "serverName": "s", "version": "1.0.0", "negativeTags": ["not-for-code"],
    }  # fmt: skip
    service.client.put(f"/tools/{tool_id}", json=spec).raise_for_status()
    mark = {"scenario": "x", "errorMessage": "y", "negativeTags": ["not-for-tables"]}
    service.client.post(f"/tools/{tool_id}/failures", json=mark).raise_for_status()
    learned(service, *repaired(tool, 1, toolVersion="1.0.0"))
    health = on_loop(service, read_health(Space(service.context, "default"), tool_id))
    found = on_loop(service, read_evidence(look("7d", context=service.context), health))
    [version] = found["versions"]
    assert (version["version"], version["ids"], version["successes"]) == ("1.0.0", tool_id, 1)
    [(namespace, best)] = found["fitness"]
    [original] = best.candidates
    assert (namespace, original.source) == (tool_id, "original")
    assert 0.9 <= original.factors.base < 1
    assert found["not_for"] == ["not-for-code", "not-for-tables"]
    assert [each.error_message for each in found["marks"]] == ["y"]
    assert f'name="{tool}"' in found["known_text"]


@pytest.mark.parametrize(
    "address",
    ["/tool", "/tool?server=s", "/tool?name=nobody", "/tool?server=nowhere&name=rag_query",
     "/tools/nobody"],
)  # fmt: skip
def test_what_nobody_called_is_unknown(service: RunningService, address: str) -> None:
    """Also no name at all, under which the workspace's own knowledge is kept."""
    learned(service, *repaired(fresh("tool"), 1))
    answer = service.client.get(f"/dashboard{address}")
    assert answer.status_code == 404
    assert "There is no tool" in answer.text
