"""JSON bodies to plain values: fast when they are clean, patient when they are not.

The fast parser refuses a whole body for one NaN, one lone surrogate, one value nested 200 deep. A
batch may not lose its good records to a bad one, so such a body is read again element by element;
what cannot be held becomes a value that validation rejects by itself.

A key that stands twice in an object counts with its last value, as in most parsers.
"""

import json
import re
from typing import Final

from pydantic_core import from_json

from aftercall.json_values import MAX_DEPTH
from aftercall.models import MAX_BATCH
from service.http.problems import MalformedJsonError, TooLargeError


class TooDeep:
    """Stands for a value nested so deep that no parser here reads it."""

    message: Final = f"is nested deeper than {MAX_DEPTH} levels"


TOO_DEEP: Final = TooDeep()

_SPACE = re.compile(r"[ \t\r\n]*")
_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"|\[++|\{++|\]++|\}++|"', re.DOTALL)


def parse_json(body: bytes, *, max_elements: int = MAX_BATCH) -> object:
    """The value of a JSON text in UTF-8.

    NaN, infinities and lone surrogates come through, for validation to name them with their place.
    What is nested too deep for a parser is `TOO_DEEP`: the whole, or an element of a list.

    Raises:
        MalformedJsonError: not JSON; the message gives line and column.
        TooLargeError: a top-level list of more than `max_elements`.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        value = _Patient(_decode(body), max_elements).value()
    if isinstance(value, list) and len(value) > max_elements:
        raise TooLargeError(_too_many(f"{len(value):,}", max_elements))
    return value


def _too_many(count: str, most: int) -> str:
    return (
        f"{count} records in one request, at most {most:,} are taken; nothing was stored, split it"
    )


def _decode(body: bytes) -> str:
    try:
        text = body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise MalformedJsonError(
            f"the body is not UTF-8 text: byte {error.start} does not fit; send JSON in UTF-8"
        ) from None
    return text.removeprefix("\ufeff")


class _Patient:
    """Reads a text with the standard parser, a top-level list element by element."""

    def __init__(self, text: str, max_elements: int) -> None:
        self._text = text
        self._max_elements = max_elements
        self._decoder = json.JSONDecoder(parse_int=_integer)

    def value(self) -> object:
        start = self._skip_space(0)
        is_list = self._text[start : start + 1] == "["
        value, end = self._list(start) if is_list else self._element(start)
        end = self._skip_space(end)
        if end != len(self._text):
            raise self._malformed("there is more after the end of the JSON value", end)
        return value

    def _list(self, start: int) -> tuple[object, int]:
        elements: list[object] = []
        at = self._skip_space(start + 1)
        if self._text[at : at + 1] == "]":
            return elements, at + 1
        while True:
            element, at = self._element(at)
            elements.append(element)
            if len(elements) > self._max_elements:
                # Each element costs a call here, so the rest is not even looked at.
                raise TooLargeError(
                    _too_many(f"more than {self._max_elements:,}", self._max_elements)
                )
            at = self._skip_space(at)
            separator = self._text[at : at + 1]
            if separator == "]":
                return elements, at + 1
            if separator != ",":
                raise self._malformed("expected ',' or ']'", at)
            at = self._skip_space(at + 1)

    def _element(self, start: int) -> tuple[object, int]:
        try:
            return self._decoder.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            raise self._malformed(error.msg, error.pos) from None
        except RecursionError:
            return TOO_DEEP, self._end_of(start)

    def _end_of(self, start: int) -> int:
        """Where the bracketed value at `start` ends, found without recursion."""
        depth = 0
        for token in _BRACKETS_AND_STRINGS.finditer(self._text, start):
            text = token[0]
            if text == '"':
                raise self._malformed("unterminated string", token.start())
            if text[0] in "[{":
                depth += len(text)
            elif text[0] in "]}":
                if len(text) >= depth:
                    return token.start() + depth
                depth -= len(text)
        raise self._malformed("the body ends inside a value", len(self._text))

    def _skip_space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _malformed(self, problem: str, at: int) -> MalformedJsonError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return MalformedJsonError(f"malformed JSON at line {line}, column {column}: {problem}")


def _integer(digits: str) -> int | float:
    """Python refuses to read integers beyond 4,300 digits; as a float they are infinite."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)
