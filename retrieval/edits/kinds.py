"""The kinds of edits: which parameters there are, the same in another form, taken elsewhere."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)

from aftercall.json_patch import same_json
from aftercall.json_values import MAX_INTEGER, JsonObject, JsonValue
from aftercall.models.base import Json
from aftercall.redaction import is_redacted
from retrieval.paths import EVERY, Path, leaves_like, value_at
from retrieval.reading.faults import Fault, JsonType
from retrieval.texts import MAX_TEXT, Mark, StatedForm, Style, respelt, rewrite, stated_in, stripped
from retrieval.values import CastError, cast, nearest, type_of


class EditDoesNotApplyError(ValueError):
    """The call does not have what the edit is about, or nothing states what it needs."""


def _nothing_usual(_: Path) -> Sequence[JsonValue]:
    return ()


@dataclass(frozen=True, slots=True)
class Grounds:
    """What an edit may take a value from, beside the call's own parameters.

    `usual` gives the values that are common knowledge of the tool at a place, the most usual first.
    """

    faults: tuple[Fault, ...] = ()
    context: str | None = None
    usual: Callable[[Path], Sequence[JsonValue]] = field(default=_nothing_usual)

    def faults_at(self, path: Path) -> Iterator[Fault]:
        """The faults of this very place first, then those that name no place."""
        yield from (fault for fault in self.faults if fault.path == path)
        yield from (fault for fault in self.faults if not fault.path)


NO_GROUNDS = Grounds()


@dataclass(frozen=True, slots=True)
class Site:
    """Where an edit is being made: a concrete path, the call as it was, and the grounds."""

    path: Path
    parameters: JsonObject
    grounds: Grounds


class EditModel(BaseModel):
    """An edit of the value at a place of a call's parameters.

    The place is the top-level parameter `name`, and `inside` it the way further down: keys of
    objects, positions of arrays (-1 is the last), or `*` for every element.
    """

    model_config = ConfigDict(frozen=True)

    spreads: ClassVar[bool] = True
    """Whether it means the same for every element of an array."""

    name: str
    inside: Path = ()

    @property
    def path(self) -> Path:
        """The whole place."""
        return (self.name, *self.inside)

    def at(self, path: Path) -> Self:
        """The same edit at another place."""
        return self.model_copy(update={"name": str(path[0]), "inside": tuple(path[1:])})

    def under(self, prefix: Path) -> Self:
        """The same edit for the object that the prefix leads to; it was made for that object."""
        return self.at((*prefix, *self.path)) if prefix else self

    @property
    def place(self) -> str:
        """The place as text, such as `flights/*/date`."""
        return "/".join(str(step) for step in self.path)

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Top-level edits stay as short as they are: `inside` is only written when there is one."""
        fields: dict[str, Any] = handler(self)
        if not self.inside:
            fields.pop("inside", None)
        return fields


class ValueEdit(EditModel):
    """An edit that makes another value of the one that is there."""

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The new value.

        Raises:
            EditDoesNotApplyError: when this value is not what the edit is about.
        """
        raise NotImplementedError


class SupplyEdit(EditModel):
    """An edit that says where the value is to be taken from, whether or not there is one."""

    spreads: ClassVar[bool] = False

    def supply(self, site: Site) -> JsonValue:
        """The value to put there.

        Raises:
            EditDoesNotApplyError: when nothing states exactly one.
        """
        raise NotImplementedError


class Rename(EditModel):
    """Move a value to another name in the same object."""

    kind: Literal["rename"] = "rename"
    to: str


class Remove(EditModel):
    """Leave a parameter out."""

    kind: Literal["remove"] = "remove"


class Add(EditModel):
    """Give a missing parameter a value."""

    spreads: ClassVar[bool] = False

    kind: Literal["add"] = "add"
    value: Json


class Replace(ValueEdit):
    """Put one value in the place of another; only for calls that have exactly `before`."""

    kind: Literal["replace"] = "replace"
    before: Json
    value: Json

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The literal value."""
        if not same_json(value, self.before):
            raise EditDoesNotApplyError(f"{self.place} has another value")
        return self.value


