"""Lessons of patterns: what holds for all of a pattern's calls, and what was only seen."""

from typing import Any

from retrieval.knowledge.patterns.lessons import lesson_of_pattern
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.rewrites.edits import Clamp, Edit, Remove, Rename, Replace
from tests.retrieval.known_tools.made_records import knowledge, mended, record, tool
from tests.retrieval.patterns.failures import clustered, failure

SAID = "Invalid parameter: topK must be <= <n>, got <n>"


def lesson(
    *repairs: tuple[list[Edit], int],
    fault: FaultKind | None = "out_of_range",
    schema: dict[str, Any] | None = None,
) -> str:
    """The lesson where each of these edits mended so many failures of one wording."""
    known = knowledge()
    for edits, times in repairs:
        sessions = [f"s{number}" for number in range(times)]
        mended(known, SAID, edits, sessions=sessions)
    if fault is not None:
        known.signatures[next(iter(known.signatures))].faults = {"topK": fault}
    registered = tool(schema=schema) if schema is not None else None
    [pattern] = clustered([], failures := [failure(1, SAID)])
    return lesson_of_pattern(pattern, failures, record(registered, knowledge=known)).lesson


def test_a_number_of_one_call_is_no_lesson_for_another() -> None:
    """Told is what held for all: the bounds."""
    replaced: list[Edit] = [Replace(name="topK", before=100, value=1)]
    assert lesson((replaced, 3)) == "`topK` must be within the stated bounds."


def test_bounds_that_the_schema_states_are_told() -> None:
    """They are the tool's own."""
    schema = {
        "type": "object",
        "properties": {"topK": {"type": "integer", "minimum": 1, "maximum": 10}},
    }
    clamped: list[Edit] = [Clamp(name="topK")]
    assert lesson((clamped, 3), schema=schema) == "`topK` must be at least 1 and at most 10."


def test_a_call_that_worked_without_a_parameter_does_not_forbid_it() -> None:
    """Only a parameter that the tool does not have is to be left out."""
    left_out: list[Edit] = [Remove(name="topK")]
    assert lesson((left_out, 3)) == (
        "`topK` must be within the stated bounds. Without `topK` the call worked."
    )
    assert lesson((left_out, 3), fault=None) == "Without `topK` the call worked."
    assert lesson((left_out, 3), fault="unexpected") == "Leave out `topK`."


def test_a_value_that_worked_is_told_as_seen_and_after_what_is_general() -> None:
    """However often it was; a general correction comes first."""
    replaced: list[Edit] = [Replace(name="topK", before="many", value="all")]
    seen = '`topK` must be one of the allowed values. For `topK`, "all" worked instead of "many".'
    assert lesson((replaced, 4), fault="not_allowed") == seen
    renamed: list[Edit] = [Rename(name="top", to="topK")]
    general = "The parameter is called `topK`, not `top`."
    assert lesson((replaced, 4), (renamed, 2), fault="not_allowed") == general
