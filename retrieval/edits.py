"""Edits: the general form of what a repair did, so that it can be done to another call.

`rename tz -> timezone` is general, and so is `take the value that the error states`; `set timezone
to "Europe/Berlin"` is only right for a call that said what the mended one said, so a `replace`
carries the value it stood for.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
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
from retrieval.parameters import EVERY, MAX_ELEMENTS, JsonType, Path, leaves_like, value_at
from retrieval.reading.faults import Fault
from retrieval.texts import MAX_TEXT, StatedForm, Style, respelt, rewrite, stated_in
from retrieval.values import CastError, cast, nearest, type_of


class EditDoesNotApplyError(ValueError):
    """The call does not have what the edit is about, or nothing states what it needs."""


@dataclass(frozen=True, slots=True)
class ValueSources:
    """What an edit may take a value from, beside the call's own parameters."""

    faults: tuple[Fault, ...] = ()
    context: str | None = None

    def faults_at(self, path: Path) -> Iterator[Fault]:
        """The faults of this very place first, then those that name no place."""
        yield from (fault for fault in self.faults if fault.path == path)
        yield from (fault for fault in self.faults if not fault.path)


NO_SOURCES = ValueSources()


@dataclass(frozen=True, slots=True)
class Site:
    """Where an edit is being made: a path, the call as it was, and the sources of values."""

    path: Path
    parameters: JsonObject
    value_sources: ValueSources


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


class Unwrap(ValueEdit):
    """Take the one value out of its list."""

    kind: Literal["unwrap"] = "unwrap"

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The only element."""
        if not isinstance(value, list) or len(value) != 1:
            raise EditDoesNotApplyError(f"{self.place} is no list of one")
        return value[0]


class Respell(ValueEdit):
    """Write a text in another letter case, or its words with other separators."""

    kind: Literal["respell"] = "respell"
    style: Style

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text in that style."""
        return _other(self, value, respelt(_text(self, value), self.style))