Separator = Literal[",", ";", "|", "\n", " "]


class Cast(ValueEdit):
    """Say the same in another JSON type; to `array` wraps or splits."""

    kind: Literal["cast"] = "cast"
    to: JsonType

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The value in that type."""
        if type_of(value) == self.to:
            raise EditDoesNotApplyError(f"{self.place} is of type {self.to} already")
        try:
            return cast(value, self.to)
        except CastError as error:
            raise EditDoesNotApplyError(str(error)) from error


class Wrap(ValueEdit):
    """Make a list of the one value."""

    kind: Literal["wrap"] = "wrap"

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """A list of one; never of what is a list already."""
        if isinstance(value, list) or value is None:
            raise EditDoesNotApplyError(f"{self.place} is nothing to make a list of")
        return [value]


class Unwrap(ValueEdit):
    """Take the one value out of its list."""

    kind: Literal["unwrap"] = "unwrap"

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The only element."""
        if not isinstance(value, list) or len(value) != 1:
            raise EditDoesNotApplyError(f"{self.place} is no list of one")
        return value[0]


class Split(ValueEdit):
    """Make a list of a text's parts, without the spaces around them."""

    kind: Literal["split"] = "split"
    separator: Separator

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The parts."""
        text = _text(self, value)
        parts: list[JsonValue] = [part.strip() for part in text.split(self.separator)]
        if len(parts) < 2 or not all(parts):
            raise EditDoesNotApplyError(f"{self.place} has no parts")
        return parts


class Join(ValueEdit):
    """Make one text of a list of texts."""

    kind: Literal["join"] = "join"
    separator: str

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text."""
        texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(texts) != len(value) or not texts:
            raise EditDoesNotApplyError(f"{self.place} is no list of texts")
        return self.separator.join(texts)


class Respell(ValueEdit):
    """Write a text in another letter case, or its words with other separators."""

    kind: Literal["respell"] = "respell"
    style: Style

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text in that style."""
        return _other(self, value, respelt(_text(self, value), self.style))


class Strip(ValueEdit):
    """Take something off a text that the tool does not want there."""

    kind: Literal["strip"] = "strip"
    what: Mark

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text without it."""
        return _other(self, value, stripped(_text(self, value), self.what))


class Prefix(ValueEdit):
    """Put a sign (`#`, `@`) or a directory before a text."""

    kind: Literal["prefix"] = "prefix"
    text: str

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text with it."""
        text = _text(self, value)
        if text.startswith(self.text):
            raise EditDoesNotApplyError(f"{self.place} starts with {self.text} already")
        return self.text + text


class Reformat(ValueEdit):
    """Write a date or time in another form; without `to`, in the one that the error asks for."""

    kind: Literal["reformat"] = "reformat"
    to: str | None = None

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The date or time in that form."""
        text = _text(self, value)
        stated = (fault.expected_format for fault in site.grounds.faults_at(site.path))
        for form in [self.to] if self.to else stated:
            written = rewrite(text, form) if form else None
            if written is not None:
                return _other(self, value, written)
        raise EditDoesNotApplyError(f"nothing says in which form {self.place} is wanted")


class Clamp(ValueEdit):
    """Move a number to the bound it went past; without one, to that which is stated."""

    kind: Literal["clamp"] = "clamp"
    minimum: float | None = None
    maximum: float | None = None

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The bound."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EditDoesNotApplyError(f"{self.place} is no number")
        bounds = [(self.minimum, self.maximum)]
        if bounds == [(None, None)]:
            bounds = [
                (fault.minimum, fault.maximum)
                for fault in site.grounds.faults_at(site.path)
                if fault.kind == "out_of_range" and not fault.of_length and not fault.exclusive
            ]
        for low, high in bounds:
            for limit, beyond in ((low, -1), (high, 1)):
                if limit is not None and (value - limit) * beyond > 0 and abs(limit) <= MAX_INTEGER:
                    return int(limit) if float(limit).is_integer() else limit
        raise EditDoesNotApplyError(f"{self.place} is within what is stated")


