"""Edits: the general form of what a repair did, so that it can be done to another call.

`rename tz -> timezone` is general, and so is `take the value that the error states`; `set timezone
to "Europe/Berlin"` is only right for a call that had what the repaired one had, so a `replace`
carries the value it stood for.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from aftercall.json_patch import same_json
from aftercall.json_values import MAX_INTEGER, JsonObject, JsonValue
from aftercall.models.base import Json
from aftercall.redaction import is_redacted
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edit_model import (
    NO_SOURCES,
    EditDoesNotApplyError,
    EditModel,
    Site,
    ValueEdit,
    ValueSources,
)
from retrieval.knowledge.rewrites.moves import (
    Cut,
    Fill,
    Join,
    Keyed,
    Named,
    Pad,
    Put,
    Split,
    Unkeyed,
    Unnamed,
)
from retrieval.knowledge.values.forms import rewrite_form
from retrieval.knowledge.values.parameters import EVERY, JsonType, Path, leaves_like
from retrieval.knowledge.values.scalars import cast_to_one, type_of
from retrieval.knowledge.values.texts import (
    MAX_TEXT,
    StatedForm,
    Style,
    is_number,
    respell_text,
    stated_in,
)

__all__ = [
    "NO_SOURCES",
    "OF_ONE_PLACE",
    "REBUILDING",
    "SUPPLYING",
    "Add",
    "Balance",
    "Cast",
    "Clamp",
    "Cut",
    "Edit",
    "EditDoesNotApplyError",
    "EditModel",
    "Fill",
    "Flatten",
    "Form",
    "FromContext",
    "FromError",
    "Join",
    "Keyed",
    "Named",
    "Nest",
    "Pad",
    "Put",
    "Reformat",
    "Remove",
    "Rename",
    "Replace",
    "Respell",
    "Rewrite",
    "Scale",
    "Site",
    "Split",
    "Take",
    "Unkeyed",
    "Unnamed",
    "Unwrap",
    "ValueEdit",
    "ValueSources",
    "changed_places",
    "edit_key",
    "edits_of_key",
    "is_masked",
    "names_of",
    "number_of",
    "places_of",
    "read_paths",
    "touch_same_place",
]


class Rename(EditModel):
    """Move a value to another name in the same object."""

    kind: Literal["rename"] = "rename"
    to: str


class Remove(EditModel):
    """Leave a parameter out."""

    kind: Literal["remove"] = "remove"


class Add(EditModel):
    """Give a missing parameter a value."""

    kind: Literal["add"] = "add"
    value: Json


class Replace(ValueEdit):
    """Put one value instead of another; only for calls that have exactly `before`."""

    kind: Literal["replace"] = "replace"
    before: Json
    value: Json

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        if not same_json(value, self.before):
            raise EditDoesNotApplyError("it has another value")
        return self.value


class Cast(ValueEdit):
    """Say the same in another JSON type; to `array` wraps or splits."""

    kind: Literal["cast"] = "cast"
    to: JsonType

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        made = cast_to_one(value, [self.to])
        if made is None or type_of(value) == self.to:
            raise EditDoesNotApplyError(f"it is of type {self.to} already, or would be a guess")
        return made[1]


_TYPES = ("string", "text", "integer", "int", "number", "float", "boolean", "bool", "array",
          "object")  # fmt: skip


class Unwrap(ValueEdit):
    """Take the one value out of its list, or of an object with one member.

    An object may name the type of the value next to it, as `{"type": "text", "text": "a"}`.
    """

    kind: Literal["unwrap"] = "unwrap"

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        if isinstance(value, dict):
            value = [
                each
                for key, each in value.items()
                if all(said in (key, *_TYPES) for other, said in value.items() if other != key)
            ]
        if not isinstance(value, list) or len(value) != 1:
            raise EditDoesNotApplyError("it is no list of one")
        return value[0]


class Respell(ValueEdit):
    """Write a text in another letter case, or its words with other separators."""

    kind: Literal["respell"] = "respell"
    style: Style

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        changed = respell_text(_require_text(value), self.style)
        return _first_or_raise(
            [] if changed in (None, value) else [changed], "is written so already"
        )


class Reformat(ValueEdit):
    """Write a date or time in another form.

    `day_first` states how 03/04/2026 is read; where no one knows (None), it is left alone.
    """

    kind: Literal["reformat"] = "reformat"
    to: str
    day_first: bool | None = Field(default=None, exclude_if=lambda value: value is None)

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        text = _require_text(value)
        written = rewrite_form(text, self.to, day_first=self.day_first)
        known = [] if written in (None, text) else [written]
        return _first_or_raise(known, "is not known in the form that is wanted")


class Clamp(ValueEdit):
    """Move a number to the bound it went past; without one, to that which is stated."""

    kind: Literal["clamp"] = "clamp"
    minimum: float | None = None
    maximum: float | None = None

    def change_value(self, value: JsonValue, site: Site) -> JsonValue:
        if not is_number(value):
            raise EditDoesNotApplyError("it is no number")
        bounds = [(self.minimum, self.maximum)]
        if bounds == [(None, None)]:
            bounds = [
                (fault.minimum, fault.maximum)
                for fault in site.list_faults()
                if fault.kind == "out_of_range" and not fault.of_length and not fault.exclusive
            ]
        passed = (
            limit
            for low, high in bounds
            for limit, beyond in ((low, -1), (high, 1))
            if limit is not None and (value - limit) * beyond > 0 and abs(limit) <= MAX_INTEGER
        )
        return _first_or_raise(
            (_whole_number(limit) for limit in passed), "is within what is stated"
        )


class Rewrite(ValueEdit):
    """Write another beginning or ending of a text, or other words in it; the rest stays.

    A number is rewritten as its text: `5` -> `5d`.
    """

    kind: Literal["rewrite"] = "rewrite"
    where: Literal["start", "end", "inside"]
    old: str = ""
    new: str = ""

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        text = _require_text(str(value) if is_number(value) else value)
        changed = self._rewrite_text(text)
        return _first_or_raise(
            [] if changed in (None, text) else [changed], "is written so already"
        )

    def _rewrite_text(self, text: str) -> str | None:
        old, new = self.old, self.new
        match self.where:
            case "start" if text.startswith(old) and text != old:
                is_there = not old and (text.startswith(new) or (not new.isalnum() and new in text))
                return None if is_there else new + text[len(old) :]
            case "end" if text.endswith(old) and text != old:
                return None if not old and text.endswith(new) else text[: -len(old) or None] + new
            case "inside" if old and old in text:
                return text.replace(old, new)
        return None


class Scale(ValueEdit):
    """Say a number in another unit: a fixed number of times as large."""

    kind: Literal["scale"] = "scale"
    factor: float

    def change_value(self, value: JsonValue, _site: Site) -> JsonValue:
        if not is_number(value) or not value:
            raise EditDoesNotApplyError("it is no number")
        made = round(value * self.factor, 9)
        return int(made) if made.is_integer() and abs(made) <= MAX_INTEGER else made


class Nest(EditModel):
    """Put parameters of an object into an object under one name, or into a list of one.

    One that is there takes them in, where it has none of them.
    """

    kind: Literal["nest"] = "nest"
    fields: tuple[str, ...]
    listed: bool = False

    def nest_fields(self, around: JsonObject) -> JsonObject:
        """Return the object around with those of the fields that it has in their new place."""
        moved = {name: around[name] for name in self.fields if name in around}
        kept = {name: value for name, value in around.items() if name not in moved}
        name = str(self.path[-1])
        there = kept.get(name, {})
        if isinstance(there, list) and len(there) == 1:
            there = there[0]
        if not moved or not isinstance(there, dict) or there.keys() & moved.keys():
            raise EditDoesNotApplyError(f"nothing can be put into {name}")
        inner = {**there, **moved}
        return {**kept, name: [inner] if self.listed else inner}


class Flatten(EditModel):
    """Put the members of an object, or of the only object of a list, instead of itself.

    `fields` are those that were seen there; whatever is there moves, or with `partly` these alone.
    Values of a list without names get them from `fields`, in order.
    """

    kind: Literal["flatten"] = "flatten"
    fields: tuple[str, ...] = ()
    partly: bool = False

    def flatten_members(self, around: JsonObject) -> JsonObject:
        """Return the object around with the members one level higher."""
        name = str(self.path[-1])
        held = inner = around.get(name)
        if isinstance(inner, list) and len(inner) == len(self.fields) > 1 and not self.partly:
            inner = dict(zip(self.fields, inner, strict=True))
        elif isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]
        kept = {each: value for each, value in around.items() if each != name}
        inner = inner if isinstance(inner, dict) else {}
        moved = {key: inner.get(key) for key in self.fields} if self.partly else inner
        if not inner or not moved.keys() <= inner.keys() or moved.keys() & kept.keys():
            raise EditDoesNotApplyError(f"{name} has no members that could stand for it")
        if self.partly:
            left: JsonObject = {key: each for key, each in inner.items() if key not in moved}
            kept[name] = [left] if isinstance(held, list) else left
        return {**kept, **moved}


class FromError(ValueEdit):
    """Take the value that the error itself states for this place."""

    kind: Literal["from_error"] = "from_error"

    def change_value(self, value: JsonValue, site: Site) -> JsonValue:
        if isinstance(value, dict | list):
            raise EditDoesNotApplyError("it has members; the error states one value")
        stated = (
            (fault, _stated_by(fault))
            for fault in site.list_faults()
            # What is stated of no place is stated of the value that it names.
            if fault.path or fault.value_text in (None, str(value))
        )
        return _first_or_raise(
            (
                _typed_like(right, value)
                for fault, right in stated
                if right is not None and fault.kind != "unexpected" and not is_redacted(right)
            ),
            "is stated by no error",
        )


class FromContext(ValueEdit):
    """Take the one value of a form that the caller's own account states and the call lacks."""

    kind: Literal["from_context"] = "from_context"
    form: StatedForm

    def change_value(self, value: JsonValue, site: Site) -> JsonValue:
        said = {str(each) for _, each in leaves_like(site.parameters, ())}
        stated = [
            each.text
            for each in stated_in(site.value_sources.context or "")
            if each.form == self.form and each.text not in said
        ]
        if len(stated) != 1 or is_redacted(stated[0]):
            raise EditDoesNotApplyError("the context does not state one value for it")
        as_number = self.form == "number" and not isinstance(value, str)
        return _typed_like(stated[0], 0 if as_number else "")


