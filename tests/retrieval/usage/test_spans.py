"""Windows end now; 24h begins with an hour, the others with a day of UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from retrieval.usage.spans import (
    WINDOWS,
    first_hour,
    hour_number,
    moment_of,
    span_before,
    span_of,
)

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def test_a_day_is_24_hours_from_the_beginning_of_one() -> None:
    """And what is before it are the 24 before."""
    span, before = span_of("24h", NOW), span_before("24h", NOW)
    assert moment_of(span.first) == datetime(2026, 2, 28, 12, tzinfo=UTC)
    assert moment_of(span.last) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert before is not None
    assert moment_of(before.first) == datetime(2026, 2, 27, 12, tzinfo=UTC)
    assert before.last == span.first - 1


def test_a_week_is_today_and_the_six_days_before_it() -> None:
    """A step is a day; the week before is as many whole days."""
    span, before = span_of("7d", NOW), span_before("7d", NOW)
    assert [moment_of(each).day for each in span.steps] == [23, 24, 25, 26, 27, 28, 1]
    assert before is not None
    assert moment_of(before.first) == datetime(2026, 2, 16, tzinfo=UTC)
    assert len(before.steps) == 7


def test_thirty_days_have_no_days_before_them() -> None:
    assert len(span_of("30d", NOW).steps) == 30
    assert span_before("30d", NOW) is None


@pytest.mark.parametrize("window", WINDOWS)
def test_the_steps_of_a_window_hold_all_its_hours(window: str) -> None:
    """At midnight, just before it, and in between; also over the change to summer time."""
    for moment in (
        datetime(2026, 3, 29, 0, 0, tzinfo=UTC),
        datetime(2026, 3, 29, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2))),
    ):
        span = span_of(window, moment)  # type: ignore[arg-type]
        steps = [(hour - span.first) // span.step for hour in span.hours]
        assert sorted(set(steps)) == list(range(len(span.steps)))


def test_an_hour_is_that_of_utc() -> None:
    """Whatever zone a moment is told in."""
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))
    assert hour_number(tokyo) == hour_number(NOW) == first_hour(NOW.date()) + 12
