"""Reading JSON bodies: what one parser refuses, the other reads element by element."""

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import MalformedJsonError
from service.requests import parse_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_clean_json_reads_as_the_standard_parser_reads_it(value: Any) -> None:
    """The fast way changes nothing."""
    assert parse_json(json.dumps(value).encode()) == value


@given(st.lists(JSON, max_size=8), st.integers(0, 8), st.sampled_from([None, 2]))
def test_a_bad_element_leaves_its_neighbours_as_they_are(
    values: list[Any], at: int, indent: int | None
) -> None:
    """Around a NaN, every element reads as it was written."""
    texts = [json.dumps(value, indent=indent) for value in values]
    texts[at:at] = ["NaN"]
    read = parse_json(f" [ {' , '.join(texts)} ] ".encode())
    assert isinstance(read, list)
    at = min(at, len(values))
    assert math.isnan(read[at])
    assert read[:at] + read[at + 1 :] == values


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No other error ever comes out."""
    with contextlib.suppress(MalformedJsonError):
        parse_json(body)


@given(st.text(alphabet='[]{}",:\\ 0aN', max_size=40))
def test_what_the_standard_parser_refuses_is_refused(text: str) -> None:
    """Reading element by element accepts no more than reading at once."""
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(MalformedJsonError):
            parse_json(text.encode())
    else:
        assert repr(parse_json(text.encode())) == repr(expected)


def test_a_byte_order_mark_is_ignored() -> None:
    """As RFC 8259 permits; some editors write one."""
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]
