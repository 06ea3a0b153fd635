"""What the result of a tool must be, in constraints that a machine can check.

    Deliverable.from_dict({"fields": {"titles": {"min_items": 1}}})

Utility that should fail at once is asked for here and not in prose (document 003 of the seeds):
`acceptance` is kept for people, and never executed or matched.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from aftercall.errors import ConfigurationError
from aftercall.explain import explain_error, nearest_name, require_extra
from aftercall.json_schemas import plain_schema
from aftercall.json_values import MAX_DEPTH, JsonObject, JsonValue
from aftercall.models.base import Object

# Python values as JSON: dataclasses and pydantic models as objects, sets and tuples as arrays.

if TYPE_CHECKING:  # the extra `contracts`
    import jsonschema_rs

JsonType = Literal["object", "array", "string", "number", "integer", "boolean"]
ENVELOPES = frozenset({"result", "results", "items", "data", "value", "values"})
"""Keys that say nothing about what they hold. FastMCP puts what is no object under `result`."""
_MAX_PATTERN_BYTES = 1 << 20
"""Of a compiled regular expression: the matcher takes up to its size for each character."""

# What nearly all values are, found without asking the abstract types, which is many times slower.
_OF_PLAIN = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    bool: "boolean",
    type(None): "null",
}


def name_type(value: object) -> str:
    """Return the JSON type's name, `null` included; a foreign Python type gives its own name."""
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
    return f"Python {type(value).__name__[:80]}"  # a class may be called `object`


def is_of_type(value: object, wanted: str) -> bool:
    """Return whether `value` is a `wanted`.

    3.0 is an integer, as in JSON Schema, and True no number.
    """
    kind = name_type(value)
    if wanted == "number":
        return kind in {"number", "integer"}
    if wanted == "integer":
        return kind == "integer" or (isinstance(value, float) and value.is_integer())
    return kind == wanted


def holds_nothing(value: object) -> bool:
    """Null, text without a visible character, and containers that hold nothing."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    items, members = items_of(value), members_of(value)
    return not items if items is not None else members is not None and not members


def members_of(value: object) -> Mapping[Any, Any] | None:
    """Return what an object holds by its keys; None for what is no object."""
    if isinstance(value, dict | Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def items_of(value: object) -> Sequence[Any] | None:
    """Return what an array holds, in order; None for what is no array."""
    if isinstance(value, list | tuple):
        return value
    return list(value) if isinstance(value, set | frozenset) else None


def describe_value(value: object) -> str:
    """Return a value's type and size in words, without anything of what it states."""
    if isinstance(value, str):
        return f"string of {_count_units(len(value), 'character')}"
    if (items := items_of(value)) is not None:
        return f"array of {_count_units(len(items), 'item')}"
    members = members_of(value)
    return (
        name_type(value) if members is None else f"object with {_count_units(len(members), 'key')}"
    )


def _count_units(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def fold_name(name: str) -> str:
    """Return a name without case and separators.

    Of `movieTitles`, `movie_titles` and `Movie-Titles`.
    """
    return name.translate(str.maketrans("", "", "_- ")).casefold()


def is_envelope(key: object) -> bool:
    """Return whether a key states nothing about what it holds."""
    return isinstance(key, str) and fold_name(key) in ENVELOPES


def check_schema(schema: JsonObject) -> JsonObject:
    """Return a JSON Schema itself; its mistakes are stated before it is used.

    Draft 2020-12 unless `$schema` names another. Nothing is ever fetched. Regular expressions run
    in time linear in the text, so lookaround and backreferences are refused. `format` is not
    asserted, as the drafts have it by default. Anything but a schema is a `ValueError`.
    """
    _compile_validator(json.dumps(schema))
    return schema


def accepts_value(schema: JsonObject, value: JsonValue) -> bool:
    """Return whether a schema, as it is meant, takes a value.

    A `ValueError` where it cannot be written.
    """
    return _plain_validator(json.dumps(schema)).is_valid(value)


def schema_errors(
    value: object, schema: JsonObject | None, *, most: int
) -> Iterator["jsonschema_rs.ValidationError"]:
    """Yield what a value breaks of a schema that `check_schema` accepts; nothing without one."""
    if schema is None:
        return
    validator = _compile_validator(json.dumps(schema))
    try:
        yield from islice(validator.iter_errors(_plain_value(value, MAX_DEPTH)), most)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"json_schema: cannot be applied to the result ({error})"
        ) from error


