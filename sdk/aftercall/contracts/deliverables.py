"""What the result of a tool must be, in constraints that a machine can check.

    Deliverable.from_dict({"fields": {"titles": {"min_items": 1}}})

Utility that should fail at once is asked for here and not in prose (document 003 of the seeds):
`acceptance` is kept for people, and never executed or matched.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel

from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install, nearest
from aftercall.json_values import (
    MAX_DEPTH,
    InvalidJsonValueError,
    JsonObject,
    check_json_object,
)

# Python values as JSON: dataclasses and pydantic models as objects, sets and tuples as arrays.

if TYPE_CHECKING:  # the extra `contracts`
    import jsonschema_rs

JsonType = Literal["object", "array", "string", "number", "integer", "boolean"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)
ENVELOPES = frozenset({"result", "results", "items", "data", "value", "values"})
"""Keys that say nothing about what they hold. FastMCP puts what is no object under `result`."""
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
        ConfigurationError: it is no valid schema, or holds what is refused; or the extra
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
            f"json_schema needs {error.name}; {how_to_install('contracts')}"
        ) from error
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


MAX_ACCEPTANCE_CHARS = 4_000

_IMPLIED_TYPE = {
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
_COUNTS = ("min_items", "max_items", "min_length", "max_length")
_NUMBERS = ("minimum", "maximum")
_BOUNDS = (("min_items", "max_items"), ("min_length", "max_length"), _NUMBERS)

# Words of JSON Schema that stand for a constraint of another name, or for none.
_ELSEWHERE = {"properties": "fields", "schema": "json_schema"} | dict.fromkeys(
    ("enum", "const", "pattern", "format", "exclusiveminimum", "exclusivemaximum", "uniqueitems",
     "anyof", "oneof", "allof", "additionalproperties"),
    "json_schema",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)  # no slots: what follows from it is kept beside it
class Deliverable:
    """What a result must be. What is left out is not asked for.

    A constraint says what it is about: `min_items` asks for an array, `required` for an object,
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
        json_schema: a JSON Schema, draft 2020-12 unless its `$schema` says otherwise (extra
            `contracts`). See `check_schema` for what is refused in one.
        acceptance: what else is expected, in prose. Never executed or matched.

    Raises:
        ConfigurationError: names the constraint at fault and the cure.
    """

    type: JsonType | None = None
    required: Sequence[str] = ()
    non_empty: bool | Sequence[str] = False
    min_items: int | None = None
    max_items: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    fields: Mapping[str, "Deliverable"] = field(default_factory=dict)
    items: "Deliverable | None" = None
    json_schema: JsonObject | None = None
    acceptance: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", _names("required", self.required))
        if not isinstance(self.non_empty, bool):
            object.__setattr__(self, "non_empty", _names("non_empty", self.non_empty))
        _check_values(self)
        _check_types(self)
        _check_bounds(self)
        if self.json_schema is not None:
            # Now, so that a mistake shows where it was written and not in some later call.
            check_schema(self.json_schema)

    @classmethod
    def from_dict(cls, content: object, *, place: str = "the deliverable") -> "Deliverable":
        """Read a deliverable; constraints may be written in any style (`min_items`, `minItems`).

        An object that holds nothing but objects under names that are no constraints is the short
        form of `fields`: `{"titles": {"min_items": 1}}`. A `Deliverable` is returned as it is.

        Raises:
            ConfigurationError: names the place and the constraint at fault, the nearest name for
                an unknown one, and the cure.
        """
        try:
            return _read(content, place)
        except RecursionError as error:
            raise ConfigurationError(f"{place}: is nested too deeply; flatten it") from error

    @cached_property
    def given(self) -> dict[str, Any]:
        """The constraints that are given. A bound of 0 is; only the defaults are not."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if not (value is None or value is False or value in ((), {}))
        }

    @cached_property
    def full(self) -> Sequence[str]:
        """Keys whose values must not be empty."""
        return () if isinstance(self.non_empty, bool) else self.non_empty

    @cached_property
    def expected_type(self) -> str | None:
        """The type asked for, by `type` or by what the other constraints are about."""
        if self.type is not None or self.full:
            return self.type or "object"
        implied = (_IMPLIED_TYPE[name] for name in self.given if name in _IMPLIED_TYPE)
        return next(implied, _type_in(self.json_schema))

    @cached_property
    def asks_for_content(self) -> bool:
        """Whether nothing at all could not satisfy it, so that a field of it must be there."""
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
        """All keys that it speaks of."""
        return tuple(dict.fromkeys([*self.needed, *self.fields]))

    @cached_property
    def named_in_any_style(self) -> Counter[str]:
        """The same without their style, and how many are the same then."""
        return Counter(folded(name) for name in self.named)

    def to_dict(self) -> JsonObject:
        """The form that `from_dict` reads, with what was given only."""
        made: JsonObject = {}
        for name, value in self.given.items():
            if name == "fields":
                made[name] = {key: part.to_dict() for key, part in self.fields.items()}
            elif isinstance(value, Deliverable):
                made[name] = value.to_dict()
            else:
                made[name] = list(value) if isinstance(value, tuple) else value
        return made


