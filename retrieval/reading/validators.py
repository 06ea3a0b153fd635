"""Errors of validators: pydantic's text, and JSON of zod, ajv, pydantic and APIs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from aftercall.json_patch import JsonPatchError, parse_pointer
from aftercall.json_values import JsonObject, JsonValue
from retrieval.parameters import JsonType, Path
from retrieval.reading.faults import Fault, json_type, number, value_list
from retrieval.reading.grammar import FORMATS, path_of
from retrieval.reading.phrases import read_text

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


_MAX_ISSUES = 20


def read_structured(value: JsonValue) -> Iterator[Fault]:
    """The faults in a JSON value of a validator or an API; none when it is something else."""
    yield from _read(value, depth=0)


def _read(value: JsonValue, depth: int) -> Iterator[Fault]:
    if isinstance(value, list):
        for item in value[:_MAX_ISSUES]:
            if isinstance(item, dict):
                yield from _one(item, depth)
    elif isinstance(value, dict):
        yield from _one(value, depth)


def _one(issue: JsonObject, depth: int) -> Iterator[Fault]:
    if "keyword" in issue and ("instancePath" in issue or "dataPath" in issue):
        yield from _ajv(issue)
    elif isinstance(issue.get("path"), list) and isinstance(issue.get("code"), str):
        yield from _zod(issue, _steps(issue["path"]))
    elif isinstance(issue.get("loc"), list) and isinstance(kind := issue.get("type"), str):
        yield _pydantic(issue, kind, _steps(issue["loc"]))
    elif (place := _place(issue)) is not None:
        yield from _about(place, _text(issue), str(issue.get("code", "")))
    elif depth < _MAX_DEPTH:
        yield from _inside(issue, depth)


def _inside(body: JsonObject, depth: int) -> Iterator[Fault]:
    """The faults of an API's error body: its list of issues, or its message."""
    found = [
        fault
        for key in _LISTS
        if isinstance(body.get(key), list) or (key in _WRAPPERS and isinstance(body.get(key), dict))
        for fault in _read(body[key], depth + 1)
    ]
    if not found and (text := _text(body)):
        found = list(read_text(text))
    yield from found


_LISTS = ("issues", "errors", "detail", "details", "error")
_WRAPPERS = frozenset({"error", "details", "detail"})
_TEXTS = ("message", "msg", "detail", "reason", "description", "title", "error")
_PLACES = ("field", "param", "parameter", "name", "property", "pointer")
_MAX_DEPTH = 3


def _place(issue: JsonObject) -> Path | None:
    """Where one issue of an API's body says that it is; None when it says no place."""
    for key in _PLACES:
        name = issue.get(key)
        if not isinstance(name, str) or not 0 < len(name) <= 200:
            continue
        if key == "name" and not ("reason" in issue or "message" in issue):
            continue
        return path_of("'" + name.removeprefix("#") + "'") or None
    return None


def _text(issue: JsonObject) -> str:
    texts = (text for key in _TEXTS if isinstance(text := issue.get(key), str))
    return next(texts, "")


def _about(place: Path, text: str, code: str = "") -> Iterator[Fault]:
    """The faults that a text tells of the parameter at a place; it may say no name, or its own."""
    if code.startswith("missing") or code == "required":
        yield Fault("missing", place)
        return
    clear = [
        replace(fault, path=place)
        for fault in read_text(f"{place[-1]}: {text}")
        if fault.kind not in ("invalid", "not_found") or fault.suggested or fault.multiple_of
    ]
    if clear:
        yield from clear
    elif _REQUIRED.search(text):
        yield Fault("missing", place)
    else:
        yield Fault("invalid", place)


_REQUIRED = re.compile(r"\b(?:is|are|field)? ?required\b|\bcan't be blank\b", re.IGNORECASE)


def _pydantic(issue: JsonObject, kind: str, path: Path) -> Fault:
    """One of pydantic's `errors()`; FastAPI puts the part of the request before the path."""
    if len(path) > 1 and path[0] in ("body", "query", "path", "header", "cookie"):
        path = path[1:]
    message = issue.get("msg")
    return fault_of(path, kind, message if isinstance(message, str) else "")


