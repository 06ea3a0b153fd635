"""What the result of a tool must be, in constraints that a machine can check.

    Deliverable.from_dict({"fields": {"titles": {"min_items": 1}}})

Utility that should fail at once is asked for here and not in prose (document 003 of the seeds):
`acceptance` is kept for people, and never executed or matched.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from aftercall.contracts.values import JSON_TYPES, JsonType, check_schema, folded
from aftercall.errors import ConfigurationError
from aftercall.explain import nearest
from aftercall.json_values import JsonObject

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
            `contracts`). See `aftercall.contracts.values.check_schema` for what is refused in one.
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