class Balance(ValueEdit):
    """Change one number so that like numbers add up to the total that the error states.

    `payment_methods/-1/amount`: the last payment takes the difference between the stated total and
    that of all `payment_methods/*/amount`.
    """

    kind: Literal["balance"] = "balance"

    def change_value(self, value: JsonValue, site: Site) -> JsonValue:
        mine = number_of(value)
        like = [number_of(each) for _, each in leaves_like(site.parameters, site.path)]
        total = sum(number for number in like if number is not None)
        if mine is None or not like:
            raise EditDoesNotApplyError("it is no number")
        wanted = ((fault, number_of(_stated_by(fault))) for fault in site.value_sources.faults)
        moved = (
            round(mine + number - total, 6)
            for fault, number in wanted
            if number is not None and number_of(fault.value_text) == total != number
        )
        return _first_or_raise(
            (_whole_number(each) for each in moved if each > 0), "is part of no stated total"
        )


def _first_or_raise(values: Iterable[JsonValue], otherwise: str) -> JsonValue:
    for value in values:
        return value
    raise EditDoesNotApplyError(f"it {otherwise}")


def _require_text(value: JsonValue) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise EditDoesNotApplyError("it is no short text")
    return value


def _whole_number(number: float) -> JsonValue:
    return int(number) if float(number).is_integer() else number


