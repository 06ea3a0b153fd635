"""Patterns as rows: the filter, the words, the shares."""

from typing import Any

import pytest

from aftercall.models import FailurePattern, PatternFailures, ToolName
from service.dashboard.shown.failure_rows import (
    MAX_SIGNATURE,
    PatternFilter,
    compared,
    mended_share,
    name_of,
    pattern_rows,
)


def met(failures: int = 3, before: int | None = None, **fields: Any) -> PatternFailures:
    """A pattern that was met so often."""
    pattern = {
        "pattern_id": "p-1",
        "tool": ToolName(server_name="web", tool_name="fetch_page"),
        "category": "timeout",
        "signature": "took <n> s",
        "count": 8,
        **fields,
    }
    return PatternFailures(
        pattern=FailurePattern.model_validate(pattern), failures=failures, before=before
    )


def test_a_row_says_what_the_endpoint_says() -> None:
    """Counts of the window and of the span before it, the mended share of all times."""
    [row] = pattern_rows([met(3, 5, mended=2, agents=["a", "b"])], PatternFilter())
    assert (row["failures"], row["before"], row["mended"], row["agents"]) == (3, 5, 0.25, 2)
    assert (row["id"], row["tool"], row["category"]) == ("p-1", "web/fetch_page", "timeout")


def test_wordings_are_one_line_and_bounded() -> None:
    """Whatever a tool said."""
    [row] = pattern_rows([met(signature="a\nb" * 500)], PatternFilter())
    assert "\n" not in row["signature"]
    assert len(row["signature"]) == MAX_SIGNATURE


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"tool": "fetch"}, True),
        ({"tool": " WEB/Fetch "}, True),
        ({"tool": "git"}, False),
        ({"category": "timeout"}, True),
        ({"category": "conflict"}, False),
        ({"tool": "web", "category": "conflict"}, False),
    ],
)
def test_patterns_are_found_by_tool_and_category(asked: dict[str, str], expected: bool) -> None:
    """A part of the name in any letter case; the category exactly."""
    assert bool(pattern_rows([met()], PatternFilter.asked(asked))) is expected


def test_a_filter_is_the_query_that_states_it() -> None:
    """So that a link to what is shown can be shared."""
    for query in ({}, {"tool": "x"}, {"tool": "x", "category": "timeout"}):
        assert PatternFilter.asked(query).query() == query


def test_counts_are_compared_in_words() -> None:
    """Never by a sign or a colour alone; not at all with what is not known."""
    assert compared(3, None) == ""
    assert compared(3, 3) == "as many as before (3)"
    assert compared(1_500, 0) == "1,500 more than before (0)"
    assert compared(0, 2) == "2 fewer than before (2)"


def test_nothing_is_mended_of_no_failures() -> None:
    """And never more than all of them."""
    assert mended_share(met(count=0).pattern) is None
    assert mended_share(met(count=2, mended=4).pattern) == 1.0


def test_a_tool_is_named_as_its_calls_are() -> None:
    """With its server, if it has one."""
    assert name_of(ToolName(tool_name="t")) == "t"
    assert name_of(ToolName(tool_name="t", server_name="s")) == "s/t"
