"""Weak successes: empty or self-declared ones are told, all others are not."""

from typing import Any

import pytest

from retrieval.knowledge.rows.health_signals import weakness_of
from retrieval.knowledge.rows.results import error_within
from tests.retrieval.cases import an_execution
from tests.retrieval.health.health_samples import a_success


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ([], "the result is an empty list"),
        ({}, "the result is an empty object"),
        ("", "the result is an empty text"),
        (" \n\t", "the result is an empty text"),
        ("[]", "the result is an empty text"),
        ({"titles": []}, "there is nothing in 'titles'"),
        ({"status": "ok", "items": [], "total": 0, "page": 1}, "there is nothing in 'items'"),
        ({"Movies": [], "series": {}}, "there is nothing in 'Movies' and 'series'"),
        ({"data": {"items": [], "hasMore": False}}, "there is nothing in 'data'"),
        ({"text": "  "}, "there is nothing in 'text'"),
    ],
)
def test_an_answer_with_nothing_in_it_is_weak(result: Any, why: str) -> None:
    """Whatever envelope is around it."""
    assert weakness_of(a_success(result)) == why


@pytest.mark.parametrize(
    "result",
    [
        None, 0, False, "none", [0], [None], [[]], {"id": 7, "tags": []}, {"deleted": True},
        {"errors": []}, {"status": "ok"}, {"ok": True, "count": 0}, {"result": None},
        {"stdout": "", "exit_code": 0}, {"items": [], "advice": "widen the search"},
        {"status": "delivered"}, {"status": 3, "n": 1},
    ],
)  # fmt: skip
def test_an_answer_with_something_in_it_is_not(result: Any) -> None:
    """Zero, false and null are answers; null may mean that nothing was recorded."""
    assert weakness_of(a_success(result)) is None


ERRORS = [
    ({"status": 200, "body": {"error": "Unauthorized"}}, "Unauthorized", None),
    ({"success": False, "message": "no such user"}, "no such user", None),
    ({"success": False}, "the call had no success", None),
    ({"status": 401, "message": "bad key"}, "bad key", "401"),
    ({"error": {"code": 403, "message": "forbidden"}, "data": None}, "forbidden", None),
    ({"errors": [{"message": "Cannot query field"}], "data": None}, "Cannot query field", None),
    ('{"ok": false, "error": "not_in_channel"}', "not_in_channel", None),
    ({"result": '{"isError": true, "message": "boom"}'}, "boom", None),
    ({"ok": True, "items": [1]}, None, None),
    ({"success": False, "build": 7, "branch": "main"}, None, None),
    ({"id": 5, "status": "failed", "error": "out of memory"}, None, None),
    ({"error": None, "items": [1]}, None, None),
    ({"errors": [], "warnings": ["old"]}, None, None),
    ({"error": "one of two failed", "items": [1]}, None, None),
    ({"code": 404, "name": "Not Found page"}, None, None),
    ("error: not JSON", None, None),
    ({"status": "ok", "code": 200}, None, None),
]


@pytest.mark.parametrize(("result", "message", "code"), ERRORS)
def test_an_answer_that_is_an_error_is_told(
    result: Any, message: str | None, code: str | None
) -> None:
    """In whatever envelope; a record that has an error or a status of its own is data."""
    error = error_within(result)
    assert (error and error.message, error and error.code) == (message, code)
    weak = weakness_of(a_success(result)) or ""
    assert ("the result holds an error" in weak) == (message is not None)


@pytest.mark.parametrize(
    "word",
    ["success_no_parse", "no_results", "partial", "weak", "low_utility", "degraded", "fallback",
     "empty", "Success-No-Results", "SUCCESS PARTIAL", "completed_partial"],
)  # fmt: skip
def test_what_a_tool_calls_weak_is_weak(word: str) -> None:
    """By its status beside the result or in it, however it is spelt, and unchanged."""
    beside = a_success(["a title"], result_status=word)
    assert weakness_of(beside) == f"the tool calls it '{word}'"
    assert weakness_of(a_success({"status": word, "items": [1]})) == f"the tool calls it '{word}'"
    assert (beside.outcome, beside.result_status) == ("success", word)


@pytest.mark.parametrize("word", ["success", "ok", "200", "partially_shipped", "empty" * 40])
def test_other_words_are_not(word: str) -> None:
    """A status that says nothing of use is no word for weakness."""
    assert weakness_of(a_success(["a title"], result_status=word)) is None


def test_a_failure_is_no_weak_success() -> None:
    """Even when nothing came of it."""
    error = {"type": "low_utility", "message": "nothing useful"}
    assert weakness_of(an_execution(outcome="failure", error=error, result=[])) is None


def test_a_deep_answer_is_looked_at_so_far() -> None:
    """Depth is bounded; what lies deeper counts as something."""
    deep: Any = []
    for _ in range(500):
        deep = {"data": deep}
    assert weakness_of(a_success({"data": {"data": []}})) is not None
    assert weakness_of(a_success(None).model_copy(update={"result": deep})) is None
