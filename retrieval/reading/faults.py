"""What an error says is wrong with a parameter, and the literals that messages hold."""

import ast
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from aftercall.json_values import JsonValue, check_json_value
from retrieval.parameters import JsonType, Path

FaultKind = Literal[
    "missing",  # a required parameter is not there
    "unexpected",  # a parameter that the tool does not have
    "wrong_type",  # the value is of another type than expected
    "out_of_range",  # a number, length or count beyond a bound
    "not_allowed",  # a value outside a closed list
    "bad_format",  # text that is not in the expected form
    "not_found",  # the value names something that does not exist
    "invalid",  # refused, without a reason that could be read
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `path` leads to the parameter; it is empty when not said.

    `minimum` and `maximum` are inclusive bounds of a number, or of a length when `of_length`.
    """

    kind: FaultKind
    path: Path = ()
    expected_types: tuple[JsonType, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    of_length: bool = False
    allowed: tuple[JsonValue, ...] = ()
    suggested: str | None = None
    expected_format: str | None = None
    value_text: str | None = None
    shown_input: str | None = None
    """The input as the message shows it (Python's `repr`, perhaps cut); for "missing" the whole."""
    exclusive: bool = False
    """The bound itself is not allowed: exact for whole numbers only, which it was moved by one."""
    from_schema: bool = False
    stated: JsonValue = None
    """The one right value, where the message says it; `value_text` is the wrong one then."""
    multiple_of: float | None = None
    """The number must be a multiple of it."""
    guessed_place: bool = False
    """The name or its place is inferred: one inside the call has that name, or a key was shown."""
    given_types: tuple[JsonType, ...] = ()
    """What the value was, for messages that tell types and no name."""

    @property
    def parameter(self) -> str | None:
        """The top-level parameter concerned, when it is known."""
        return str(self.path[0]) if self.path else None


_TYPE_NAMES: dict[str, JsonType] = {
    "str": "string", "string": "string", "text": "string", "int": "integer", "integer": "integer",
    "int64": "integer", "i32": "integer", "i64": "integer", "u32": "integer",
    "u64": "integer", "usize": "integer", "f32": "number", "f64": "number",
    "int32": "integer", "long": "integer", "float": "number",
    "number": "number", "numbers": "number", "whole number": "integer",
    "whole numbers": "integer", "integers": "integer", "ints": "integer",
    "double": "number", "float64": "number", "numeric": "number",
    "decimal": "number", "bool": "boolean", "boolean": "boolean", "list": "array",
    "array": "array", "tuple": "array", "set": "array", "sequence": "array", "slice": "array",
    "dict": "object", "dictionary": "object", "object": "object", "mapping": "object",
    "map": "object", "struct": "object", "null": "null", "none": "null", "nonetype": "null",
}  # fmt: skip

_JSON_TYPES: list[tuple[type, JsonType]] = [
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"),
    (dict, "object"),
]  # fmt: skip
_LONGEST_NUMBER = 40
_NEXT_TO_EACH_OTHER = re.compile(r"[\w\"'] {1,3}[\"']|[\"'] {1,3}\w")

_OPENING = re.compile(r"[\[{]")
_MAX_OPENINGS = 20
"""Brackets tried as the start of JSON: a text of nothing but brackets is read in vain."""

_QUOTED = re.compile(r"""'([^'\n]{0,300})'|"([^"\n]{0,300})"|`([^`\n]{0,300})`""")


def json_type(name: str) -> JsonType | None:
    """The JSON type of a type name in any of the usual languages; None when it is none."""
    return _TYPE_NAMES.get(name.strip().strip("'\"`[]").lower())


def quoted(text: str) -> list[str]:
    """What stands in quotation marks or backticks, in order."""
    return [next(part for part in match if part is not None) for match in _quoted_groups(text)]


def value_list(text: str) -> tuple[JsonValue, ...]:
    """The values of a list in a message: `['a', 'b']`, `"a" | "b"`, `'a', 'b' or 'c'`, `a, b`."""
    text = text.strip().rstrip(".")
    if text.startswith(("[", "(", "{")) and (parsed := _parsed_list(text)) is not None:
        return parsed
    text = text.strip("[](){} ")
    if in_quotes := quoted(text):
        return tuple(in_quotes)
    parts = re.split(r"\s*(?:,|\||;|/)\s*(?:or |and )?|\s+(?:or|and)\s+", text)
    return tuple(scalar(part) for part in parts if part and len(part) <= 100)


def scalar(text: str) -> JsonValue:
    """A bare word as a JSON value: a number when it is one, else the text."""
    text = text.strip()
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text):
        return float(text)
    return text


def number(text: str) -> float | None:
    """A number as messages write them: `10`, `-1.5`, `1,000`; None for `1.2.3` and the like."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def is_number(text: str) -> bool:
    """Whether a text is a number as people write it."""
    return len(text) <= _LONGEST_NUMBER and number(text.strip()) is not None


def type_of(value: JsonValue) -> JsonType:
    """The JSON type of a value; whole numbers are integers."""
    for kind, name in _JSON_TYPES:
        if isinstance(value, kind):
            return name
    return "null"


def embedded_json(text: str) -> Iterator[JsonValue]:
    """JSON objects and arrays inside a message, outermost first; at most three."""
    decoder = json.JSONDecoder()
    position, found = 0, 0
    for _ in range(_MAX_OPENINGS):
        match = _OPENING.search(text, position)
        if found == 3 or match is None:
            return
        try:
            value, end = decoder.raw_decode(text, match.start())
            check_json_value(value)
        except (ValueError, RecursionError):  # InvalidJsonValueError is a ValueError
            position = match.start() + 1
            continue
        found += 1
        position = end
        yield value


def _parsed_list(text: str) -> tuple[JsonValue, ...] | None:
    if _NEXT_TO_EACH_OTHER.search(text):  # Go's and Terraform's lists; Python would join the texts
        return tuple(quoted(text))
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
            items = check_json_value(list(value)) if isinstance(value, list | tuple | set) else None
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(items, list) and not any(isinstance(item, list | dict) for item in items):
            return tuple(items)
    return None


def _quoted_groups(text: str) -> Iterator[tuple[str | None, str | None, str | None]]:
    for match in _QUOTED.finditer(text):
        yield match[1], match[2], match[3]
