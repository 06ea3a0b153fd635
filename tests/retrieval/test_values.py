"""Values: casts that are no guesses, names and values that are near."""

import pytest

from aftercall.json_values import JsonValue
from retrieval.parameters import JsonType
from retrieval.texts import rewrite
from retrieval.values import CastError, cast, name_similarity, nearest


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        ("5", "integer", 5), ("five", "integer", 5), ("10 commits", "integer", 10),
        ("1,000", "integer", 1000), (5.0, "integer", 5), ("2.5", "number", 2.5),
        (5, "string", "5"), (True, "string", "true"), ("yes", "boolean", True),
        (0, "boolean", False), ("a.txt", "array", ["a.txt"]), ("a,b", "array", ["a", "b"]),
        ('["a"]', "array", ["a"]), (["a"], "string", "a"), ('{"a": 1}', "object", {"a": 1}),
    ],
)  # fmt: skip
def test_a_cast_says_the_same_in_another_type(
    value: JsonValue, to: JsonType, expected: JsonValue
) -> None:
    """What the caller said is kept."""
    result = cast(value, to)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "to"),
    [("many", "integer"), ("2.5", "integer"), ("1 or 2", "integer"), ("maybe", "boolean"),
     (["a", "b"], "string"), ({"a": 1}, "array"), (None, "array"), ("x", "object")],
)  # fmt: skip
def test_a_cast_that_would_be_a_guess_is_refused(value: JsonValue, to: JsonType) -> None:
    """Nothing is made up."""
    with pytest.raises(CastError):
        cast(value, to)


def test_like_names_are_nearer_than_unlike_ones() -> None:
    """Abbreviations, cases and shared words count; two words that differ do not."""
    assert name_similarity("topk", "topK") == 1
    assert name_similarity("source_tz", "source_timezone") > 0.9
    assert name_similarity("source_tz", "target_timezone") < 0.5
    assert name_similarity("tz", "timezone") > 0.7
    assert name_similarity("repo", "repo_path") > 0.8
    assert name_similarity("format", "timezone") < 0.5


def test_the_nearest_value_is_named_or_nothing() -> None:
    """A misspelling has one answer; between two equally near ones there is none."""
    assert nearest("mian", ["main", "feature/login"]) == ("main", pytest.approx(0.9))
    assert nearest("Berlin", ["Europe/Berlin", "Asia/Tokyo"]) is not None
    assert nearest("dev", ["dev1", "dev2"]) is None
    assert nearest("xyzzy", ["main", "develop"]) is None


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [("9:30 am", "HH:MM", "09:30"), ("12:00:00", "HH:MM", "12:00"), ("24:00", "HH:MM", "00:00"),
     ("2 pm", "HH:MM", "14:00"), ("25:00", "HH:MM", None), ("noonish", "HH:MM", None),
     ("March 3, 2025", "YYYY-MM-DD", "2025-03-03"), ("03/04/2025", "YYYY-MM-DD", None)],
)  # fmt: skip
def test_forms_are_rewritten_only_when_they_read_one_way(
    text: str, form: str, expected: str | None
) -> None:
    """03/04/2025 is two different days: it is left alone."""
    assert rewrite(text, form) == expected
