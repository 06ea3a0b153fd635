"""What is plain JSON, what is not, and where."""

import enum
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.json_patch import same_json
from aftercall.json_values import (
    MAX_DEPTH,
    MAX_INTEGER,
    InvalidJsonValueError,
    JsonValue,
    bounded_json,
    canonical_json,
    check_json_object,
    check_json_value,
    check_text,
    clean_text,
    content_hash,
    json_or_none,
    make_json_value,
    read_json,
)
from tests.sdk.strategies import json_objects, json_values


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Metres(float):
    """A float by another name, as NumPy's float64 is."""


class Hostile:
    """A value whose text cannot be had."""

    def __repr__(self) -> str:
        raise RuntimeError("no text for you")


def nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for level in range(depth):
        value = [value] if level % 2 else {"inner": value}
    return value


@pytest.mark.parametrize(
    ("dirty", "complaint"),
    [
        (math.nan, "is nan"), (math.inf, "is inf"), (-math.inf, "is -inf"), ("a\x00b", "NUL"),
        ("\ud800", "lone surrogate"), (2**63, "more than 64 bits"),
        pytest.param(-(10**5000), "more than 64 bits", id="5000-digits"),
        (b"bytes", "of type bytes"), ((1, 2), "of type tuple"), ({1, 2}, "of type set"),
        (object(), "of type object"), ({1: "a"}, "key 1, which is not a string"),
        ({"a\x00": 1}, "key that contains a NUL"),
        ({"\udfff": 1}, "key that contains a lone surrogate"),
    ],
)  # fmt: skip
@given(before=json_objects, after=json_objects)
@settings(max_examples=10)
def test_a_dirty_value_is_refused_with_its_path(
    dirty: Any, complaint: str, before: dict[str, JsonValue], after: dict[str, JsonValue]
) -> None:
    """The message names the place and the fault, whatever stands around it."""
    before.pop("list", None)
    value = {**before, "list": [0, {"here": dirty}], **{f"{key}'": v for key, v in after.items()}}
    with pytest.raises(InvalidJsonValueError) as refusal:
        check_json_value(value)
    assert "list.1.here" in str(refusal.value)
    assert complaint in str(refusal.value)


def test_nesting_is_accepted_to_the_limit_and_no_deeper() -> None:
    """`MAX_DEPTH` levels pass, one more is refused, and a cycle, which has no end; no crash."""
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    assert check_json_value(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    for deep in (nested(MAX_DEPTH + 1), nested(100_000), cycle):
        with pytest.raises(InvalidJsonValueError, match="nested deeper than 100 levels"):
            check_json_value(deep)


def test_subclasses_of_json_types_become_the_plain_types() -> None:
    """Enum members, float subclasses and other dicts are what they say, in exact types."""
    value = check_json_value(
        OrderedDict({Colour.RED: [Colour.RED, Level.HIGH, Metres(1.5), True, None]})
    )
    assert value == {"red": ["red", 3, 1.5, True, None]}
    assert type(value) is dict
    assert [type(key) for key in value] == [str]
    assert [type(item) for item in value["red"]] == [str, int, float, bool, type(None)]  # type: ignore[union-attr]  # a list, as asserted


@pytest.mark.parametrize(
    ("value", "kind"), [([], "an array"), ("{}", "a string"), (None, "null"), (1, "a number")]
)
def test_an_object_is_asked_for_by_its_name(value: object, kind: str) -> None:
    """What is no object is called by its JSON name."""
    with pytest.raises(InvalidJsonValueError, match=f"must be a JSON object, not {kind}"):
        check_json_object(value)


@given(st.text())
def test_text_is_accepted_exactly_when_it_can_be_encoded_and_has_no_nul(text: str) -> None:
    """`check_text` and Python's UTF-8 codec agree; `clean_text` makes any text acceptable."""
    try:
        text.encode()
        clean = "\0" not in text
    except UnicodeEncodeError:
        clean = False
    if clean:
        assert check_text(text) is text
        assert clean_text(text) is text
    else:
        with pytest.raises(InvalidJsonValueError):
            check_text(text)
        assert len(check_text(clean_text(text))) == len(text)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5)
    | st.builds(pow, st.just(10), st.integers(19, 5000)) | st.builds(Hostile)
    | st.sampled_from([Colour.RED, Level.HIGH, Metres("nan"), len])
    | st.datetimes() | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner)
    | st.dictionaries(st.text() | st.integers() | st.none() | st.floats(), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(anything, st.integers(min_value=1, max_value=300))
def test_any_python_value_can_be_made_json(value: object, max_chars: int) -> None:
    """What a tool returns never breaks a recorder; of what is bounded no text is longer."""
    made, bounded = make_json_value(value), bounded_json(value, max_chars=max_chars)
    assert check_json_value(made) is made
    assert json.loads(canonical_json(made)) == made
    assert check_json_value(bounded) is bounded
    assert _text_length(bounded) <= max_chars + 1


def _text_length(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(k) + _text_length(v) for k, v in value.items())
    return sum(map(_text_length, value)) if isinstance(value, list) else 0


def test_what_cannot_be_json_becomes_bounded_text() -> None:
    """Cycles, great depth, huge texts of foreign objects and broken `__repr__`s end somewhere."""
    cycle: dict[str, Any] = {"name": "x"}
    cycle["self"] = [cycle, cycle]
    assert isinstance(make_json_value(cycle)["self"][0], str)  # type: ignore[index,call-overload]  # as built
    deep = make_json_value(nested(100_000))
    assert check_json_value(deep) is deep
    assert len(str(make_json_value(range(10)))) < 2000
    assert len(str(make_json_value(bytes(10**6)))) <= 1000
    assert "Hostile" in str(make_json_value(Hostile()))
    assert make_json_value({None: 1, 2: 3, 1.5: 4, True: 5}) == {
        "None": 1, "2": 3, "1.5": 4, "True": 5,
    }  # fmt: skip
    assert make_json_value([MAX_INTEGER, MAX_INTEGER + 1]) == [MAX_INTEGER, "9223372036854775808"]


@given(json_values, json_values)
def test_canonical_texts_are_equal_exactly_for_equal_values(
    left: JsonValue, right: JsonValue
) -> None:
    """`canonical_json`, `content_hash` and `same_json` draw the same line."""
    same = same_json(left, right)
    assert (canonical_json(left) == canonical_json(right)) is same
    assert (content_hash(left) == content_hash(right)) is same


@pytest.mark.parametrize("kind", [str, str.encode])
def test_a_text_is_read_as_deep_in_every_version_of_python(kind: Callable[[str], Any]) -> None:
    """Python itself reads some 1,000 levels, or many times as many."""
    assert read_json(kind("[" * 900 + "]" * 900)) == json.loads("[" * 900 + "]" * 900)
    assert read_json(kind("[" + "[]," * 2000 + "1]"))[-1] == 1
    for text in ("[" * 901 + "]" * 901, '{"a":' * 2000 + "1" + "}" * 2000):
        with pytest.raises(RecursionError):
            read_json(kind(text))
        assert json_or_none(text) is None
