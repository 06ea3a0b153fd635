"""Values: casts that are no guesses, names and values that are near."""

from collections.abc import Callable

import pytest

from aftercall.json_values import JsonValue
from retrieval import read_word_table
from retrieval.knowledge.values.forms import rewrite_form
from retrieval.knowledge.values.likeness import (
    name_similarity,
    nearest_value,
    refers_by_words,
    synonym_of,
)
from retrieval.knowledge.values.parameters import JsonType
from retrieval.knowledge.values.scalars import CastError, cast_value, number_in, strip_marks


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        ("5", "integer", 5), ("five", "integer", 5), ("10 commits", "integer", 10),
        ("1,000", "integer", 1000), (5.0, "integer", 5), ("2.5", "number", 2.5),
        (5, "string", "5"), (True, "string", "true"), ("yes", "boolean", True),
        (0, "boolean", False), ("a.txt", "array", ["a.txt"]), ("a,b", "array", ["a", "b"]),
        ("('a', {'b': 1})", "array", ["a", {"b": 1}]), ("['a']", "array", ["a"]),
        ("(a) b", "array", ["(a) b"]), ("3rd", "integer", 3), ("int(3)", "integer", 3),
        ('["a"]', "array", ["a"]), ("[a, b-c]", "array", ["a", "b-c"]),
        (["a"], "string", "a"), ('{"a": 1}', "object", {"a": 1}),
    ],
)  # fmt: skip
def test_a_cast_says_the_same_in_another_type(
    value: JsonValue, to: JsonType, expected: JsonValue
) -> None:
    """What the caller said is kept."""
    result = cast_value(value, to)
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
        cast_value(value, to)


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [("topk", "topK", 1, 1), ("source_tz", "source_timezone", 0.9, 1), ("tz", "timezone", 0.7, 1),
     ("source_tz", "target_timezone", 0, 0.5), ("repo", "repo_path", 0.8, 1),
     ("format", "timezone", 0, 0.5)],
)  # fmt: skip
def test_like_names_are_nearer_than_unlike_ones(
    one: str, other: str, least: float, most: float
) -> None:
    """Abbreviations, cases and shared words count; two words that differ do not."""
    assert least <= name_similarity(one, other) <= most


@pytest.mark.parametrize(
    ("find", "value", "listed", "found"),
    [
        (nearest_value, "mian", ["main", "feature/login"], ("main", "slip")),
        (nearest_value, "Berlin", ["Europe/Berlin", "Asia/Tokyo"], ("Europe/Berlin", "last")),
        (nearest_value, "dev", ["dev1", "dev2"], None),
        (nearest_value, "xyzzy", ["main", "develop"], None),
        (synonym_of, "ascending", ["asc", "desc"], ("asc", True)),
        (synonym_of, "Kilometers", ["km", "mi"], ("km", True)),
        (synonym_of, "done", ["open", "closed"], ("closed", False)),
        (synonym_of, "celsius", ["metric", "imperial"], ("metric", False)),
        (synonym_of, "done", ["closed", "resolved"], None),
    ],
)  # fmt: skip
def test_the_one_of_a_list_that_is_meant_is_named_or_none(
    find: Callable[[str, list[str]], object], value: str, listed: list[str], found: object
) -> None:
    """A misspelling, or a synonym that is just the same or nearly so; of two equally near none."""
    assert find(value, listed) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1,500.0 USD", 1500), ("~150", 150), ("'7'", 7), ("forty-two", 42), ("1.234,50", 1234.5),
     ("1 500", 1500), ("about 20 items", 20), ("#42", 42), ("$12.50", 12.5), ("1.234", 1.234),
     ("a dozen", 12), ("one million two thousand three", 1_002_003)],
)  # fmt: skip
def test_one_number_is_read_out_of_a_text(text: str, expected: float) -> None:
    """With what stands around it, and however its thousands are marked."""
    assert cast_value(text, "number") == expected


@pytest.mark.parametrize(
    "text",
    ["5-10", "~1.234", "5 minutes", "5k", "50%", "1, 2", "12,5", "1.5.2", "v5", "10:30",
     "five five", "twenty ten"],
)  # fmt: skip
def test_a_number_that_could_be_another_one_is_not_read(text: str) -> None:
    """Two numbers, a separator that can mean two things, a unit that the tool may not count in."""
    with pytest.raises(CastError):
        cast_value(text, "number")


def test_a_unit_is_no_doubt_where_the_tool_counts_in_it() -> None:
    """`30 sec` is 30 of a `timeout_seconds`, and may be anything of a `timeout`."""
    assert number_in("30 sec", units=frozenset({"timeout", "seconds"})) == 30
    with pytest.raises(CastError):
        number_in("30 sec", units=frozenset({"timeout", "minutes"}))


@pytest.mark.parametrize(
    ("one", "other"),
    [("recipient", "to"), ("dest", "destination"), ("qty", "quantity"), ("max_results", "limit"),
     ("filename", "path"), ("folder", "directory"), ("tel", "phone"), ("recipient_email", "to"),
     ("Dirección", "address"), ("nachricht", "message"), ("fecha", "date"), ("betrag", "amount"),
     ("from_date", "start_date"), ("old_string", "oldText"), ("img_url", "imageLink")],
)  # fmt: skip
def test_synonyms_and_translations_of_names_are_known(one: str, other: str) -> None:
    """In both directions, and in compounds where they mean the same there."""
    assert name_similarity(one, other) >= 0.7
    assert name_similarity(other, one) == name_similarity(one, other)


OPPOSITES = ["include exclude", "source destination", "src dest", "from to", "start end", "min max",
             "old new", "before after", "sender recipient", "origin target", "asc desc", "on off",
             "open closed", "enable disable", "yes no", "first_name last_name", "lat lon",
             "start_date end_date", "width height", "approve reject", "from until"]  # fmt: skip


def test_no_two_opposites_mean_the_same() -> None:
    """Neither as they are nor in compounds, nor as values of a list."""
    groups = read_word_table("knowledge/values/synonyms.toml")
    for one, other in map(str.split, OPPOSITES):
        assert name_similarity(one, other) < 0.5
        assert name_similarity(f"{one}_id", f"{other}_id") < 0.7
        assert synonym_of(one, [other, "x"]) is None
        for group in (
            each for table in groups.values() for part in table.values() for each in part
        ):
            assert not {one, other} <= {*group.split()}


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
    assert rewrite_form(text, form) == expected


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [("my_order_id", "order_id", True), ("latest", "id", True), ("the last order", "order", True),
     ("#W12", "order_id", False), ("a", "path", False), ("order", "reason", False)],
)  # fmt: skip
def test_words_that_say_which_one_without_naming_it(text: str, name: str, says: bool) -> None:
    assert refers_by_words(text, name) is says


@pytest.mark.parametrize(
    ("text", "bare"),
    [('"Rome".', "Rome"), ("**Rome**", "Rome"), ("*Rome*", "Rome"), ("**/*", "**/*"),
     ("*/src/*", "*/src/*"), ("'?'", "'?'")],
)  # fmt: skip
def test_marks_are_taken_off_what_says_something_without_them(text: str, bare: str) -> None:
    """Stars of a glob are no marks, and marks alone are the value."""
    assert strip_marks(text) == bare