class Snap(ValueEdit):
    """Take the nearest of the allowed values that the error or the schema lists."""

    kind: Literal["snap"] = "snap"

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The nearest allowed value, when one is clearly meant."""
        if value is None or isinstance(value, dict | list):
            raise EditDoesNotApplyError(f"{self.place} is no plain value")
        for fault in site.grounds.faults_at(site.path):
            allowed = {
                str(item): item for item in fault.allowed if isinstance(item, str | int | float)
            }
            found = nearest(str(value), list(allowed))
            if found and allowed[found[0]] != value:
                return allowed[found[0]]
        raise EditDoesNotApplyError(f"no allowed value is near that of {self.place}")


def _text(edit: ValueEdit, value: JsonValue) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise EditDoesNotApplyError(f"{edit.place} is no short text")
    return value


def _other(edit: ValueEdit, value: JsonValue, changed: str | None) -> JsonValue:
    if changed is None or changed == value:
        raise EditDoesNotApplyError(f"{edit.place} is written so already")
    return changed


class FromError(SupplyEdit):
    """Take the value that the error itself states for this place."""

    kind: Literal["from_error"] = "from_error"

    def supply(self, site: Site) -> JsonValue:
        """The stated value, in the type of the one that is there."""
        sent = value_at(site.parameters, site.path)
        if isinstance(sent, dict | list):
            raise EditDoesNotApplyError(f"{self.place} has members; the error states one value")
        for fault in site.grounds.faults_at(site.path):
            stated = stated_by(fault)
            if stated is None or fault.kind == "unexpected" or is_redacted(stated):
                continue
            # What is said of no place is said of the value that it names.
            if fault.path or fault.value_text in (None, str(sent)):
                return _typed_like(stated, sent)
        raise EditDoesNotApplyError(f"the error states no value for {self.place}")


class FromContext(SupplyEdit):
    """Take the one value of a form that the caller's own account states and the call lacks."""

    kind: Literal["from_context"] = "from_context"
    form: StatedForm

    def supply(self, site: Site) -> JsonValue:
        """The stated value; a number as one unless a text is there."""
        said = {str(value) for _, value in leaves_like(site.parameters, ())}
        stated = [
            each.text
            for each in stated_in(site.grounds.context or "")
            if each.form == self.form and each.text not in said
        ]
        if len(stated) != 1 or is_redacted(stated[0]):
            raise EditDoesNotApplyError(f"the context does not state one value for {self.place}")
        return _as_stated(stated[0], self.form, value_at(site.parameters, site.path))


class Copy(SupplyEdit):
    """Take the value of another parameter of the same call."""

    kind: Literal["copy"] = "copy"
    source: Path

    def under(self, prefix: Path) -> Self:
        """Both places move."""
        moved = super().under(prefix)
        return moved.model_copy(update={"source": (*prefix, *self.source)})

    def supply(self, site: Site) -> JsonValue:
        """The other parameter's value."""
        value = value_at(site.parameters, self.source)
        if value is None or is_redacted(value):
            raise EditDoesNotApplyError(f"there is no {'/'.join(map(str, self.source))} to copy")
        return value


class Usual(SupplyEdit):
    """Take the value that is usual at this place in the tool's successes."""

    kind: Literal["usual"] = "usual"

    def supply(self, site: Site) -> JsonValue:
        """The most usual one."""
        for value in site.grounds.usual(site.path)[:1]:
            if not is_redacted(value):
                return value
        raise EditDoesNotApplyError(f"nothing is usual for {self.place}")


