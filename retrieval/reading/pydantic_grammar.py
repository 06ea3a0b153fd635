"""Messages of pydantic 1 and 2, as FastMCP, FastAPI and most Python servers pass them on."""

import re
from collections.abc import Iterator
from dataclasses import replace

from retrieval.paths import Path
from retrieval.reading.faults import Fault, JsonType
from retrieval.reading.literals import number, value_list

# One error: its location on a line of its own, then the message, indented, with the type in
# brackets (pydantic 2) or parentheses (pydantic 1).
_V2 = re.compile(
    r"^(?P<loc>\S[^\n]{0,300})\n\s+(?P<message>[^\n]+?) \[type=(?P<type>[\w.]+)"
    r"(?:, input_value=(?P<value>[^\n]*), input_type=\w+)?\]",
    re.MULTILINE,
)
_V1 = re.compile(
    r"^(?P<loc>\S[^\n]{0,300})\n\s+(?P<message>[^\n]+?) \(type=(?P<type>[\w.]+)[^)\n]*\)",
    re.MULTILINE,
)

_TYPES: dict[str, tuple[JsonType, ...]] = {
    "int": ("integer",), "float": ("number",), "decimal": ("number",), "bool": ("boolean",),
    "string": ("string",), "str": ("string",), "list": ("array",), "tuple": ("array",),
    "set": ("array",), "frozen_set": ("array",), "dict": ("object",), "mapping": ("object",),
    "model": ("object",), "model_attributes": ("object",), "dataclass": ("object",),
    "none_required": ("null",), "integer": ("integer",),
}  # fmt: skip

_FORMATS = {"date": "date", "datetime": "date-time", "time": "time", "url": "uri", "uuid": "uuid"}
_BOUND = re.compile(r"(?P<word>greater|less) than (?P<equal>or equal to )?(?P<n>-?[\d.,]*\d)")
_COUNT = re.compile(r"at (?P<word>least|most) (?P<n>\d+) (?:item|character|element)")
_STEP = re.compile(r"multiple of (?P<step>-?[\d.]{1,20})")
_PATTERN = re.compile(r"should match pattern '(?P<pattern>[^\n]+)'")


def read_pydantic(message: str) -> Iterator[Fault]:
    """The faults that a pydantic message names; none when it is not pydantic's."""
    for match in _V2.finditer(message):
        fault = fault_of(_path(match["loc"]), match["type"], match["message"])
        yield replace(fault, shown_input=match["value"])
    for match in _V1.finditer(message):
        yield fault_of(_path(match["loc"]), match["type"], match["message"])


def _path(location: str) -> Path:
    parts = re.split(r"\s*->\s*|\.", location.strip())
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def fault_of(path: Path, code: str, text: str) -> Fault:
    """The fault of one pydantic error: its location, its type and its message."""
    code = code.removeprefix("value_error.").removeprefix("type_error.")
    if code in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Fault("missing", path)
    if code in ("extra_forbidden", "unexpected_keyword_argument", "extra"):
        return Fault("unexpected", path)
    if code in ("literal_error", "enum", "const"):
        listed = re.split(r"should be |permitted: ", text, maxsplit=1)[-1]
        return Fault("not_allowed", path, allowed=value_list(listed))
    if bounded := _bounded(path, text):
        return bounded
    stem = re.sub(r"_(?:type|parsing|from_float|attributes_type|class_type)$", "", code)
    if types := _TYPES.get(stem):
        return Fault("wrong_type", path, expected_types=types)
    return _formed(path, code, text)


def _formed(path: Path, code: str, text: str) -> Fault:
    if pattern := _PATTERN.search(text):
        return Fault("bad_format", path, expected_format=pattern["pattern"])
    if form := _FORMATS.get(code.split("_", maxsplit=1)[0].split(".", maxsplit=1)[0]):
        return Fault("bad_format", path, expected_format=form)
    if "valid email address" in text:
        return Fault("bad_format", path, expected_format="email")
    if step := _STEP.search(text):
        return Fault("invalid", path, multiple_of=number(step["step"]))
    return Fault("invalid", path)


def _bounded(path: Path, text: str) -> Fault | None:
    if count := _COUNT.search(text):
        limit = number(count["n"])
        if count["word"] == "least":
            return Fault("out_of_range", path, minimum=limit, of_length=True)
        return Fault("out_of_range", path, maximum=limit, of_length=True)
    if (bound := _BOUND.search(text)) and (limit := number(bound["n"])) is not None:
        exclusive = not bound["equal"]
        if bound["word"] == "greater":
            return Fault("out_of_range", path, minimum=limit + exclusive, exclusive=exclusive)
        return Fault("out_of_range", path, maximum=limit - exclusive, exclusive=exclusive)
    return None
