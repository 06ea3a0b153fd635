"""Calls as text: bounded, visible, whole where they fit."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import Operation, apply
from aftercall.models import Execution, ExecutionError
from service.dashboard.shown.call_text import (
    MAX_CHANGES,
    MAX_PARAMETERS,
    changes_between,
    one_line,
    patch_of,
    shown_call,
    visible,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def execution(**fields: Any) -> Execution:
    """A failed call, as it is stored."""
    made = {
        "execution_id": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "timestamp": AT,
        "agent": "librarian",
        "tool_name": "rag_query",
        "parameters": {"query": "reflection", "topK": 50},
        "outcome": "failure",
        "error": ExecutionError(type="ValueError", message="too many", code="E7"),
        **fields,
    }
    return Execution.model_validate(made)


def test_a_call_is_shown_with_its_parameters_error_and_context() -> None:
    """Parameters as JSON that can be read back, the error with its type and code."""
    shown = shown_call(execution(context="find a paper", attempt=2))
    assert json.loads(shown.parameters) == {"query": "reflection", "topK": 50}
    assert shown.error == "ValueError (E7): too many"
    assert (shown.context, shown.attempt, shown.at) == ("find a paper", 2, AT)


def test_a_success_has_no_error() -> None:
    """Nor has a call without a context one."""
    shown = shown_call(execution(outcome="success", error=None))
    assert shown.error is None
    assert shown.context is None


def test_parameters_that_nobody_saw_are_said_to_be_unknown() -> None:
    """Instead of an empty object, which would be a call without any."""
    shown = shown_call(execution(parameters={}, parameters_known=False))
    assert "did not see" in shown.parameters


def test_long_parameters_are_cut() -> None:
    """However long they are."""
    shown = shown_call(execution(parameters={"text": "x" * 100_000}))
    assert len(shown.parameters) == MAX_PARAMETERS
    assert shown.parameters.endswith("…")


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u200b", "\ufeff", "\x07", "\x1b", "\u2066"], ids=ascii
)
def test_what_cannot_be_seen_is_told(hidden: str) -> None:
    """A change of direction, or a blank without width, cannot make a text read as another."""
    shown = visible(f"a{hidden}b", 100)
    assert hidden not in shown
    assert shown == f"a{hidden.encode('unicode_escape').decode()}b"


def test_lines_stay_lines() -> None:
    """In parameters and errors; in a heading they become blanks."""
    assert visible("a\r\nb\tc", 100) == "a\nb\tc"
    assert one_line("a\r\n  b\tc", 100) == "a b c"


@given(st.text(), st.integers(1, 50))
def test_no_text_is_longer_than_its_limit(text: str, limit: int) -> None:
    """Nor holds it a character that is not printed, line ends and tabs aside."""
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert all(char.isprintable() or char in "\n\t" for char in shown)


def test_changes_are_told_in_order_with_both_values() -> None:
    """As JSON Patch operations, one line each."""
    failed: dict[str, Any] = {"topK": 50, "tz": "CET", "q": "x"}
    assert changes_between(failed, {"topK": 10, "q": "x", "page": 1}) == [
        "replace /topK: 50 -> 10",
        'remove /tz (was "CET")',
        "add /page: 1",
    ]


def test_the_same_call_made_again_changes_nothing() -> None:
    """An empty list, and an empty patch."""
    assert changes_between({"a": 1}, {"a": 1}) == []
    assert json.loads(patch_of({"a": 1}, {"a": 1})) == []


def test_of_many_changes_the_first_are_told_and_the_others_counted() -> None:
    """So that no call fills a page."""
    lines = changes_between({}, {f"p{n:03}": n for n in range(MAX_CHANGES + 5)})
    assert len(lines) == MAX_CHANGES + 1
    assert lines[-1] == "and 5 more"


def test_the_patch_is_one_that_can_be_applied() -> None:
    """RFC 6902: what is shown turns the failed parameters into the mended ones."""
    failed: dict[str, Any] = {"a": 1, "b": {"c": 2}, "d": None}
    mended: dict[str, Any] = {"a": "1", "b": {"c": 2, "e/f": [1]}}
    operations = [Operation(**each) for each in json.loads(patch_of(failed, mended))]
    assert apply(failed, operations) == mended