class Balance(SupplyEdit):
    """Change one number so that like numbers add up to the total that the error states.

    `payment_methods/-1/amount`: the last payment takes the difference between the stated total and
    that of all `payment_methods/*/amount`.
    """

    kind: Literal["balance"] = "balance"

    def supply(self, site: Site) -> JsonValue:
        """The number, moved by what the total lacks."""
        value = number_of(value_at(site.parameters, site.path))
        numbers = [number_of(each) for _, each in leaves_like(site.parameters, site.path)]
        total = sum(number for number in numbers if number is not None)
        if value is None or len(numbers) < 1:
            raise EditDoesNotApplyError(f"{self.place} is no number")
        for fault in site.grounds.faults:
            wanted = number_of(stated_by(fault))
            if wanted is not None and number_of(fault.value_text) == total != wanted:
                moved = round(value + wanted - total, 6)
                if moved > 0:
                    return int(moved) if float(moved).is_integer() else moved
        raise EditDoesNotApplyError(f"the error states no total of the numbers like {self.place}")


def stated_by(fault: Fault) -> JsonValue:
    """The right value that an error states beside the wrong one; None when it states none."""
    return fault.suggested if fault.stated is None else fault.stated


def number_of(value: JsonValue) -> float | None:
    """The number that a value is, or that its whole text says; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) and len(value) <= 30 else None
    except ValueError:
        return None


def _typed_like(stated: JsonValue, sent: JsonValue) -> JsonValue:
    """A number that is stated as text is a number where one was sent."""
    if isinstance(sent, int | float) and not isinstance(sent, bool) and isinstance(stated, str):
        try:
            return cast(stated, "number")
        except CastError:
            return stated
    return stated


def _as_stated(text: str, form: StatedForm, sent: JsonValue) -> JsonValue:
    if form != "number" or isinstance(sent, str):
        return text
    try:
        return cast(text, "number")
    except CastError:
        return text


Edit = Annotated[
    Rename | Remove | Add | Replace
    | Cast | Wrap | Unwrap | Split | Join | Respell | Strip | Prefix | Reformat | Clamp | Snap
    | FromError | FromContext | Copy | Usual | Balance,
    Field(discriminator="kind"),
]  # fmt: skip

OF_ANY_TEXT = (Respell, Strip, Prefix, Split, Join)
"""Edits that can be made to nearly every text, whatever is wrong with it."""

_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
_OF_A_TOOL = (Rename, Remove, Add, Replace, FromContext, Copy, Usual, Balance)
_MARKS = frozenset("@#")


def edit_key(edits: Iterable[Edit]) -> str:
    """Equal for equal edits in any order; the key under which repairs of one kind are counted."""
    return "\n".join(sorted(edit.model_dump_json() for edit in edits))


def edits_of_key(key: str) -> list[Edit]:
    """The edits that `edit_key` made this key of.

    Raises:
        ValueError: when it is no such key.
    """
    return [_EDIT.validate_json(line) for line in key.split("\n") if line]


def names_of(edit: Edit) -> set[str]:
    """The top-level parameters that an edit changes, takes away or supplies."""
    if isinstance(edit, Rename) and not edit.inside:
        return {edit.name, edit.to}
    return {edit.name}


def touches(edit: Edit, other: Edit) -> bool:
    """Whether two edits are of one place, or one of them of what the other is inside of."""
    return any(_overlap(one, two) for one in _places(edit) for two in _places(other))


def for_any_tool(edit: Edit) -> Edit | None:
    """The edit without its place, when what it does depends on no tool; else None.

    A bound of its own is one tool's; to keep to the stated bound is anybody's.
    """
    if isinstance(edit, _OF_A_TOOL) or (isinstance(edit, Prefix) and edit.text not in _MARKS):
        return None
    if isinstance(edit, Clamp):
        return Clamp(name=EVERY)
    return edit.at((EVERY,))


def _places(edit: Edit) -> list[tuple[str | int, ...]]:
    places = [edit.path]
    if isinstance(edit, Rename):
        places.append((*edit.path[:-1], edit.to))
    return places


def _overlap(one: tuple[str | int, ...], two: tuple[str | int, ...]) -> bool:
    return all(a == b or EVERY in (a, b) for a, b in zip(one, two, strict=False))
