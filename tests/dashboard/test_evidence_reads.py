"""What shows a pattern and a tool, read from a real store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from aftercall.models import FailurePattern, ToolName
from mongo.records import PatternRow
from retrieval.fitness.registry import UnknownToolError
from retrieval.knowledge.documents import document_id
from retrieval.patterns import Pattern, encoded, mark_of
from service.dashboard.repair_reads import evidence_of, examples_of
from service.dashboard.tool_reads import ToolEvidence, health_of, tool_evidence
from tests.service.fitness_client import fresh
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SIGNATURE = "Invalid parameter: topK must be <= <n>"
GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("evidence"))) as started:
        yield started


def learned(service: RunningService, *records: dict[str, Any]) -> None:
    """Record, and wait until it is learned."""
    assert service.record(list(records)).status_code == 202
    eventually(lambda: service.client.get("/status").json()["pendingIndexing"] == 0)


def repaired(tool: str, minute: int, **fields: Any) -> list[dict[str, Any]]:
    """A failure, and the success that mended it a second later."""
    called = {"toolName": tool, "serverName": "s", "sessionId": fresh("session"), **fields}
    before, after = (f"2026-03-01T12:{minute:02}:0{second}Z" for second in (0, 1))
    return [
        failure(**called, timestamp=before),
        execution(**called, timestamp=after, attempt=2, parameters={"query": "x", "topK": 10}),
    ]


def pattern(service: RunningService, tool: str, *examples: str) -> FailurePattern:
    """The pattern of the tool's failures, as a nightly run leaves it."""
    kept = Pattern(
        pattern_id=fresh("pattern"), server_name="s", tool_name=tool,
        category="invalid_parameters", leader=SIGNATURE, execution_ids=list(examples), count=1,
    )  # fmt: skip
    kept.set_marks({mark_of(document_id("default", "reflection", "s", tool, SIGNATURE))})
    row = PatternRow("default", kept.pattern_id, encoded(kept), AT, 1)
    on_loop(service, service.context.store.put_patterns("default", [row]))
    return FailurePattern(
        pattern_id=kept.pattern_id, tool=ToolName(server_name="s", tool_name=tool),
        category=kept.category, signature=SIGNATURE, count=1, examples=list(examples),
    )  # fmt: skip


def test_a_pattern_has_its_repairs_examples_and_rules(service: RunningService) -> None:
    """The latest first; what has expired is counted."""
    tool = fresh("tool")
    first, second = repaired(tool, 1), repaired(tool, 2)
    learned(service, *first, *second)
    failed = [each[0]["executionId"] for each in (first, second)]
    found = on_loop(
        service, evidence_of(service.services, "default", pattern(service, tool, GONE, *failed))
    )
    assert [each.failed.execution_id for each in found.repairs] == failed[::-1]
    assert [each.execution_id for each in found.examples] == failed[::-1]
    assert (found.gone, found.repairs_gone) == (1, 0)
    assert found.repairs[0].changes == ("replace /topK: 50 -> 10",)
    assert [each.repairs for each in found.rules] == [2]


def test_repairs_of_another_kind_of_failure_are_left_out(service: RunningService) -> None:
    """Though they are the same tool's."""
    tool = fresh("tool")
    other = repaired(tool, 1)
    other[0]["error"] = {"message": "Invalid parameter: topK must be a multiple of ten"}
    learned(service, *other)
    found = on_loop(service, evidence_of(service.services, "default", pattern(service, tool)))
    assert (found.repairs, found.rules, found.examples) == ((), (), ())


def test_many_patterns_have_an_example_each(service: RunningService) -> None:
    """A repair where there is one, else a failed call, else nothing."""
    mended, failed, nothing = fresh("tool"), fresh("tool"), fresh("tool")
    alone = failure(toolName=failed, serverName="s")
    learned(service, *repaired(mended, 1), alone)
    patterns = [
        pattern(service, mended),
        pattern(service, failed, alone["executionId"]),
        pattern(service, nothing, GONE),
    ]
    found = on_loop(service, examples_of(service.services, "default", patterns))
    of_mended, of_failed, of_nothing = (found[each.pattern_id] for each in patterns)
    assert of_mended.repair is not None
    assert of_failed.failed is not None
    assert of_failed.failed.execution_id == alone["executionId"]
    assert (of_nothing.repair, of_nothing.failed) == (None, None)


def test_a_tool_is_found_by_id_and_by_the_names_of_its_calls(service: RunningService) -> None:
    """Both lead to the same one, with what is known of it."""
    tool, tool_id = fresh("tool"), fresh("id")
    spec = {"name": tool, "serverName": "s", "version": "1.0.0"}
    service.client.put(f"/tools/{tool_id}", json=spec).raise_for_status()
    learned(service, *repaired(tool, 1, toolVersion="1.0.0"))

    async def read(**asked: str) -> Any:
        where = {"tool_id": "", "server": "", "name": "", **asked}
        health = await health_of(service.services, "default", **where)
        return health, await tool_evidence(service.services, "default", health)

    by_id, evidence = on_loop(service, read(tool_id=tool_id))
    by_name, same = on_loop(service, read(server="s", name=tool))
    assert by_id.tool == by_name.tool
    assert [each.tool_ids for each in same.versions] == [(tool_id,)]
    [version] = evidence.versions
    assert (version.version, version.tool_ids) == ("1.0.0", (tool_id,))
    assert (version.successes, version.failures) == (1, 1)
    [fitness] = evidence.fitness
    assert (fitness.source, fitness.base) == ("original", 0.9)
    assert f'name="{tool}"' in evidence.known_text


def test_what_a_tool_is_not_to_be_offered_for_is_told(service: RunningService) -> None:
    """As it is registered, and as marks of its failures say; it keeps its fitness otherwise."""
    tool_id = fresh("id")
    spec = {"name": fresh("tool"), "negativeTags": ["not-for-code"]}
    service.client.put(f"/tools/{tool_id}", json=spec).raise_for_status()
    mark = {"scenario": "x", "errorMessage": "y", "negativeTags": ["not-for-tables"]}
    service.client.post(f"/tools/{tool_id}/failures", json=mark).raise_for_status()
    eventually(lambda: service.client.get("/status").json()["pendingIndexing"] == 0)

    async def read() -> ToolEvidence:
        health = await health_of(service.services, "default", tool_id=tool_id, server="", name="")
        return await tool_evidence(service.services, "default", health)

    evidence = on_loop(service, read())
    assert evidence.not_for == ("not-for-code", "not-for-tables")
    assert [each.tool_id for each in evidence.fitness] == [tool_id]
    assert [each.error_message for each in evidence.marks] == ["y"]


@pytest.mark.parametrize(
    ("server", "name"), [("", ""), ("s", ""), ("", "nobody"), ("nowhere", "rag_query")]
)
def test_what_nobody_called_is_unknown(service: RunningService, server: str, name: str) -> None:
    """Also no name at all, under which the workspace's own knowledge is kept."""
    learned(service, *repaired(fresh("tool"), 1))
    with pytest.raises(UnknownToolError):
        on_loop(
            service, health_of(service.services, "default", tool_id="", server=server, name=name)
        )
