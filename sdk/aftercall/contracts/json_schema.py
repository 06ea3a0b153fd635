"""JSON Schema within a deliverable (extra `contracts`), bounded in what it can ask for.

Draft 2020-12 unless `$schema` names another. Refused when the deliverable is made:

- `$ref` to another document: nothing is ever fetched;
- `pattern` with lookaround or backreferences: patterns run on Rust's `regex` (through pydantic),
  which takes time linear in the text, and that has neither;
- `patternProperties`, which jsonschema checks with Python's `re` in several places, where a hostile
  pattern can run for ever.

`format` is not asserted, as the drafts have it by default.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from pydantic import StringConstraints, TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic_core import SchemaError as PydanticSchemaError
from referencing import Registry
from referencing.jsonschema import specification_with

from aftercall.contracts.json_types import plain
from aftercall.counted_schema import StepsUsedUpError, counted_class, counting, spend
from aftercall.errors import ConfigurationError
from aftercall.json_values import (
    MAX_DEPTH,
    InvalidJsonValueError,
    JsonObject,
    JsonValue,
    canonical_json,
    check_json_object,
)

MAX_SCHEMA_CHARS = 100_000
"""As JSON. Schemas of real tools stay under 20,000."""

MAX_STEPS = 100_000
"""Keywords applied to one value, some 10 microseconds each: about a second at the very most."""

_MAX_PATTERN_CHARS = 500
_CHARS_PER_STEP = 1_000
"""A state of Rust's matcher takes up to 8 nanoseconds for each character (measured with
`(.{99}){99}$` on 100,000 characters), so that a thousand of them take about as long as a step."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = ("const", "enum", "default", "examples")


class TooCostlyError(ConfigurationError):
    """A schema asks for more work on a value than is done, or cannot be applied to it at all."""


def check_schema(schema: object) -> None:
    """Say what is wrong with a schema before it is used.

    Raises:
        ConfigurationError: it is no valid schema, too large, or holds what is refused.
    """
    try:
        checked = check_json_object(schema)
    except InvalidJsonValueError as error:
        raise ConfigurationError(f"json_schema: {error}") from error
    _validator(_canonical(checked))


def schema_errors(value: object, schema: JsonObject, *, most: int) -> list[ValidationError]:
    """What a value breaks of a schema that `check_schema` accepts, in the schema's order.

    Raises:
        TooCostlyError: more than `MAX_STEPS`, endless references, or a value it cannot take.
    """
    validator = _validator(_canonical(schema))
    try:
        with counting([MAX_STEPS]):
            return list(islice(validator.iter_errors(plain(value, MAX_DEPTH)), most))
    except StepsUsedUpError as error:
        raise TooCostlyError(
            f"json_schema: takes more than {MAX_STEPS:,} steps on this result; make it simpler"
        ) from error
    except RecursionError as error:
        raise TooCostlyError("json_schema: the value or the references nest too deeply") from error
    except Exception as error:
        raise TooCostlyError(
            f"json_schema: cannot be applied to the result ({type(error).__name__})"
        ) from error


def _canonical(schema: JsonObject) -> str:
    # With the order of its keys, in which the errors are told.
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=256)
def _validator(canonical: str) -> Validator:
    if len(canonical) > MAX_SCHEMA_CHARS:
        raise ConfigurationError(
            f"json_schema has {len(canonical):,} characters; at most {MAX_SCHEMA_CHARS:,}"
        )
    schema = json.loads(canonical)
    kind = _draft(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path) or "its root"
        raise ConfigurationError(
            f"json_schema: at {place}: {error.message[:300]}; correct it"
        ) from error
    except RecursionError as error:
        raise ConfigurationError("json_schema is nested too deeply; flatten it") from error
    _refuse(schema, "json_schema")
    _check_references(kind, schema)
    return _bounded(kind)(schema, registry=Registry())


_NO_DRAFT: type[Validator] = extend(Draft202012Validator)  # type: ignore[no-untyped-call]  # jsonschema has no types here
"""Stands for a `$schema` that nobody knows."""


