"""Numbers, times and foreign texts: bounded, visible, and nothing said of what is not known."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import CallCounts, ToolName
from service.dashboard import words


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (words.format_count(12_345), "12,345"),
        (words.format_noun(1, "call"), "1 call"),
        (words.format_noun(1_200, "call"), "1,200 calls"),
        (words.format_percent(0.94), "94.0 %"),
        (words.format_percent(None), "-"),
        (words.format_duration(8), "8.0 ms"),
        (words.format_duration(2_300), "2.3 s"),
        (words.format_duration(240_000), "4.0 min"),
        (words.format_duration(9_000_000), "2.5 h"),
        (words.format_duration(None), "-"),
        (words.format_score(None), "-"),
        (words.format_moment(None), "-"),
        (words.format_tool(ToolName(tool_name="t")), "t"),
        (words.format_tool(ToolName(tool_name="t", server_name="s")), "s/t"),
        (words.success_rate(CallCounts(successes=3, failures=1)), 0.75),
        (words.success_rate(CallCounts()), None),
        (words.format_percent(0.99999), "> 99.9 %"),
        (words.format_percent(1.0), "100.0 %"),
    ],
)
def test_numbers_are_written_with_their_units(written: object, expected: object) -> None:
    """What is not known is `-` or None, never 0, which would be a finding."""
    assert written == expected


def test_times_are_utc() -> None:
    cet = datetime.fromisoformat("2026-11-23T00:30:00+01:00")
    assert words.format_moment(cet) == "2026-11-22 23:30"
    assert words.label_axis([cet]) == ["11-22"]
    assert words.label_axis([cet, cet + timedelta(hours=1)]) == ["22 23:30", "23 00:30"]
    assert words.format_within("24h") == "in the last 24 hours"
    assert words.format_within("2026-11-01..2026-11-07") == "from 2026-11-01 to 2026-11-07"


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u200b", "\ufeff", "\x07", "\x1b", "\u2066", "\ud800"], ids=ascii
)
def test_what_cannot_be_seen_is_written_as_an_escape(hidden: str) -> None:
    """A change of direction, or a blank without width, cannot make a text read as another."""
    assert words.escape_hidden(f"a{hidden}b") == f"a{hidden.encode('unicode_escape').decode()}b"


def test_lines_stay_lines() -> None:
    """In parameters and errors; in a heading they become blanks."""
    assert words.escape_hidden("a\r\nb\tc") == "a\nb\tc"
    assert words.format_line("a\r\n  b\tc") == "a b c"


@given(st.text(), st.integers(1, 50))
def test_no_text_is_longer_than_its_limit(text: str, limit: int) -> None:
    """Nor holds it a character that is not printed, line ends and tabs aside."""
    shown = words.escape_hidden(text, limit)
    assert len(shown) <= limit
    assert all(char.isprintable() or char in "\n\t" for char in shown)