class Reformat(ValueEdit):
    """Write a date or time in another form; without `to`, in the one that the error asks for."""

    kind: Literal["reformat"] = "reformat"
    to: str | None = None

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The date or time in that form."""
        text = _text(self, value)
        stated = (fault.expected_format for fault in site.value_sources.faults_at(site.path))
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
                for fault in site.value_sources.faults_at(site.path)
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
        for fault in site.value_sources.faults_at(site.path):
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
        for fault in site.value_sources.faults_at(site.path):
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
            for each in stated_in(site.value_sources.context or "")
            if each.form == self.form and each.text not in said
        ]
        if len(stated) != 1 or is_redacted(stated[0]):
            raise EditDoesNotApplyError(f"the context does not state one value for {self.place}")
        return _as_stated(stated[0], self.form, value_at(site.parameters, site.path))


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
        for fault in site.value_sources.faults:
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
    Rename | Remove | Add | Replace | Cast | Unwrap | Respell | Reformat | Clamp | Snap
    | FromError | FromContext | Balance,
    Field(discriminator="kind"),
]  # fmt: skip

_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
_OF_A_TOOL = (Rename, Remove, Add, Replace, FromContext, Balance)


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
    if isinstance(edit, _OF_A_TOOL):
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


def apply_edits(
    parameters: JsonObject, edits: Sequence[Edit], value_sources: ValueSources = NO_SOURCES
) -> JsonObject:
    """A changed copy of the parameters; values that stay are shared with the original.

    An edit of every element of an array is made to those that it applies to.

    Raises:
        EditDoesNotApplyError: when one of the edits has nothing to work on.
    """
    changed = dict(parameters)
    for edit in edits:
        changed = _applied(changed, edit, parameters, value_sources)
    return changed


def _applied(
    parameters: JsonObject, edit: Edit, call: JsonObject, value_sources: ValueSources
) -> JsonObject:
    """One edit; what it takes from the call, it takes from the call as it was sent."""
    if not edit.inside:
        return _changed_object(parameters, edit, (edit.name,), call, value_sources)
    changed, done = parameters, False
    several = EVERY in edit.inside
    # From the end, so that what is taken out of an array moves nothing that is still to be seen.
    for path in reversed(list(_concrete(parameters, edit.path))):
        try:
            changed = _along(changed, path, path, edit, call, value_sources)
            done = True
        except EditDoesNotApplyError:
            if not several:
                raise
    if not done:
        raise EditDoesNotApplyError(f"nothing at {edit.place} is what the edit is about")
    return changed


def _along(
    container: JsonObject,
    rest: Path,
    path: Path,
    edit: Edit,
    call: JsonObject,
    value_sources: ValueSources,
) -> JsonObject:
    """A copy of the object along the path, with the edit made at its end."""
    if len(rest) == 1:
        return _changed_object(container, edit, path, call, value_sources)
    key = str(rest[0])
    inner = container[key]
    return container | {key: _inner(inner, rest[1:], path, edit, call, value_sources)}


def _inner(
    inner: JsonValue,
    rest: Path,
    path: Path,
    edit: Edit,
    call: JsonObject,
    value_sources: ValueSources,
) -> JsonValue:
    if isinstance(inner, dict):
        return _along(inner, rest, path, edit, call, value_sources)
    step = rest[0]
    if not isinstance(inner, list) or not isinstance(step, int):
        raise EditDoesNotApplyError(f"{edit.place} is not there")
    items = list(inner)
    if len(rest) > 1:
        items[step] = _inner(items[step], rest[1:], path, edit, call, value_sources)
    elif isinstance(edit, Remove):
        del items[step]
    elif isinstance(edit, Rename | Add):
        raise EditDoesNotApplyError(f"{edit.place} has no name")
    else:
        items[step] = _changed_value(edit, items[step], Site(path, call, value_sources))
    return items


def _changed_object(
    container: JsonObject, edit: Edit, path: Path, call: JsonObject, value_sources: ValueSources
) -> JsonObject:
    key = str(path[-1])
    changed = dict(container)
    target = edit.to if isinstance(edit, Rename) else key if isinstance(edit, Add) else None
    if target is not None and target in changed:
        raise EditDoesNotApplyError(f"{target} is there already")
    if isinstance(edit, Add):
        changed[key] = deepcopy(edit.value)
        return changed
    if isinstance(edit, SupplyEdit) and key not in changed:
        changed[key] = deepcopy(edit.supply(Site(path, call, value_sources)))
        return changed
    if key not in changed:
        raise EditDoesNotApplyError(f"{edit.place} is not there")
    if isinstance(edit, Rename):
        changed[edit.to] = changed.pop(key)
    elif isinstance(edit, Remove):
        del changed[key]
    else:
        changed[key] = _changed_value(edit, changed[key], Site(path, call, value_sources))
    return changed


def _changed_value(edit: ValueEdit | SupplyEdit, value: JsonValue, site: Site) -> JsonValue:
    if isinstance(edit, ValueEdit):
        return deepcopy(edit.change(value, site))
    supplied = edit.supply(site)
    if same_json(supplied, value):
        raise EditDoesNotApplyError(f"{edit.place} has that value already")
    return deepcopy(supplied)


def _concrete(value: JsonValue, path: Path, so_far: Path = ()) -> Iterator[Path]:
    """The paths that one with `*` stands for in a value; the last step need not exist.

    Raises:
        EditDoesNotApplyError: when it leads through something that is not there.
    """
    if not path:
        yield so_far
        return
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        key = str(step)
        if rest and key not in value:
            raise EditDoesNotApplyError(f"{'/'.join(map(str, (*so_far, key)))} is not there")
        yield from _concrete(value.get(key), rest, (*so_far, key))
    elif isinstance(value, list):
        for index in _indexes(value, step, so_far):
            try:
                yield from _concrete(value[index], rest, (*so_far, index))
            except EditDoesNotApplyError:
                if step != EVERY:
                    raise
    else:
        raise EditDoesNotApplyError(f"{'/'.join(map(str, so_far))} has no members")


def _indexes(value: Sequence[JsonValue], step: str | int, so_far: Path) -> Sequence[int]:
    if step == EVERY and len(value) <= MAX_ELEMENTS:
        return range(len(value))
    if isinstance(step, int) and -len(value) <= step < len(value):
        return [step % len(value)]
    raise EditDoesNotApplyError(f"{'/'.join(map(str, so_far))} has no element {step}")
