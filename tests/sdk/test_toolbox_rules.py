"""What a resilient call does next: side effects, attempts, severity, evolution. Pure decisions."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.executors.protocol import (
    ToolFailedError,
    ToolRefusedError,
    rejected_input,
    timed_out,
)
from aftercall.models import ExecutionError, Promotion, RankedTool, Tool, ToolAnnotations, ToolSpec
from aftercall.outcomes import make_error
from aftercall.toolbox.resolver import as_tool, entry_for, in_place_of
from aftercall.toolbox.rules import (
    LocalCandidate,
    ResilientRules,
    are_near,
    may_have_had_effect,
    outcome_of,
    severity_of,
)

READS = ToolAnnotations(read_only_hint=True)
NONE = ToolAnnotations()


def tool(tool_id: str, annotations: ToolAnnotations = READS, **fields: Any) -> Tool:
    return as_tool(tool_id, ToolSpec(name=tool_id, annotations=annotations, **fields))


def failed(kind: str = "ValueError", *, ran: bool = True) -> ToolFailedError:
    return ToolFailedError(make_error(kind, "went wrong"), ran=ran)


def rules(*tools: Tool, **options: Any) -> ResilientRules:
    settings = {"max_attempts": 5, "may_repeat": False, "trust_annotations": True} | options
    candidates = [LocalCandidate(each, 0.5, runs_here=True) for each in tools]
    return ResilientRules(candidates, **settings)


def play(plan: ResilientRules, *endings: ToolFailedError | None) -> list[str]:
    """Who was tried, in order, when attempts end so."""
    tried = []
    for ending in endings:
        candidate = plan.next_candidate()
        if candidate is None:
            break
        tried.append(candidate.tool.tool_id)
        plan.end_attempt(candidate, ending)
    while plan.next_candidate() is not None:
        raise AssertionError("somebody else would have been tried")
    return tried


@pytest.mark.parametrize(
    ("annotations", "failure", "options", "goes_on"),
    [
        (NONE, failed(), {}, False),
        (NONE, timed_out(1, ""), {}, False),
        (NONE, rejected_input("no"), {}, True),
        (NONE, ToolRefusedError("not here"), {}, True),
        (NONE, failed(), {"may_repeat": True}, True),
        (READS, failed(), {}, True),
        (READS, failed(), {"trust_annotations": False}, False),
        (READS, failed(), {"trust_annotations": False, "may_repeat": True}, True),
        (ToolAnnotations(idempotent_hint=True), failed(), {}, True),
        (ToolAnnotations(read_only_hint=False), failed(), {}, False),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), failed(), {}, False),
        (ToolAnnotations(destructive_hint=False), failed(), {}, False),
        (ToolAnnotations(open_world_hint=False), failed(), {}, False),
    ],
)
def test_no_other_tool_is_tried_after_a_possible_side_effect(
    annotations: ToolAnnotations,
    failure: ToolFailedError,
    options: dict[str, Any],
    *,
    goes_on: bool,
) -> None:
    """Unless the tool did not run, says that it only reads, or the caller vouches."""
    plan = rules(tool("a", annotations), tool("b"), **options)
    assert play(plan, failure, failed()) == (["a", "b"] if goes_on else ["a"])
    if not goes_on:
        assert "may have had an effect" in plan.explain_end()
        assert "may_repeat=True" in plan.skipped[0].why
        assert plan.to_evolve() is None


def test_nobody_is_tried_twice_and_nobody_whom_nothing_runs() -> None:
    """One version written in two ways is one."""
    twice = [tool("a", version="1.2"), tool("a", version="1.2.0"), tool("a", version="1.3.0")]
    candidates = [LocalCandidate(each, 0.9, runs_here=True) for each in twice]
    candidates.append(LocalCandidate(tool("b"), 0.1, runs_here=False))
    plan = ResilientRules(candidates, max_attempts=5, may_repeat=False, trust_annotations=True)
    assert play(plan, failed(), failed(), failed()) == ["a", "a"]
    assert {each.why for each in plan.skipped} == {
        "it was tried already", "no executor here runs it",
    }  # fmt: skip


kinds = st.sampled_from(["success", "failed", "rejected", "refused"])


def ending(kind: str) -> ToolFailedError | None:
    endings = {
        "failed": failed(),
        "rejected": rejected_input("x"),
        "refused": ToolRefusedError("x"),
    }
    return endings.get(kind)


@given(st.lists(st.tuples(st.booleans(), kinds), max_size=8), st.integers(1, 5), st.booleans())
def test_a_possible_effect_is_always_the_last_thing_that_happens(
    plan_of: list[tuple[bool, str]], most: int, may_repeat: bool
) -> None:
    """And nobody is lost: each candidate is tried or skipped, at most `most` run."""
    tools = [tool(f"t{n}", READS if reads else NONE) for n, (reads, _) in enumerate(plan_of)]
    plan = rules(*tools, max_attempts=most, may_repeat=may_repeat)
    endings = {f"t{n}": ending(kind) for n, (_, kind) in enumerate(plan_of)}
    while (candidate := plan.next_candidate()) is not None:
        plan.end_attempt(candidate, endings[candidate.tool.tool_id])
    assert len(plan.tried) + len(plan.skipped) == len(tools)
    assert sum(failure is None or failure.ran for _, failure in plan.tried) <= most
    for candidate, failure in plan.tried[:-1]:
        assert failure is not None
        assert may_repeat or not may_have_had_effect(candidate.tool, failure)
    assert outcome_of(None) == "success"


@pytest.mark.parametrize(
    ("error", "severity"),
    [
        (ExecutionError(type="Timeout", message=""), "low"),
        (ExecutionError(type="ApiError", message="", code="429"), "low"),
        (ExecutionError(type="ConnectionRefusedError", message=""), "low"),
        (ExecutionError(type="IndexError", message=""), "medium"),
        (ExecutionError(type="ExitStatus", message="", code="1"), "medium"),
        (ExecutionError(type="SyntaxError", message=""), "high"),
        (ExecutionError(type="ModuleNotFoundError", message=""), "high"),
        (ExecutionError(type="Killed", message="", code="SIGSEGV"), "high"),
    ],
)
def test_severity_follows_the_stated_rule(error: ExecutionError, severity: str) -> None:
    """What may pass is low, what is broken whatever the input is high."""
    assert severity_of(error) == severity


PROMOTION = Promotion(
    evolved_version="1.1.0",
    evolved_file="tools/t_v1_1.py",
    original_version="1.0.0",
    promoted_at=datetime(2024, 1, 15, tzinfo=UTC),
)


def test_a_promotion_without_a_file_means_a_registered_tool() -> None:
    """One that evolved from the original, of that version; without it nothing else is run."""
    bare = PROMOTION.model_copy(update={"evolved_file": None})
    newer = tool("t2", version="1.1", evolved_from="t")
    assert in_place_of(tool("t"), bare, [tool("x"), newer]).tool_id == "t2"
    with pytest.raises(ConfigurationError, match="without a file"):
        in_place_of(tool("t"), bare, [tool("x"), tool("t2", version="1.2", evolved_from="t")])


@pytest.mark.parametrize(
    ("fields", "key", "is_found"),
    [
        ({}, "t", True), ({"namespace": "n"}, "n", True),
        ({"namespace": "n", "version": "1.0"}, "n", True),
        ({"namespace": "n", "version": "2.0"}, "n", False),
        ({"namespace": "n", "evolved_from": "o"}, "n", False), ({}, "n", False),
    ],
)  # fmt: skip
def test_an_entry_is_found_by_id_or_namespace(
    fields: dict[str, Any], key: str, is_found: bool
) -> None:
    """In a namespace only for the original of that version."""
    assert entry_for(tool("t", **fields), {key: PROMOTION}) is (PROMOTION if is_found else None)


def ranked(tool_id: str, similarity: float, **fields: Any) -> RankedTool:
    factors = {"base": similarity, "similarity": similarity, "quality": 1, "failureDemotion": 1}
    return RankedTool(
        tool=tool(tool_id, **fields), score=similarity, source="semantic", factors=factors
    )


def test_a_tool_of_another_job_is_not_run_after_a_failure() -> None:
    """One that counts words does not do for one that reverses them; a namespace is one job."""
    reverse, count = ranked("reverse", 0.7), ranked("wordcount", 0.32)
    assert are_near([reverse, ranked("mirror", 0.5), count], 0.2) == [True, True, False]
    same = [ranked("a", 0.7, namespace="n"), ranked("b", 0.32, namespace="n")]
    assert are_near(same, 0.2) == [True, True]
    assert are_near([ranked("far", 0.1)], 0.2) == [False]
