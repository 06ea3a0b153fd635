"""Python values seen as JSON: their types and sizes, names without style, and JSON Schema.

Dataclass instances and pydantic models are seen as the objects that they become; sets and tuples
as arrays.
"""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel

from aftercall.errors import ConfigurationError
from aftercall.json_values import (
    MAX_DEPTH,
    InvalidJsonValueError,
    JsonObject,
    check_json_object,
)

if TYPE_CHECKING:  # the extra `contracts`
    import jsonschema_rs

JsonType = Literal["object", "array", "string", "number", "integer", "boolean"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)
ENVELOPES = frozenset({"result", "results", "items", "data", "value", "values"})
"""Keys that say nothing about what they hold. FastMCP puts what is no object under `result`."""
MAX_SCHEMA_CHARS = 100_000
"""As JSON. Schemas of real tools stay under 20,000."""
_MAX_PATTERN_BYTES = 1 << 20
"""Of a compiled regular expression: the matcher takes up to its size for each character."""
_MAX_TYPE_CHARS = 80

# What nearly all values are, found without asking the abstract types, which is many times slower.
_OF_PLAIN = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    bool: "boolean",
    type(None): "null",
}


def type_of(value: object) -> str:
    """The JSON type's name, `null` included; a foreign Python type gives its own name."""
    if (kind := _OF_PLAIN.get(type(value))) is not None:
        return kind
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number" if math.isfinite(value) else "number that is not finite"
    if isinstance(value, str):
        return "string"
    if items_of(value) is not None:
        return "array"
    if members_of(value) is not None:
        return "object"
    return f"Python {type(value).__name__[:_MAX_TYPE_CHARS]}"  # a class may be called `object`


def is_of_type(value: object, wanted: str) -> bool:
    """Whether `value` is a `wanted`; 3.0 is an integer, as in JSON Schema, and True no number."""
    kind = type_of(value)
    if wanted == "number":
        return kind in {"number", "integer"}
    if wanted == "integer":
        return kind == "integer" or (isinstance(value, float) and value.is_integer())
    return kind == wanted


def is_empty(value: object) -> bool:
    """Null, text without a visible character, and containers that hold nothing."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    items, members = items_of(value), members_of(value)
    return not items if items is not None else members is not None and not members


def members_of(value: object) -> Mapping[Any, Any] | None:
    """What an object holds by its keys; None for what is no object."""
    if isinstance(value, dict | Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def items_of(value: object) -> Sequence[Any] | None:
    """What an array holds, in order; None for what is no array."""
    if isinstance(value, list | tuple):
        return value
    return list(value) if isinstance(value, set | frozenset) else None


def described(value: object) -> str:
    """A value's type and size in words, without anything of what it says."""
    if isinstance(value, str):
        return f"string of {_count(len(value), 'character')}"
    if (items := items_of(value)) is not None:
        return f"array of {_count(len(items), 'item')}"
    members = members_of(value)
    return type_of(value) if members is None else f"object with {_count(len(members), 'key')}"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def folded(name: str) -> str:
    """A name without case and separators: of `movieTitles`, `movie_titles` and `Movie-Titles`."""
    return name.translate(str.maketrans("", "", "_- ")).casefold()


def is_envelope(key: object) -> bool:
    """Whether a key says nothing about what it holds."""
    return isinstance(key, str) and folded(key) in ENVELOPES


def check_schema(schema: object) -> None:
    """Say what is wrong with a JSON Schema before it is used.

    Draft 2020-12 unless `$schema` names another. Nothing is ever fetched. Regular expressions run
    in time linear in the text, so lookaround and backreferences are refused. `format` is not
    asserted, as the drafts have it by default.

    Raises:
        ConfigurationError: it is no valid schema, too large, or holds what is refused; or the extra
            `contracts` is missing.
    """
    try:
        _validator(json.dumps(check_json_object(schema)))
    except InvalidJsonValueError as error:
        raise ConfigurationError(f"json_schema: {error}") from error


def schema_errors(
    value: object, schema: JsonObject, *, most: int
) -> Iterator["jsonschema_rs.ValidationError"]:
    """What a value breaks of a schema that `check_schema` accepts."""
    validator = _validator(json.dumps(schema))
    try:
        yield from islice(validator.iter_errors(_plain(value, MAX_DEPTH)), most)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"json_schema: cannot be applied to the result ({error})"
        ) from error


@lru_cache(maxsize=256)
def _validator(text: str) -> "jsonschema_rs.Validator":
    try:
        import jsonschema_rs  # noqa: PLC0415  # the extra; most deliverables have no schema
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"json_schema needs {error.name}; install it with `pip install aftercall[contracts]`"
        ) from error
    if len(text) > MAX_SCHEMA_CHARS:
        raise ConfigurationError(
            f"json_schema has {len(text):,} characters; at most {MAX_SCHEMA_CHARS:,}"
        )
    try:
        return jsonschema_rs.validator_for(
            json.loads(text),
            retriever=_refused,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_BYTES),
        )
    except ValueError as error:
        place = "/".join(map(str, getattr(error, "instance_path", []))) or "its root"
        problem = getattr(error, "message", str(error))[:300]
        if problem.endswith('is not a "regex"'):
            problem += " that takes bounded time; write it without lookaround and backreferences"
        raise ConfigurationError(f"json_schema: at {place}: {problem}; correct it") from error


def _refused(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is another document, and nothing is fetched; use $defs")


def _plain(value: object, depth: int) -> Any:
    """The same value in dicts and lists, at most `depth` levels deep; RecursionError beyond."""
    if value is None or isinstance(value, str | int | float):
        return value
    if depth <= 0:
        raise RecursionError("it is nested too deeply")
    if (items := items_of(value)) is not None:
        return [_plain(item, depth - 1) for item in items]
    if (members := members_of(value)) is not None:
        return {str(key): _plain(item, depth - 1) for key, item in members.items()}
    return value
