"""Forms of text: told apart by their look, in bounded time."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.values.texts import MAX_LOOK, TextFormat, format_of


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", "empty"), ("2025-03-04", "date"), ("03/04/2025", "local-date"),
        ("2025/03/04", "local-date"), ("2025-03-04T10:00:00Z", "date-time"),
        ("2025-03-04 10:00:00.5+01:00", "date-time"), ("14:30", "time"),
        ("2:30 pm", "12-hour-time"), ("123e4567-e89b-42d3-a456-426614174000", "uuid"),
        ("https://example.com/a?b=c", "url"), ("ada@example.com", "email"),
        ("Europe/Berlin", "time-zone"), ("/srv/annual report.md", "path"), ("C:\\temp\\a", "path"),
        ("src/app.py", "path"), ("report v2.pdf", "file-name"), ("-42", "integer-text"),
        ("1,000.5", "number-text"), ("#launch", "hashtag"), ("@ada", "mention"),
        ('{"a": 1}', "json-text"), ("JFK", "code"), ("ABC-123", "code"), ("555-1234", "identifier"),
        ("one_way", "identifier"), ("pageSize", "identifier"), ("us-east-1", "identifier"),
        ("economy", "word"), ("Berlin", "word"), ("Zoë", "word"), ("New York", "words"),
        ("find the Report", "words"), ("東京", "word"),
    ],
)  # fmt: skip
def test_a_text_shows_its_form(text: str, form: str) -> None:
    """By the first recogniser that takes the whole text."""
    assert format_of(text) == form


def test_no_day_is_a_date_that_the_calendar_lacks() -> None:
    """A thirteenth month is no date."""
    assert format_of("2025-13-04") != "date"


@given(st.text(max_size=MAX_LOOK + 20))
def test_any_text_has_a_form_of_the_closed_list(text: str) -> None:
    """So that counts by form stay small."""
    assert format_of(text) in get_args(TextFormat)


@pytest.mark.parametrize("part", ["a.a", "1,", "a/", "a-", "a ", "(", "a@a-", "0", "a://", "{["])
def test_a_text_made_to_be_hard_is_read(part: str) -> None:
    """Repetitions that ruin a careless pattern end in an answer; a long text is just words."""
    assert format_of((part * MAX_LOOK)[: MAX_LOOK - 1] + "!") in get_args(TextFormat)
    assert format_of(part * 1_000_000) == "words"