_BY_STYLE = {folded(each.name): each.name for each in fields(Deliverable)}


def _read(content: object, place: str) -> Deliverable:
    if isinstance(content, Deliverable):
        return content
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{place}: must be an object of constraints, such as min_items")
    if _is_short_form(content):
        content = {"fields": content}
    given: dict[str, Any] = {}
    for key, value in content.items():
        name = _BY_STYLE.get(folded(key)) if isinstance(key, str) else None
        if name is None:
            raise ConfigurationError(f"{place}: {_unknown(key)}")
        if name in given:
            raise ConfigurationError(f"{place}: {name} stands twice, in two styles; keep one")
        given[name] = value
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(given.get("fields"), Mapping):
        given["fields"] = {
            key: _read(part, f"{place}: fields.{key}") for key, part in given["fields"].items()
        }
    if "items" in given:
        given["items"] = _read(given["items"], f"{place}: items")
    try:
        return Deliverable(**given)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}") from error


def _is_short_form(content: Mapping[Any, Any]) -> bool:
    """Nothing but objects, under names that neither are constraints nor look like a slip of one."""
    return bool(content) and all(
        isinstance(key, str)
        and isinstance(value, Mapping)
        and folded(key) not in _BY_STYLE
        and _nearest(key) is None
        for key, value in content.items()
    )


def _nearest(key: str) -> str | None:
    style = folded(key[:100])
    return _ELSEWHERE.get(style) or nearest(key[:100], _BY_STYLE.values())


def _unknown(key: object) -> str:
    if not isinstance(key, str):
        return f"a constraint's name must be a text, not {type(key).__name__}"
    meant = _nearest(key)
    cure = f"did you mean {meant!r}?" if meant else f"there are {', '.join(_BY_STYLE.values())}"
    return f"unknown constraint {key[:80]!r}; {cure} (a key of the result belongs under 'fields')"


def _type_in(schema: JsonObject | None) -> str | None:
    """The one type that a JSON Schema asks for at its root; None for none or several."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) and kind in JSON_TYPES else None


def _names(constraint: str, value: object) -> tuple[str, ...]:
    """The keys that a constraint names, each once; a lone one may stand by itself."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        either = "true or " if constraint == "non_empty" else ""
        raise ConfigurationError(f"{constraint} must be {either}an array of keys")
    return tuple(dict.fromkeys(names))


def _are_parts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(part, Deliverable) for key, part in value.items()
    )


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = (
    {
        "fields": (_are_parts, "an object of deliverables by key"),
        "items": (lambda value: isinstance(value, Deliverable), "a Deliverable"),
        "type": (lambda value: value in JSON_TYPES, f"one of {', '.join(JSON_TYPES)}"),
        "acceptance": (
            lambda value: isinstance(value, str) and len(value) <= MAX_ACCEPTANCE_CHARS,
            f"a text of at most {MAX_ACCEPTANCE_CHARS:,} characters",
        ),
    }
    | dict.fromkeys(
        _COUNTS, (lambda value: type(value) is int and value >= 0, "a whole number, 0 or more")
    )
    | dict.fromkeys(
        _NUMBERS,
        (lambda value: type(value) in {int, float} and -math.inf < value < math.inf, "a number"),
    )
)
"""What each constraint must be, where it is given."""


def _check_values(wanted: Deliverable) -> None:
    for name, (is_right, kind) in _KINDS.items():
        value = getattr(wanted, name)
        if not (is_right(value) or (value is None and name != "fields")):
            raise ConfigurationError(f"{name} must be {kind}")


def _check_types(wanted: Deliverable) -> None:
    """Constraints that are about different types can never be met together."""
    about = [
        (f"type {wanted.type!r}", wanted.type),
        *((name, _IMPLIED_TYPE.get(name)) for name in wanted.given),
        ("non_empty with keys", "object" if wanted.full else None),
        ("json_schema", _type_in(wanted.json_schema)),
    ]
    kinds = [(name, "number" if kind == "integer" else kind) for name, kind in about if kind]
    for name, kind in kinds[1:]:
        first, first_kind = kinds[0]
        if kind != first_kind:
            raise ConfigurationError(
                f"{first} is about a {first_kind} and {name} about a {kind}; keep one of them"
            )


def _check_bounds(wanted: Deliverable) -> None:
    for low_name, high_name in _BOUNDS:
        low, high = getattr(wanted, low_name), getattr(wanted, high_name)
        if low is not None and high is not None and low > high:
            raise ConfigurationError(
                f"{low_name} is {low:g} and {high_name} is {high:g}, which nothing can meet; "
                "exchange or change them"
            )