def _draft(schema: JsonObject) -> type[Validator]:
    named = schema.get("$schema")
    if named is None:
        return Draft202012Validator
    kind = validator_for(schema, default=_NO_DRAFT) if isinstance(named, str) else _NO_DRAFT
    if kind is _NO_DRAFT:
        raise ConfigurationError(
            f"json_schema: $schema names no known draft: {str(named)[:100]!r}; leave it out for "
            "draft 2020-12"
        )
    return kind


def _refuse(schema: JsonValue, place: str) -> None:
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            _refuse(part, f"{place}/{index}")
    if not isinstance(schema, dict):
        return
    for key, part in schema.items():
        here = f"{place}/{key}"
        if key in _REFERENCES and isinstance(part, str) and not part.startswith("#"):
            raise ConfigurationError(
                f"{here} points to another document, and nothing is fetched; put what it points "
                'to under "$defs" and point there'
            )
        if key == "patternProperties":
            raise ConfigurationError(f"{here} is not supported; use propertyNames with a pattern")
        if key == "pattern" and isinstance(part, str):
            _check_pattern(part, here)
        if key not in _DATA:
            _refuse(part, here)


def _check_pattern(pattern: str, place: str) -> None:
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ConfigurationError(f"{place} has more than {_MAX_PATTERN_CHARS} characters")
    try:
        _matcher(pattern)
    except PydanticSchemaError as error:
        raise ConfigurationError(
            f"{place} cannot be matched in bounded time: lookaround, backreferences and large "
            "counted repeats are not supported; write it without"
        ) from error


def _check_references(kind: type[Validator], schema: JsonObject) -> None:
    """Every `#/...` must lead somewhere; a schema with an `$id` may have several such places."""
    if "$id" in canonical_json(schema):
        return
    specification = specification_with(str(kind.META_SCHEMA["$schema"]))
    resource = specification.create_resource(schema)
    resolver = Registry[Any]().with_resource("", resource).resolver()
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Exception as error:
            raise ConfigurationError(
                f'json_schema: the reference {reference[:200]!r} leads nowhere; is it in "$defs"?'
            ) from error


def _references(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key == "$ref" and isinstance(part, str):
                yield part
            elif key not in _DATA:
                yield from _references(part)


@lru_cache(maxsize=16)
def _bounded(kind: type[Validator]) -> Callable[..., Validator]:
    """The same validator class with counted steps and safe regular expressions."""
    return counted_class(kind, {"pattern": _pattern, "uniqueItems": _unique_items})


def _pattern(
    _validator: Any, pattern: str, instance: JsonValue, _schema: JsonValue
) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    spend(_states(pattern) * len(instance) // _CHARS_PER_STEP)
    try:
        _matcher(pattern).validate_python(instance)
    except PydanticError:
        yield ValidationError("does not match the pattern")


def _states(pattern: str) -> int:
    """About how many states the matcher may be in at once: repeats are written out by it."""
    states, number = len(pattern), ""
    inside = False
    for char in pattern:
        if char == "{":
            inside, number = True, ""
        elif inside and char.isascii() and char.isdigit():
            number += char
        elif inside and char == ",":
            number = ""
        elif inside:
            inside = False
            states *= max(int(number or "1"), 1)
    return states


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> TypeAdapter[str]:
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])


def _unique_items(
    _validator: Any,
    wanted: bool,  # noqa: FBT001  # jsonschema calls it
    instance: JsonValue,
    _schema: JsonValue,
) -> Iterator[ValidationError]:
    """By the items' canonical text: the library's own compares each item with each."""
    if not wanted or not isinstance(instance, list):
        return
    seen = {canonical_json(_whole(item)) for item in instance}
    if len(seen) < len(instance):
        yield ValidationError("has items that are not unique")


def _whole(value: JsonValue) -> JsonValue:
    """1.0 and 1 are one number in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {k: _whole(v) for k, v in value.items()} if isinstance(value, dict) else value
