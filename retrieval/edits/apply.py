"""Applying edits to the parameters of a call. Pure."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from retrieval.edits.kinds import (
    NO_SOURCES,
    Add,
    Edit,
    EditDoesNotApplyError,
    Remove,
    Rename,
    Site,
    SupplyEdit,
    ValueEdit,
    ValueSources,
)
from retrieval.paths import EVERY, MAX_ELEMENTS, Path


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
