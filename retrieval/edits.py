"""Edits: the general form of what a repair did, so that it can be done to another call.

`rename tz -> timezone` is general; `set timezone to "Europe/Berlin"` is only right for a call that
said what the mended one said, so a `replace` carries the value it stood for.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from aftercall.json_patch import same_json
from aftercall.json_values import MAX_INTEGER, JsonObject, JsonValue
from aftercall.wire.base import Json
from retrieval.reading import ErrorReading
from retrieval.reading.faults import JsonType
from retrieval.values import CastError, cast, differ_in_digits, type_of


class EditDoesNotApplyError(ValueError):
    """The call does not have what the edit is about."""


class _Edit(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    """The top-level parameter the edit is about."""


class Rename(_Edit):
    """Move a value to another name."""

    kind: Literal["rename"] = "rename"
    to: str


class Remove(_Edit):
    """Leave a parameter out."""

    kind: Literal["remove"] = "remove"


class Add(_Edit):
    """Give a missing parameter a value."""

    kind: Literal["add"] = "add"
    value: Json


class Cast(_Edit):
    """Say the same in another JSON type; to `array` wraps or splits."""

    kind: Literal["cast"] = "cast"
    to: JsonType


class Clamp(_Edit):
    """Move a number to the bound it went past."""

    kind: Literal["clamp"] = "clamp"
    minimum: float | None = None
    maximum: float | None = None


class Replace(_Edit):
    """Put one value in the place of another; only for calls that have exactly `before`."""

    kind: Literal["replace"] = "replace"
    before: Json
    value: Json


Edit = Annotated[Rename | Remove | Add | Cast | Clamp | Replace, Field(discriminator="kind")]

_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def edit_key(edits: Iterable[Edit]) -> str:
    """Equal for equal edits in any order; the key under which repairs of one kind are counted."""
    return "\n".join(sorted(edit.model_dump_json() for edit in edits))


def edits_of_key(key: str) -> list[Edit]:
    """The edits that `edit_key` made this key of.

    Raises:
        ValueError: when it is no such key.
    """
    return [_EDIT.validate_json(line) for line in key.split("\n") if line]


def apply_edits(parameters: JsonObject, edits: Sequence[Edit]) -> JsonObject:
    """A changed copy of the parameters; values that stay are shared with the original.

    Raises:
        EditDoesNotApplyError: when one of the edits has nothing to work on.
    """
    changed = dict(parameters)
    for edit in edits:
        _apply(changed, edit)
    return changed


def _apply(changed: JsonObject, edit: Edit) -> None:
    target = edit.to if isinstance(edit, Rename) else edit.name if isinstance(edit, Add) else None
    if target is not None and target in changed:
        raise EditDoesNotApplyError(f"{target} is there already")
    if isinstance(edit, Add):
        changed[edit.name] = deepcopy(edit.value)
        return
    if edit.name not in changed:
        raise EditDoesNotApplyError(f"{edit.name} is not there")
    value = changed[edit.name]
    match edit:
        case Rename():
            changed[edit.to] = changed.pop(edit.name)
        case Remove():
            del changed[edit.name]
        case Cast():
            changed[edit.name] = _cast(edit, value)
        case Clamp():
            changed[edit.name] = _clamped(edit, value)
        case Replace():
            if not same_json(value, edit.before):
                raise EditDoesNotApplyError(f"{edit.name} has another value")
            changed[edit.name] = deepcopy(edit.value)


def _cast(edit: Cast, value: JsonValue) -> JsonValue:
    if type_of(value) == edit.to:
        raise EditDoesNotApplyError(f"{edit.name} is of type {edit.to} already")
    try:
        return cast(value, edit.to)
    except CastError as error:
        raise EditDoesNotApplyError(str(error)) from error


def _clamped(edit: Clamp, value: JsonValue) -> JsonValue:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EditDoesNotApplyError(f"{edit.name} is no number")
    for limit, beyond in ((edit.minimum, -1), (edit.maximum, 1)):
        if limit is not None and (value - limit) * beyond > 0 and abs(limit) <= MAX_INTEGER:
            return int(limit) if float(limit).is_integer() else limit
    raise EditDoesNotApplyError(f"{edit.name} is within its bounds")


def infer_edits(failed: JsonObject, mended: JsonObject, reading: ErrorReading) -> list[Edit] | None:
    """The edits that a repair made; None when it is no repair but another call.

    What changed beside the faults that the error names is the caller's own new intent and no part
    of the repair. Where the error names nothing, only a small change counts as a repair.
    """
    gone = [name for name in failed if name not in mended]
    new = [name for name in mended if name not in failed]
    edits: list[Edit] = []
    for source in tuple(gone):
        if target := _moved_to(failed[source], new, mended):
            edits.append(Rename(name=source, to=target))
            if not same_json(failed[source], mended[target]):
                edits.append(Cast(name=target, to=type_of(mended[target])))
            gone.remove(source)
            new.remove(target)
    kept = [name for name in failed if name in mended]
    changes = (_changed(name, failed[name], mended[name], reading) for name in kept)
    edits.extend(edit for edit in changes if edit)
    edits.extend(Remove(name=name) for name in gone)
    edits.extend(Add(name=name, value=mended[name]) for name in new)
    return _only_the_repair(edits, failed, reading)


def _only_the_repair(
    edits: list[Edit], failed: JsonObject, reading: ErrorReading
) -> list[Edit] | None:
    if not edits:
        return None
    implicated = reading.implicated
    if implicated:
        # A rename takes its source from a name that the error need not mention.
        touching = [edit for edit in edits if names_of(edit) & implicated]
        beside = [edit for edit in edits if not names_of(edit) & implicated]
        if any(_is_another_thing(edit, reading) for edit in touching):
            return None
        if any(isinstance(edit, Replace) for edit in beside) and any(
            isinstance(edit, Add | Replace) for edit in touching
        ):
            return None  # the value went with a new intent: it was right for that one
        return touching or None
    untouched = len(failed) - sum(edit.name in failed for edit in edits)
    said_again = len(failed) <= 1 and not any(isinstance(edit, Replace) for edit in edits)
    small = len(edits) <= 2 and (untouched >= len(edits) or said_again)
    return edits if small and not any(_is_another_thing(e, reading) for e in edits) else None


def _is_another_thing(edit: Edit, reading: ErrorReading) -> bool:
    """Whether a value that was not found gave way to one of another number: the next of a list."""
    if not isinstance(edit, Replace) or reading.category not in ("not_found", "unknown"):
        return False
    return differ_in_digits(str(edit.before), str(edit.value))


def names_of(edit: Edit) -> set[str]:
    """The parameters that an edit changes, takes away or supplies."""
    return {edit.name, edit.to} if isinstance(edit, Rename) else {edit.name}


def _moved_to(value: JsonValue, new: list[str], mended: JsonObject) -> str | None:
    same = [name for name in new if same_json(value, mended[name])]
    if not same:
        same = [name for name in new if _is_cast(value, mended[name])]
    return same[0] if len(same) == 1 else None


def _changed(name: str, before: JsonValue, after: JsonValue, reading: ErrorReading) -> Edit | None:
    if same_json(before, after):
        return None
    if _is_cast(before, after):
        return Cast(name=name, to=type_of(after))
    if isinstance(after, int | float) and not isinstance(after, bool):
        for fault in reading.faults:
            if fault.kind == "out_of_range" and fault.parameter in (name, None):
                if fault.maximum == after:
                    return Clamp(name=name, maximum=fault.maximum)
                if fault.minimum == after:
                    return Clamp(name=name, minimum=fault.minimum)
    return Replace(name=name, before=before, value=after)


def _is_cast(before: JsonValue, after: JsonValue) -> bool:
    kind = type_of(after)
    if type_of(before) == kind or after is None:
        return False
    try:
        return same_json(cast(before, kind), after)
    except CastError:
        return False
