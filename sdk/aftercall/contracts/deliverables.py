"""What the result of a tool must be, in constraints that a machine can check.

    Deliverable.from_dict({"fields": {"titles": {"min_items": 1}}})

Utility that should fail at once is asked for here and not in prose (document 003 of the seeds):
`acceptance` is kept for people, and never executed or matched.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from aftercall.contracts.json_types import JsonType
from aftercall.contracts.key_style import folded
from aftercall.contracts.soundness import (
    IMPLIED_TYPE,
    MAX_DEPTH,
    MAX_NAME_CHARS,
    check_sound,
    given_in,
    names_in,
    type_in,
)
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject

# Words of JSON Schema that stand for a constraint of another name, or for none.
_ELSEWHERE = {
    "properties": "fields",
    "schema": "json_schema",
    "enum": "json_schema",
    "const": "json_schema",
    "pattern": "json_schema",
    "format": "json_schema",
    "exclusiveminimum": "json_schema",
    "exclusivemaximum": "json_schema",
    "uniqueitems": "json_schema",
    "anyof": "json_schema",
    "oneof": "json_schema",
    "allof": "json_schema",
    "additionalproperties": "json_schema",
}


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
        min_items: fewest items of an array.
        max_items: most items of an array.
        minimum: smallest number, itself allowed.
        maximum: largest number, itself allowed.
        min_length: fewest characters of a string.
        max_length: most characters of a string.
        fields: what the values of an object's keys must be. A key may be missing or null unless it
            is required, or its deliverable asks for content (`min_items` of 1 or more, `min_length`
            of 1 or more, `non_empty`, `required`).
        items: what each item of an array must be.
        json_schema: a JSON Schema, draft 2020-12 unless its `$schema` says otherwise (extra
            `contracts`). See `aftercall.contracts.json_schema` for what is refused in one.
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
        object.__setattr__(self, "required", names_in("required", self.required))
        if not isinstance(self.non_empty, bool):
            object.__setattr__(self, "non_empty", names_in("non_empty", self.non_empty))
        _check_parts(self)
        check_sound(self)

    @classmethod
    def from_dict(cls, content: object, *, place: str = "the deliverable") -> "Deliverable":
        """Read a deliverable; constraints may be written in any style (`min_items`, `minItems`).

        An object that holds nothing but objects under names that are no constraints is the short
        form of `fields`: `{"titles": {"min_items": 1}}`.

        Args:
            content: as a JSON file or a program holds it; a `Deliverable` is returned as it is.
            place: where it stands, named in errors.

        Raises:
            ConfigurationError: names the place and the constraint at fault, the nearest name for
                an unknown one, and the cure.
        """
        return _read(content, place, MAX_DEPTH)

    @cached_property
    def expected_type(self) -> str | None:
        """The type asked for, by `type` or by what the other constraints are about."""
        if self.type is not None:
            return self.type
        if not isinstance(self.non_empty, bool) and self.non_empty:
            return "object"
        implied = (IMPLIED_TYPE[name] for name in given_in(self) if name in IMPLIED_TYPE)
        return next(implied, type_in(self.json_schema))

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
        full = () if isinstance(self.non_empty, bool) else self.non_empty
        asked = (name for name, part in self.fields.items() if part.asks_for_content)
        return tuple(dict.fromkeys([*self.required, *full, *asked]))

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
        told: JsonObject = {}
        for name in given_in(self):
            value = getattr(self, name)
            if name == "fields":
                told[name] = {key: part.to_dict() for key, part in self.fields.items()}
            elif isinstance(value, Deliverable):
                told[name] = value.to_dict()
            else:
                told[name] = list(value) if isinstance(value, tuple) else value
        return told


_BY_STYLE = {folded(each.name): each.name for each in fields(Deliverable)}


def _check_parts(given: Deliverable) -> None:
    parts = given.fields
    if not isinstance(parts, Mapping) or not all(
        isinstance(key, str) and isinstance(part, Deliverable) for key, part in parts.items()
    ):
        raise ConfigurationError("fields must hold a Deliverable by each key")
    if given.items is not None and not isinstance(given.items, Deliverable):
        raise ConfigurationError("items must be a Deliverable")


def _read(content: object, place: str, depth: int) -> Deliverable:
    if isinstance(content, Deliverable):
        return content
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{place}: must be an object of constraints, such as min_items")
    if depth <= 0:
        raise ConfigurationError(f"{place}: is nested deeper than {MAX_DEPTH} levels; flatten it")
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
    if "fields" in given:
        parts = given["fields"]
        if not isinstance(parts, Mapping):
            raise ConfigurationError(f"{place}: fields must be an object of deliverables by key")
        given["fields"] = {
            key: _read(part, f"{place}: fields.{str(key)[:MAX_NAME_CHARS]}", depth - 1)
            for key, part in parts.items()
        }
    if "items" in given:
        given["items"] = _read(given["items"], f"{place}: items", depth - 1)
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
    style = folded(key[:MAX_NAME_CHARS])
    if style in _ELSEWHERE:
        return _ELSEWHERE[style]
    close = get_close_matches(style, _BY_STYLE, n=1, cutoff=0.75)
    return _BY_STYLE[close[0]] if close else None


def _unknown(key: object) -> str:
    if not isinstance(key, str):
        return f"a constraint's name must be a text, not {type(key).__name__}"
    nearest = _nearest(key)
    cure = f"did you mean {nearest!r}?" if nearest else f"there are {', '.join(_BY_STYLE.values())}"
    return f"unknown constraint {key[:80]!r}; {cure} (a key of the result belongs under 'fields')"
