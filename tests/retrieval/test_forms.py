"""Texts in the form that a tool states, and nothing that would have to be made up for it."""

import pytest

from retrieval.knowledge.values.forms import in_form, meets_form, same_moment, told_forms


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("March 5, 2026", "date", "2026-03-05"), ("5th March 2026", "YYYY-MM-DD", "2026-03-05"),
        ("25/12/2026", "date", "2026-12-25"), ("2026-03-05", "MM/DD/YYYY", "03/05/2026"),
        ("2026-03-05", "%d.%m.%Y", "05.03.2026"), ("2:30 pm", "HH:MM:SS", "14:30:00"),
        ("2026-03-05 2:30 PM UTC", "date-time", "2026-03-05T14:30:00Z"),
        ("2026-03-05T14:30:00+01:00", "YYYY-MM-DDTHH:MM:SSZ", "2026-03-05T13:30:00Z"),
        ("March 5, 2026", r"^\d{4}-\d{2}-\d{2}$", "2026-03-05"),
        ("usd", "^[A-Z]{3}$", "USD"), ("<https://a.io/b>.", "uri", "https://a.io/b"),
        ("`ada@example.com`", "email", "ada@example.com"),
        ("+1 (555) 123-4567", r"^\+\d{8,15}$", "+15551234567"),
        ("550e8400e29b41d4a716446655440000", "uuid", "550e8400-e29b-41d4-a716-446655440000"),
    ],
)  # fmt: skip
def test_the_same_is_written_in_the_stated_form(text: str, form: str, expected: str) -> None:
    """Dates, times, letter case, marks and groups of digits."""
    assert in_form(text, form) == expected
    assert meets_form(expected, form)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("03/04/2026", "date"),  # two days
        ("2026-03-05", "date-time"),  # the time would be made up
        ("14:30", "date"), ("tomorrow", "date"), ("2026-02-30", "date"),
        ("us dollars", "^[A-Z]{3}$"), ("2026-03-05", "date"), ("2026/03/05", r"^[\w/-]+$"),
        ("a", "no form at all"), ("a", "("),
    ],
)  # fmt: skip
def test_what_reads_two_ways_or_says_too_little_is_left_alone(text: str, form: str) -> None:
    """So is what has the form already, and a form that nobody knows."""
    assert in_form(text, form) is None


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("Day of the flight in YYYY-MM-DD format", ["YYYY-MM-DD"]),
        ("ISO 8601 date", ["YYYY-MM-DD"]), ("when to meet, HH:MM", ["HH:MM"]), ("a day", []),
        ("ISO 8601 timestamp, e.g. 2026-01-02T10:00:00Z", ["date-time"]),
        ("the day, e.g. '2026-01-02'", ["YYYY-MM-DD"]), ("ISO 8601 (YYYY-MM-DD)", ["YYYY-MM-DD"]),
        ("DD/MM/YYYY or YYYY-MM-DD", ["DD/MM/YYYY", "YYYY-MM-DD"]),
    ],
)  # fmt: skip
def test_a_description_tells_forms_or_none(words: str, form: list[str]) -> None:
    """Any of several will do."""
    assert [*told_forms(words)] == form


def test_a_moment_is_the_same_where_nothing_is_lost() -> None:
    """The time of a day is something; a zone that is written otherwise is not."""
    assert same_moment("March 5, 2026", "2026-03-05")
    assert same_moment("2026-03-05T14:30:00+01:00", "2026-03-05T13:30:00Z")
    assert same_moment("2026-03-05", "05/03/2026")
    assert not same_moment("2026-03-05T14:30:00Z", "2026-03-05")
    assert not same_moment("03/04/2026", "2026-04-03")
