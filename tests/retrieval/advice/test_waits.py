"""Waits: every form in which a tool says when to come back, and what is no such thing."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError
from retrieval.advice.waits import MAX_WAIT_MS, MIN_WAIT_MS, stated_wait_ms

NOW = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)
EPOCH = int(NOW.timestamp())


def wait(message: str = "busy", now: datetime | None = NOW, **details: Any) -> float | None:
    return stated_wait_ms(ExecutionError(message=message, details=details), now)


@pytest.mark.parametrize(
    ("message", "wait_ms"),
    [
        ("Rate limit exceeded. Retry after 30 seconds", 30_000),
        ("429: try again in 2 minutes", 120_000),
        ("Please try again in 6m0s.", 360_000),
        ("Please try again in 1h12m0.5s", 4_320_500),
        ("Please retry in 34.5s.", 34_500),
        ("Please try again in 20ms", MIN_WAIT_MS),
        ("try again in 5 minutes and 30 seconds", 330_000),
        ("Please try again in a minute", 60_000),
        ("try again in a few seconds", 5_000),
        ("Retry-After: 12", 12_000),
        ("retry_after: 12.5", 12_500),
        ("Retry-After: Fri, 20 Feb 2026 14:01:00 GMT", 60_000),
        (f"X-RateLimit-Reset: {EPOCH + 45}", 45_000),
        ('{"retryDelay": "34s"}', 34_000),
        ("rate limit resets at 2026-02-20T14:00:30Z", 30_000),
        ("will be available at 2026-02-20 14:00:10 UTC", 10_000),
        ("database is locked, retry in 1.5 s", 1_500),
    ],
)
def test_words_state_a_wait(message: str, wait_ms: float) -> None:
    """In its own unit, or until a moment."""
    assert wait(message) == wait_ms


@pytest.mark.parametrize(
    ("details", "wait_ms"),
    [
        ({"retryAfterMs": 1500}, 1_500),
        ({"retryAfter": "7"}, 7_000),
        ({"headers": {"Retry-After": "7"}}, 7_000),
        ({"headers": {"retry-after": "Fri, 20 Feb 2026 14:01:00 GMT"}}, 60_000),
        ({"X-RateLimit-Reset": str(EPOCH + 60)}, 60_000),
        ({"x-ratelimit-reset": (EPOCH + 60) * 1000}, 60_000),
        ({"ratelimit-reset": 50}, 50_000),
        ({"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo",
                       "retryDelay": "3.5s"}]}, 3_500),
        ({"details": [{"retryDelay": {"seconds": "3", "nanos": 500_000_000}}]}, 3_500),
        ({"reset_at": "2026-02-20T14:05:00+00:00"}, 300_000),
        ({"Retry-After": 0}, MIN_WAIT_MS),
    ],
)  # fmt: skip
def test_details_state_a_wait(details: dict[str, Any], wait_ms: float) -> None:
    """Headers of HTTP, Unix times in seconds and milliseconds, gRPC's RetryInfo."""
    assert wait(**details) == wait_ms


@pytest.mark.parametrize(
    "message",
    [
        "rate limit: retry 1 of 3 failed", "will not retry after 5 attempts", "wait for 3 items",
        "timed out after 30 seconds; retry", "Try again later",
        "max retries exceeded with url: /v1",
        "Wait 10 requests", "resets at 2026-02-20T13:00:00Z",
        f"X-RateLimit-Reset: {EPOCH - 45}", "Retry-After: Sun, 99 Foo 9999 99:99:99",
        "limit of 5000 requests per hour",
    ],
)  # fmt: skip
def test_other_numbers_are_no_wait(message: str) -> None:
    """Counts, a time-out that is over, a moment in the past."""
    assert wait(message) is None


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
