"""Edits that build a value at a place out of others of the call, and forms of containers and texts.

What a repair does to a tree is stated leaf by leaf: `take` puts the value of one place at another,
`fill` makes a text of several, `put` sets a constant. Their places and sources may hold `*`, which
stands for the same element in both. They read the call as it was sent, so two values may change
places.
"""

from typing import Annotated, Literal

from pydantic import Field

from aftercall.json_values import JsonValue
from aftercall.models.base import Json
from retrieval.knowledge.rewrites.edit_model import (
    EditDoesNotApplyError,
    EditModel,
    Site,
    ValueEdit,
)
from retrieval.knowledge.values.parameters import Path, value_at
from retrieval.knowledge.values.texts import MAX_TEXT, is_number

_MAX_WIDTH = 64


class Put(EditModel):
    """Set a place to a constant, whatever was there."""

    kind: Literal["put"] = "put"
    value: Json


class Pad(ValueEdit):
    """Fill a text, or a number as its text, up to a width with one sign."""

    kind: Literal["pad"] = "pad"
    width: int = Field(ge=1, le=_MAX_WIDTH)
    sign: str = Field(min_length=1, max_length=1)

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        text = _require_text(value)
        made = text.rjust(self.width, self.sign)
        return _require_other(made, value, "is as wide already")


class Cut(ValueEdit):
    """Take one part of a text, counted from its start, or from its end where `part` is negative."""

    kind: Literal["cut"] = "cut"
    mark: str = Field(min_length=1, max_length=8)
    part: int

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        parts = _require_text(value).split(self.mark)
        if len(parts) < 2 or not -len(parts) <= self.part < len(parts):
            raise EditDoesNotApplyError("it has no such part")
        return _require_other(parts[self.part].strip(), value, "is that part alone")


class Split(ValueEdit):
    """Read a text as the list of its parts."""

    kind: Literal["split"] = "split"
    mark: str = Field(min_length=1, max_length=8)

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        return [part.strip() for part in _require_text(value).split(self.mark)]


class Join(ValueEdit):
    """Write the items of a list as one text."""

    kind: Literal["join"] = "join"
    mark: str = Field(max_length=8)

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        if not isinstance(value, list) or not value:
            raise EditDoesNotApplyError("it is no list")
        return self.mark.join(map(_require_text, value))


class Keyed(ValueEdit):
    """Make an object of a list of pairs: `[{"key": "a", "value": 1}]` -> `{"a": 1}`."""

    kind: Literal["keyed"] = "keyed"
    key: str
    value: str

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        if not isinstance(value, list) or not value:
            raise EditDoesNotApplyError("it is no list")
        return dict(_read_pair(item, self.key, self.value) for item in value)


class Unkeyed(ValueEdit):
    """Make a list of pairs of an object: `{"a": 1}` -> `[{"key": "a", "value": 1}]`."""

    kind: Literal["unkeyed"] = "unkeyed"
    key: str
    value: str

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        if not isinstance(value, dict) or not value:
            raise EditDoesNotApplyError("it is no object")
        return [{self.key: key, self.value: held} for key, held in value.items()]


class Named(ValueEdit):
    """Make one object of a name and its value: `{"f": "a", "v": 1}` -> `{"a": 1}`."""

    kind: Literal["named"] = "named"
    key: str
    value: str

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        return dict([_read_pair(value, self.key, self.value)])


class Unnamed(ValueEdit):
    """Say the name of the only member as a value: `{"a": 1}` -> `{"f": "a", "v": 1}`."""

    kind: Literal["unnamed"] = "unnamed"
    key: str
    value: str

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:  # noqa: D102
        if not isinstance(value, dict) or len(value) != 1:
            raise EditDoesNotApplyError("it has not one member")
        [(key, held)] = value.items()
        return {self.key: key, self.value: held}


class Fill(EditModel):
    """Write several values into one text; `parts` are texts and places."""

    kind: Literal["fill"] = "fill"
    parts: tuple[Annotated[str | Path, Field(union_mode="left_to_right")], ...]

    def fill_text(self, call: dict[str, JsonValue], bound: tuple[int, ...]) -> str:
        """Return the text with the values of a call."""
        made = []
        for part in self.parts:
            if isinstance(part, str):
                made.append(part)
                continue
            made.append(_require_text(value_at(call, bind_path(part, bound))))
        return "".join(made)


def bind_path(path: Path, bound: tuple[int, ...]) -> Path:
    """Return the path with positions for its `*`, in order."""
    left = list(bound)
    return tuple(left.pop(0) if step == "*" and left else step for step in path)


def _read_pair(item: JsonValue, key: str, value: str) -> tuple[str, JsonValue]:
    if not isinstance(item, dict) or item.keys() != {key, value}:
        raise EditDoesNotApplyError("it is no pair of a name and a value")
    name = item[key]
    if not isinstance(name, str):
        raise EditDoesNotApplyError("its name is no text")
    return name, item[value]


def _require_text(value: JsonValue) -> str:
    if is_number(value):
        return str(value)
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise EditDoesNotApplyError("it is no short text")
    return value


def _require_other(made: str, value: JsonValue, otherwise: str) -> str:
    if made == value:
        raise EditDoesNotApplyError(f"it {otherwise}")
    return made
