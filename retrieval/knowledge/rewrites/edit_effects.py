"""What edits do to a call: they are made to a copy, and two that give the same are one change."""

from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from itertools import pairwise
from typing import Any

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from retrieval.knowledge.rewrites import edits as e
from retrieval.knowledge.rewrites.moves import bind_path
from retrieval.knowledge.values.parameters import EVERY, MAX_ELEMENTS, Path, value_at


def apply_edits(
    parameters: JsonObject, edits: Sequence[e.Edit], value_sources: e.ValueSources = e.NO_SOURCES
) -> JsonObject:
    """Return a changed copy of the parameters; values that stay are shared with the original.

    An edit of every element of an array is made to those that it applies to. A value that an edit
    takes from the call, it takes from the call as it was sent.

    Raises:
        EditDoesNotApplyError: when one of the edits has nothing to work on.
    """
    changed = dict(parameters)
    for edit in edits:
        if isinstance(edit, e.REBUILDING):
            _rebuild_values(changed, edit, e.Site(edit.path, parameters, value_sources))
            continue
        done = False
        # From the end, so that what is taken out of an array moves nothing still to be seen.
        places = (
            reversed(list(_concrete_paths(changed, edit.path))) if edit.inside else (edit.path,)
        )
        for path in places:
            try:
                _apply_edit(changed, edit, e.Site(path, parameters, value_sources))
                done = True
            except e.EditDoesNotApplyError:
                if EVERY not in edit.inside:
                    raise
        if not done:
            raise e.EditDoesNotApplyError("nothing there is what the edit is about")
    return changed


def try_edits(
    parameters: JsonObject, edits: Sequence[e.Edit], value_sources: e.ValueSources = e.NO_SOURCES
) -> JsonObject | None:
    """Return what `apply_edits` does; None when an edit has nothing to work on."""
    try:
        return apply_edits(parameters, edits, value_sources)
    except e.EditDoesNotApplyError:
        return None


def _apply_edit(parameters: JsonObject, edit: e.Edit, site: e.Site) -> None:
    """Make one edit, in place but for the containers on the way, which are copied."""
    holder: Any = parameters
    for way in site.path[:-1]:
        holder[way] = copy(holder[way])
        holder = holder[way]
    step = site.path[-1]
    is_there = isinstance(holder, list) or step in holder
    if isinstance(edit, e.Nest | e.Flatten):
        if isinstance(holder, list):
            raise e.EditDoesNotApplyError(f"{step} has no name")
        moved = (
            edit.nest_fields(holder) if isinstance(edit, e.Nest) else edit.flatten_members(holder)
        )
        holder.clear()
        holder.update(moved)
        return
    if isinstance(edit, e.Rename | e.Add):
        target = edit.to if isinstance(edit, e.Rename) else step
        if isinstance(holder, list) or target in holder:
            raise e.EditDoesNotApplyError(f"{target} is there already, or has no name")
        if isinstance(edit, e.Add):
            holder[step] = deepcopy(edit.value)
            return
    if not is_there and not (isinstance(edit, e.SUPPLYING)):
        raise e.EditDoesNotApplyError(f"{step} is not there")
    match edit:
        case e.Rename():
            holder[edit.to] = holder.pop(step)
        case e.Remove():
            del holder[step]
        case e.ValueEdit():
            before = holder[step] if is_there else None
            after = edit.change_value(before, site)
            if isinstance(edit, e.SUPPLYING) and is_there and same_json(after, before):
                raise e.EditDoesNotApplyError(f"{step} has that value already")
            holder[step] = deepcopy(after)


def _rebuild_values(parameters: JsonObject, edit: e.Put | e.Take | e.Fill, site: e.Site) -> None:
    """Build a value at the places of an edit, in place but for the containers on the way."""
    changes = [
        (place, value)
        for place, value in _build_values(edit, site)
        if not (_is_at(parameters, place) and same_json(value_at(parameters, place), value))
    ]
    if not changes:
        raise e.EditDoesNotApplyError("it has that value already, or there is none to take")
    for place, value in changes:
        _set_value(parameters, place, value)