@lru_cache(maxsize=256)
def _plain_validator(text: str) -> "jsonschema_rs.Validator":
    return _compile_validator(json.dumps(plain_schema(json.loads(text))))


@lru_cache(maxsize=256)
def _compile_validator(text: str) -> "jsonschema_rs.Validator":
    with require_extra("contracts", "json_schema"):
        import jsonschema_rs  # noqa: PLC0415  # the extra; most deliverables have no schema
    try:
        return jsonschema_rs.validator_for(
            json.loads(text),
            retriever=_refuse_document,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_BYTES),
        )
    except ValueError as error:
        place = "/".join(map(str, getattr(error, "instance_path", []))) or "its root"
        problem = getattr(error, "message", str(error))[:300]
        if problem.endswith('is not a "regex"'):
            problem += " that takes bounded time; write it without lookaround and backreferences"
        raise ValueError(f"at {place}: {problem}; correct it") from error


def _refuse_document(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is another document, and nothing is fetched; use $defs")


def _plain_value(value: object, depth: int) -> Any:
    """Return the same value in dicts and lists, at most `depth` levels deep.

    RecursionError beyond.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if depth <= 0:
        raise RecursionError("it is nested too deeply")
    if (items := items_of(value)) is not None:
        return [_plain_value(item, depth - 1) for item in items]
    if (members := members_of(value)) is not None:
        return {str(key): _plain_value(item, depth - 1) for key, item in members.items()}
    return value


_ABOUT = {
    "required": "object",
    "fields": "object",
    "min_items": "array",
    "max_items": "array",
    "items": "array",
    "min_length": "string",
    "max_length": "string",
    "minimum": "number",
    "maximum": "number",
}
"""What the value is, for which a constraint is meant."""
_BOUNDS = (("min_items", "max_items"), ("min_length", "max_length"), ("minimum", "maximum"))
_OF_JSON_SCHEMA = frozenset({
    "properties", "schema", "enum", "const", "pattern", "format", "exclusiveminimum",
    "exclusivemaximum", "uniqueitems", "anyof", "oneof", "allof", "additionalproperties",
})  # fmt: skip
"""Words that are no constraint here; a caller does not mean a key of the result by them."""


def _constraint_keys(value: object) -> tuple[str, ...]:
    """Return the keys that a constraint names, each once; a lone one may stand by itself."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        raise ValueError("must be an array of keys")
    return tuple(dict.fromkeys(names))


Size = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Deliverable(BaseModel):
    """What a result must be. Anything that is left out is not asked for.

    A constraint states what it is about: `min_items` asks for an array, `required` for an object,
    `min_length` for a string, `minimum` for a number, also where `type` is left out.

    Args:
        type: `object`, `array`, `string`, `number`, `integer` or `boolean`.
        required: keys that an object must have.
        non_empty: True: not null, not empty, and no text of blanks only. Or the keys whose values
            must be so, which makes them required. Numbers and booleans are never empty.
        minimum, maximum: of a number, themselves allowed.
        fields: what the values of an object's keys must be. A key may be missing or null unless it
            is required, or its deliverable asks for content (`min_items` of 1 or more, `min_length`
            of 1 or more, `non_empty`, `required`).
        items: what each item of an array must be.
        json_schema: a JSON Schema, draft 2020-12 unless its `$schema` states otherwise (extra
            `contracts`). See `check_schema` for what is refused in one.
        acceptance: what else is expected, in prose. Never executed or matched.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: JsonType | None = None
    required: Annotated[tuple[str, ...], BeforeValidator(_constraint_keys)] = ()
    non_empty: Annotated[
        bool | tuple[str, ...],
        BeforeValidator(
            lambda value: value if isinstance(value, bool) else _constraint_keys(value)
        ),
    ] = False
    min_items: Size | None = None
    max_items: Size | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    min_length: Size | None = None
    max_length: Size | None = None
    fields: "dict[str, Deliverable]" = Field(default_factory=dict)
    items: "Deliverable | None" = None
    json_schema: Annotated[Object, AfterValidator(check_schema)] | None = None
    acceptance: Annotated[str, Field(max_length=4_000)] | None = None

    @classmethod
    def from_dict(cls, content: object) -> "Deliverable":
        """Read a deliverable; constraints may be written in any style (`min_items`, `minItems`).

        An object that holds nothing but objects under names that are no constraints is the short
        form of `fields`: `{"titles": {"min_items": 1}}`. A `Deliverable` is returned as it is. A
        `ConfigurationError` names the constraint at fault with its place, and the cure.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise ConfigurationError(f"the deliverable: {explain_error(error, cls)}") from error
        except RecursionError as error:
            raise ConfigurationError("the deliverable is nested too deeply; flatten it") from error

    @model_validator(mode="before")
    @classmethod
    def _in_any_style(cls, content: object) -> object:
        if not isinstance(content, Mapping):
            return content
        if _is_short_form(content):
            return {"fields": content}
        read: dict[object, object] = {}
        for key, value in content.items():
            name = _by_style().get(fold_name(key), key) if isinstance(key, str) else key
            if name in read:
                raise ValueError(f"{name} stands twice, in two styles; keep one")
            read[name] = value
        return {name: value for name, value in read.items() if value is not None}

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        about: list[tuple[str, str | None]] = [(f"type {self.type!r}", self.type)]
        about += [(name, _ABOUT[name]) for name in _ABOUT if self._is_given(name)]
        about += [("non_empty with keys", "object" if self.full else None)]
        about += [("json_schema", _type_in(self.json_schema))]
        kinds = [(name, "number" if kind == "integer" else kind) for name, kind in about if kind]
        for name, kind in kinds[1:]:
            first, first_kind = kinds[0]
            if kind != first_kind:
                raise ValueError(
                    f"{first} is about a {first_kind} and {name} about a {kind}; keep one of them"
                )
        for low_name, high_name in _BOUNDS:
            low, high = getattr(self, low_name), getattr(self, high_name)
            if low is not None and high is not None and low > high:
                raise ValueError(
                    f"{low_name} is {low:g} and {high_name} is {high:g}, which nothing can meet; "
                    "exchange or change them"
                )
        return self

    def _is_given(self, name: str) -> bool:
        return getattr(self, name) not in (None, (), {})

    @property
    def full(self) -> Sequence[str]:
        """Keys whose values must not be empty."""
        return () if isinstance(self.non_empty, bool) else self.non_empty

    @cached_property
    def expected_type(self) -> str | None:
        """Type asked for, by `type` or by what the other constraints are about."""
        if self.type is not None or self.full:
            return self.type or "object"
        implied = (_ABOUT[name] for name in _ABOUT if self._is_given(name))
        return next(implied, _type_in(self.json_schema))

    @cached_property
    def asks_for_content(self) -> bool:
        """Return whether an empty answer fails it, so that a field of it must be there."""
        return bool(
            self.non_empty
            or self.required
            or self.min_items
            or self.min_length
            or any(part.asks_for_content for part in self.fields.values())
        )

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Keys that an object must have, each once: the required, then those asked to be full."""
        asked = (name for name, part in self.fields.items() if part.asks_for_content)
        return tuple(dict.fromkeys([*self.required, *self.full, *asked]))

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Return all keys that it speaks of."""
        return tuple(dict.fromkeys([*self.needed, *self.fields]))

    @cached_property
    def named_in_any_style(self) -> Counter[str]:
        """Same without their style, and how many are the same then."""
        return Counter(fold_name(name) for name in self.named)


@cache
def _by_style() -> dict[str, str]:
    return {fold_name(name): name for name in Deliverable.model_fields}


def _is_short_form(content: Mapping[Any, Any]) -> bool:
    """Return whether it holds objects alone, under names that are no constraints."""
    styles = _by_style()
    constraints = _OF_JSON_SCHEMA.union(styles)
    for key, value in content.items():
        if not isinstance(key, str) or not isinstance(value, Mapping | Deliverable):
            return False
        if fold_name(key) in constraints or nearest_name(key[:100], styles.values()) is not None:
            return False
    return bool(content)


def _type_in(schema: JsonObject | None) -> str | None:
    """Return the one type that a JSON Schema asks for at its root; None for none or several."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) and kind in get_args(JsonType) else None