def _stated_by(fault: Fault) -> JsonValue:
    return fault.suggested if fault.stated is None else fault.stated


def number_of(value: JsonValue) -> float | None:
    """Return the number that a value is, or that its whole text states; None when it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) if not isinstance(value, str) or len(value) <= 30 else None
    except ValueError:
        return None


def _typed_like(stated: JsonValue, sent: JsonValue) -> JsonValue:
    """Return a number that is stated as text is a number where one was sent."""
    is_said = is_number(sent) and isinstance(stated, str)
    as_number = cast_to_one(stated, ["number"]) if is_said else None
    return as_number[1] if as_number else stated


Form = Annotated[
    Cast | Unwrap | Respell | Reformat | Rewrite | Scale | Pad | Cut | Join | Split | Keyed
    | Unkeyed | Named | Unnamed,
    Field(discriminator="kind"),
]  # fmt: skip
"""An edit that writes a value otherwise, whatever the place."""


class Take(EditModel):
    """Put the value of another place there, written in the forms of `through`, one by one."""

    kind: Literal["take"] = "take"
    source: Path
    through: tuple[Form, ...] = ()


Edit = Annotated[
    Rename | Remove | Add | Replace | Cast | Unwrap | Respell | Reformat | Clamp
    | FromError | FromContext | Balance | Rewrite | Scale | Nest | Flatten
    | Put | Take | Fill | Pad | Cut | Join | Split | Keyed | Unkeyed | Named | Unnamed,
    Field(discriminator="kind"),
]  # fmt: skip
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
SUPPLYING = (FromError, FromContext, Balance)
"""They say where the value is to be taken from, whether or not there is one."""
REBUILDING = (Put, Take, Fill)
"""They build a value at a place, whatever is there, and make the objects on the way to it."""
OF_ONE_PLACE = (Add, Nest, Flatten, *SUPPLYING)
"""They do not mean the same for every element of an array."""


def edit_key(edits: Iterable[Edit]) -> str:
    """Return the key of a kind of repair: of edits in any order, but for what moves fields."""
    found = list(edits)
    lines = [edit.model_dump_json() for edit in found]
    moves = any(isinstance(edit, Nest | Flatten) for edit in found)
    return "\n".join(lines if moves else sorted(lines))


def edits_of_key(key: str) -> list[Edit]:
    """Return the edits that `edit_key` made this key of; a ValueError of anything else."""
    return [_EDIT.validate_json(line) for line in key.split("\n") if line]


def names_of(edit: Edit) -> set[str]:
    """Return the top-level parameters that an edit changes, takes away or supplies."""
    return {str(place[0]) for place in places_of(edit)}


def touch_same_place(edit: Edit, other: Edit) -> bool:
    """Return whether two edits are of one place, or one of them of what the other is inside of."""
    return any(
        all(a == b or EVERY in (a, b) for a, b in zip(one, two, strict=False))
        for one in places_of(edit)
        for two in places_of(other)
    )


def changed_places(edits: Iterable[Edit]) -> frozenset[str]:
    """Return what edits change, in whatever form they do it: paths, as JSON."""
    return frozenset(json.dumps(place) for edit in edits for place in places_of(edit))


def is_masked(edit: Edit) -> bool:
    """Return whether a mask stands in it, which is equal for many values: it explains nothing."""
    held = [getattr(edit, name, None) for name in ("before", "value")]
    return any(is_redacted(each) for each in held)


def places_of(edit: Edit) -> list[Path]:
    """Return the paths that an edit changes, takes away or supplies."""
    places = [edit.path]
    if isinstance(edit, Rename):
        places.append((*edit.path[:-1], edit.to))
    if isinstance(edit, Nest | Flatten):
        places += [(*edit.path[:-1], field) for field in edit.fields]
    return places


def read_paths(edit: Edit) -> list[Path]:
    """Return the paths of the values that an edit makes others of, next to its own place."""
    if isinstance(edit, Take):
        return [edit.source]
    if isinstance(edit, Fill):
        return [part for part in edit.parts if not isinstance(part, str)]
    return [] if isinstance(edit, Put | Add) else [edit.path]