def _build_values(edit: e.Put | e.Take | e.Fill, site: e.Site) -> Iterator[tuple[Path, JsonValue]]:
    """Yield the values that an edit builds, with the places of the call that they are for."""
    of_lists = edit.path
    if isinstance(edit, e.Take):
        of_lists = edit.source
    elif isinstance(edit, e.Fill):
        places = [part for part in edit.parts if not isinstance(part, str)]
        of_lists = next((place for place in places if EVERY in place), ())
    elif EVERY in edit.path:
        of_lists = edit.path[: len(edit.path) - edit.path[::-1].index(EVERY)]
    whole = isinstance(edit, e.Put) and EVERY not in edit.path
    for source in (
        [()] if whole or not of_lists else list(_concrete_paths(site.parameters, of_lists))
    ):
        bound = tuple(step for step, form in zip(source, of_lists, strict=False) if form == EVERY)
        place = bind_path(edit.path, bound)  # type: ignore[arg-type]
        if isinstance(edit, e.Put):
            yield place, edit.value
        elif isinstance(edit, e.Fill):
            yield place, edit.fill_text(site.parameters, bound)  # type: ignore[arg-type]
        else:
            if not _is_at(site.parameters, source):
                raise e.EditDoesNotApplyError(f"{source[-1]} is not there")
            value = value_at(site.parameters, source)
            for form in edit.through:
                value = form.change_value(value, site)
            yield place, value


def _is_at(value: JsonValue, path: Path) -> bool:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return False
    return True


def _set_value(parameters: JsonObject, place: Path, value: JsonValue) -> None:
    holder: Any = parameters
    for step, below in pairwise(place):
        held = _held_value(holder, step)
        kind = dict if isinstance(below, str) else list
        made = copy(held) if isinstance(held, kind) else kind()
        _put_value(holder, step, made)
        holder = made
    _put_value(holder, place[-1], deepcopy(value))


def _held_value(holder: Any, step: str | int) -> JsonValue:
    if isinstance(holder, list):
        return holder[step] if isinstance(step, int) and step < len(holder) else None
    return holder.get(step)  # type: ignore[no-any-return]


def _put_value(holder: Any, step: str | int, value: JsonValue) -> None:
    if isinstance(holder, list):
        if not isinstance(step, int) or step > len(holder):
            raise e.EditDoesNotApplyError(f"there is no element {step}")
        holder[step : step + 1] = [value]
    else:
        holder[step] = value


def _concrete_paths(value: JsonValue, path: Path, so_far: Path = ()) -> Iterator[Path]:
    """Yield the paths that one with `*` stands for in a value.

    The last step alone need not exist.
    """
    if not path:
        yield so_far
        return
    step = path[0]
    rest = path[1:]
    if isinstance(value, dict):
        key = str(step)
        if rest and key not in value:
            raise e.EditDoesNotApplyError(f"{key} is not there")
        yield from _concrete_paths(value.get(key), rest, (*so_far, key))
    elif isinstance(value, list):
        for index in _element_indexes(value, step):
            try:
                yield from _concrete_paths(value[index], rest, (*so_far, index))
            except e.EditDoesNotApplyError:
                if step != EVERY:
                    raise
    else:
        raise e.EditDoesNotApplyError("what it is inside of has no members")


def _element_indexes(value: Sequence[JsonValue], step: str | int) -> Sequence[int]:
    if step == EVERY and len(value) <= MAX_ELEMENTS:
        return range(len(value))
    if isinstance(step, int) and -len(value) <= step < len(value):
        return [step % len(value)]
    raise e.EditDoesNotApplyError(f"there is no element {step}")


def changed_names(before: JsonObject, after: JsonObject) -> list[str]:
    """Return the top-level parameters that differ, in order.

    Values that edits left alone are shared.
    """
    return sorted(
        name
        for name in before.keys() | after.keys()
        if (name in before) != (name in after)
        or (before[name] is not after[name] and not same_json(before[name], after[name]))
    )


def effect_key(after: JsonObject, names: Sequence[str]) -> str:
    """Equal for changes of one call that give the same parameters, where 1.0 is 1."""
    held = ((name, name in after, after.get(name)) for name in names)
    return canonical_json(
        [
            [name, is_there, int(v) if isinstance(v, float) and v.is_integer() else v]
            for name, is_there, v in held
        ]
    )
