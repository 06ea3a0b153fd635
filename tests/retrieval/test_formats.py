"""Forms of text: told apart by their look, in bounded time."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.texts import MAX_LOOK, LetterCase, TextFormat, case_of, format_of


@pytest.mark.parametrize(
    ("text", "form", "case"),
    [
        ("", "empty", "none"),
        ("2025-03-04", "date", "none"),
        ("03/04/2025", "local-date", "none"),
        ("2025/03/04", "local-date", "none"),
        ("2025-03-04T10:00:00Z", "date-time", "upper"),
        ("2025-03-04 10:00:00.5+01:00", "date-time", "none"),
        ("14:30", "time", "none"),
        ("2:30 pm", "12-hour-time", "lower"),
        ("123e4567-e89b-42d3-a456-426614174000", "uuid", "kebab"),
        ("https://example.com/a?b=c", "url", "lower"),
        ("ada@example.com", "email", "lower"),
        ("Europe/Berlin", "time-zone", "title"),
        ("/srv/annual report.md", "path", "lower"),
        ("C:\\temp\\a", "path", "mixed"),
        ("src/app.py", "path", "lower"),
        ("report v2.pdf", "file-name", "lower"),
        ("-42", "integer-text", "none"),
        ("1,000.5", "number-text", "none"),
        ("#launch", "hashtag", "lower"),
        ("@ada", "mention", "lower"),
        ('{"a": 1}', "json-text", "lower"),
        ("JFK", "code", "upper"),
        ("ABC-123", "code", "upper"),
        ("555-1234", "identifier", "none"),
        ("one_way", "identifier", "snake"),
        ("pageSize", "identifier", "camel"),
        ("us-east-1", "identifier", "kebab"),
        ("economy", "word", "lower"),
        ("Berlin", "word", "title"),
        ("Zoë", "word", "title"),
        ("New York", "words", "title"),
        ("find the Report", "words", "mixed"),
        ("東京", "word", "none"),
    ],
)
def test_a_text_shows_its_form_and_case(text: str, form: str, case: str) -> None:
    """The form by the first recogniser that takes the whole text, the case by its letters."""
    assert (format_of(text), case_of(text)) == (form, case)


def test_no_day_is_a_date_that_the_calendar_lacks() -> None:
    """A thirteenth month is no date."""
    assert format_of("2025-13-04") != "date"


@given(st.text(max_size=MAX_LOOK + 20))
def test_any_text_has_a_form_and_a_case_of_the_closed_lists(text: str) -> None:
    """So that counts by form and case stay small."""
    assert format_of(text) in get_args(TextFormat)
    assert case_of(text) in get_args(LetterCase)


@pytest.mark.parametrize("part", ["a.a", "1,", "a/", "a-", "a ", "(", "a@a-", "0", "a://", "{["])
def test_a_text_made_to_be_hard_is_read(part: str) -> None:
    """Repetitions that ruin a careless pattern end in an answer; a long text is just words."""
    assert format_of((part * MAX_LOOK)[: MAX_LOOK - 1] + "!") in get_args(TextFormat)
    assert format_of(part * 1_000_000) == "words"
    assert case_of(part * 1_000_000) in get_args(LetterCase)