def _zod(issue: JsonObject, path: Path) -> Iterator[Fault]:
    code = issue["code"]
    if code == "invalid_type":
        missing = issue.get("received") == "undefined" or "undefined" in str(issue.get("message"))
        if missing:
            yield Fault("missing", path)
        else:
            yield Fault("wrong_type", path, expected_types=_types(issue.get("expected")))
    elif code == "unrecognized_keys":
        for key in _strings(issue.get("keys")):
            yield Fault("unexpected", (*path, key))
    elif code in ("invalid_enum_value", "invalid_value", "invalid_literal"):
        options = _scalars(issue.get("options") or issue.get("values") or [issue.get("expected")])
        yield Fault("not_allowed", path, allowed=options, stated=_only(options))
    elif code in ("too_big", "too_small"):
        kind = issue.get("type") or issue.get("origin")
        shift = 0 if issue.get("inclusive", True) else 1
        low, high = _number(issue.get("minimum")), _number(issue.get("maximum"))
        yield Fault(
            "out_of_range",
            path,
            minimum=None if low is None else low + shift,
            maximum=None if high is None else high - shift,
            of_length=kind in ("string", "array", "set"),
            exclusive=bool(shift),
        )
    elif code == "not_multiple_of":
        step = issue.get("multipleOf") or issue.get("divisor")
        yield Fault("invalid", path, multiple_of=_number(step))
    elif code in ("invalid_string", "invalid_format"):
        form = issue.get("validation") or issue.get("format")
        if form == "regex" and isinstance(issue.get("pattern"), str):
            form = str(issue["pattern"]).strip("/")
        name = FORMATS.get(form.lower(), form) if isinstance(form, str) else None
        yield Fault("bad_format", path, expected_format=name)
    else:
        yield Fault("invalid", path)


def _ajv(issue: JsonObject) -> Iterator[Fault]:
    at = issue.get("instancePath") or issue.get("dataPath") or ""
    path = _pointed(at) if isinstance(at, str) else ()
    params = issue.get("params")
    params = params if isinstance(params, dict) else {}
    keyword = str(issue["keyword"])
    if keyword in ("required", "dependentRequired", "dependencies"):
        yield Fault("missing", (*path, str(params.get("missingProperty"))))
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        yield Fault("unexpected", (*path, str(params.get(keyword[:-10] + "Property"))))
    elif keyword == "type":
        yield Fault("wrong_type", path, expected_types=_types(params.get("type")))
    elif keyword in ("enum", "const"):
        allowed = _scalars(params.get("allowedValues") or [params.get("allowedValue")])
        yield Fault("not_allowed", path, allowed=allowed, stated=_only(allowed))
    elif keyword in _BOUNDS:
        yield _ajv_bound(keyword, path, _number(params.get("limit")))
    elif keyword == "multipleOf":
        yield Fault("invalid", path, multiple_of=_number(params.get("multipleOf")))
    elif keyword in ("format", "pattern"):
        yield Fault("bad_format", path, expected_format=str(params.get(keyword)))
    else:
        yield Fault("invalid", path)


_BOUNDS = frozenset(
    ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "maxLength", "minLength",
     "maxItems",  "minItems", "maxProperties", "minProperties")
)  # fmt: skip


def _ajv_bound(keyword: str, path: Path, limit: float | None) -> Fault:
    exclusive = keyword.startswith("exclusive")
    of_length = not exclusive and keyword not in ("maximum", "minimum")
    if "max" in keyword.lower():
        high = None if limit is None else limit - exclusive
        return Fault("out_of_range", path, maximum=high, of_length=of_length, exclusive=exclusive)
    low = None if limit is None else limit + exclusive
    return Fault("out_of_range", path, minimum=low, of_length=of_length, exclusive=exclusive)


def _pointed(at: str) -> Path:
    try:
        return _steps(parse_pointer(at))
    except JsonPatchError:  # ajv 6 writes `.a.b` by default, and a message may hold anything
        return ()


def _steps(parts: JsonValue | list[str]) -> Path:
    if not isinstance(parts, list):
        return ()
    return tuple(
        int(part) if isinstance(part, str) and part.isdecimal() else part
        for part in parts
        if isinstance(part, str | int)
    )


def _types(value: JsonValue) -> tuple[JsonType, ...]:
    names = value if isinstance(value, list) else str(value).split(",")
    return tuple(kind for name in names if (kind := json_type(str(name))))


def _strings(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _scalars(value: JsonValue) -> tuple[JsonValue, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str | int | float | bool))


def _only(options: tuple[JsonValue, ...]) -> JsonValue:
    """The one right value, where there is one."""
    return options[0] if len(options) == 1 else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
