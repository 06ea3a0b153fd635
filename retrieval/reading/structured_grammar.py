"""Errors that come as JSON inside the message or its details: zod, ajv, pydantic's error list."""

from collections.abc import Iterator

from aftercall.json_patch import JsonPatchError, parse_pointer
from aftercall.json_values import JsonObject, JsonValue
from retrieval.reading.faults import Fault, JsonType, Path
from retrieval.reading.literals import json_type
from retrieval.reading.pydantic_grammar import fault_of

_MAX_ISSUES = 20


def read_structured(value: JsonValue) -> Iterator[Fault]:
    """The faults in a JSON value that a validator made; none when it is something else."""
    if isinstance(value, dict):
        inner = value.get("issues") or value.get("errors") or value.get("detail")
        if isinstance(inner, list):
            yield from read_structured(inner)
        else:
            yield from _one(value)
    elif isinstance(value, list):
        for item in value[:_MAX_ISSUES]:
            if isinstance(item, dict):
                yield from _one(item)


def _one(issue: JsonObject) -> Iterator[Fault]:
    if "keyword" in issue and ("instancePath" in issue or "dataPath" in issue):
        yield from _ajv(issue)
    elif isinstance(issue.get("path"), list) and isinstance(issue.get("code"), str):
        yield from _zod(issue, _path(issue["path"]))
    elif isinstance(issue.get("loc"), list) and isinstance(kind := issue.get("type"), str):
        yield _pydantic(issue, kind, _path(issue["loc"]))
    elif isinstance(field := issue.get("field"), str) and isinstance(issue.get("code"), str):
        # GitHub's REST API: {"resource": "Issue", "field": "title", "code": "missing_field"}
        missing = str(issue["code"]).startswith("missing")
        yield Fault("missing" if missing else "invalid", (field,))


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
        options = issue.get("options") or issue.get("values") or [issue.get("expected")]
        yield Fault("not_allowed", path, allowed=_scalars(options))
    elif code in ("too_big", "too_small"):
        kind = issue.get("type") or issue.get("origin")
        yield Fault(
            "out_of_range",
            path,
            minimum=_number(issue.get("minimum")),
            maximum=_number(issue.get("maximum")),
            of_length=kind in ("string", "array", "set"),
        )
    elif code in ("invalid_string", "invalid_format"):
        form = issue.get("validation") or issue.get("format")
        yield Fault("bad_format", path, expected_format=form if isinstance(form, str) else None)
    else:
        yield Fault("invalid", path)


def _ajv(issue: JsonObject) -> Iterator[Fault]:
    at = issue.get("instancePath") or issue.get("dataPath") or ""
    path = _pointed(at) if isinstance(at, str) else ()
    params = issue.get("params")
    params = params if isinstance(params, dict) else {}
    keyword = issue["keyword"]
    limit = _number(params.get("limit"))
    if keyword == "required":
        yield Fault("missing", (*path, str(params.get("missingProperty"))))
    elif keyword == "additionalProperties":
        yield Fault("unexpected", (*path, str(params.get("additionalProperty"))))
    elif keyword == "type":
        yield Fault("wrong_type", path, expected_types=_types(params.get("type")))
    elif keyword in ("enum", "const"):
        allowed = params.get("allowedValues") or [params.get("allowedValue")]
        yield Fault("not_allowed", path, allowed=_scalars(allowed))
    elif keyword in ("maximum", "minimum"):
        yield Fault("out_of_range", path, **{str(keyword): limit})  # type: ignore[arg-type]  # the keyword is the field's name
    elif keyword in ("maxLength", "maxItems"):
        yield Fault("out_of_range", path, maximum=limit, of_length=True)
    elif keyword in ("minLength", "minItems"):
        yield Fault("out_of_range", path, minimum=limit, of_length=True)
    elif keyword in ("format", "pattern"):
        yield Fault("bad_format", path, expected_format=str(params.get(str(keyword))))
    else:
        yield Fault("invalid", path)


def _pointed(at: str) -> Path:
    try:
        return _path(parse_pointer(at))
    except JsonPatchError:  # ajv 6 writes `.a.b` by default, and a message may hold anything
        return ()


def _path(parts: JsonValue | list[str]) -> Path:
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


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
