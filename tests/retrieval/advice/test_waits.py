"""Waits: every form in which a tool says when to come back, and what is no such thing."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError
from retrieval.answers.advice.waits import MAX_WAIT_MS, MIN_WAIT_MS, stated_wait_ms

NOW = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)


def wait(message: str = "busy", now: datetime | None = NOW, **details: Any) -> float | None:
    return stated_wait_ms(ExecutionError(message=message, details=details), now)


_TEXT = (Path(__file__).parents[1] / "waits.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in _TEXT.split("\n") if line]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_stated_wait_is_read_and_nothing_else(row: dict[str, Any]) -> None:
    """In words, headers of HTTP, Unix times, gRPC's RetryInfo; counts and the past are none."""
    assert wait(row["message"], **row.get("details", {})) == row["wait_ms"]


def test_a_wait_of_days_counts_when_no_other_is_stated() -> None:
    """It is longer than a call waits, which is for the caller of this to see."""
    assert wait("try again in 3 days") == 3 * MAX_WAIT_MS
    assert wait("try again in 3 days", retryAfter=5) == 5_000


def test_a_moment_needs_a_clock() -> None:
    """Without the time of asking, only a duration can be read."""
    assert wait("Retry-After: Fri, 20 Feb 2026 14:01:00 GMT", now=None) is None


details = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["retryAfter", "Retry-After", "retryDelay", "resetAt", "seconds", "x"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), details)
def test_whatever_is_said_the_wait_is_a_number(message: str, said: Any) -> None:
    """Never an exception, never less than 100 ms."""
    error = ExecutionError.model_construct(message=f"retry after {message}", details={"d": said})
    found = stated_wait_ms(error, NOW)
    assert found is None or MIN_WAIT_MS <= found < math.inf
