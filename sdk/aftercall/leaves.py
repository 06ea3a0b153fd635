"""Leaves of a call: its scalars and empty containers, each with its path. Pure.

A leaf is the caller's, byte for byte, unless a change names it: an operation whose path is the
leaf's own, lies above it, or leads into it. In a list an operation moves the elements behind it to
other indexes, and does not name them by that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aftercall.json_patch import (
    JsonPatchError,
    Operation,
    make_pointer,
    parse_pointer,
    same_json,
    value_at_pointer,
)
from aftercall.json_values import JsonObject, JsonValue

_Path = tuple[str | int, ...]


def leaves_by_path(tree: JsonValue) -> dict[str, JsonValue]:
    """Return the leaves of a JSON value by their JSON Pointers, in its order.

    A value without members is its own only leaf, under the pointer "".
    """
    return {make_pointer(path): value for path, value in _walk_leaves(tree, ())}


def _walk_leaves(value: JsonValue, path: _Path) -> Iterator[tuple[_Path, JsonValue]]:
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from _walk_leaves(member, (*path, key))
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _walk_leaves(member, (*path, index))
    else:
        yield path, value


def untouched_leaves_changed(
    before: JsonObject, after: JsonObject, operations: Sequence[Operation]
) -> list[str]:
    """Return the leaves of `before` that no operation names and that `after` changes.

    The answer holds pointers into `before`. A leaf is changed if `after` does not hold it byte for
    byte where the operations leave it: at its own place, or in a list, where elements before it
    came or went, at another index. This follows the operations by itself: it is a second opinion
    on what `json_patch.apply` makes of them.

    Raises:
        JsonPatchError: an operation does not fit `before`.
    """
    root = _walk_places(before, ())
    for operation in operations:
        try:
            _follow_operation(root, operation)
        except (LookupError, ValueError) as error:
            raise JsonPatchError(f"{operation.path} does not fit the document") from error
    kept = leaves_by_path(before)
    return [
        origin
        for path, origin in _walk_untouched(root, ())
        if not _holds_value(after, make_pointer(path), kept[origin])
    ]


@dataclass(slots=True, eq=False)
class _Place:
    """A place of a document, and the leaf of the first document that still stands there."""

    origin: str | None = None
    members: "dict[str, _Place] | list[_Place] | None" = None


def _walk_places(value: JsonValue, path: _Path | None) -> _Place:
    """Return the places of a value at a path of the first document; None for a new value."""
    members: dict[str, _Place] | list[_Place] | None = None
    if isinstance(value, dict):
        members = {
            key: _walk_places(member, None if path is None else (*path, key))
            for key, member in value.items()
        }
    elif isinstance(value, list):
        members = [
            _walk_places(member, None if path is None else (*path, index))
            for index, member in enumerate(value)
        ]
    return _Place(None if members or path is None else make_pointer(path), members)


def _follow_operation(root: _Place, operation: Operation) -> None:
    *parents, last = parse_pointer(operation.path)
    place = root
    for part in parents:
        place = _member_place(place, part)
    place.origin = None  # an empty container is given a member
    new = _walk_places(operation.value, None)
    if isinstance(place.members, dict):
        if operation.op != "add":
            del place.members[last]
        if operation.op != "remove":
            place.members[last] = new
    elif isinstance(place.members, list):
        _put_into_list(place.members, last, new, operation.op)
    else:
        raise JsonPatchError(f"{operation.path} leads into a value that has no members")


def _put_into_list(members: list[_Place], part: str, new: _Place, op: str) -> None:
    index = len(members) if part == "-" else int(part)
    if not 0 <= index < len(members) + (op == "add"):
        raise LookupError(part)
    if op == "add":
        members.insert(index, new)
    elif op == "remove":
        del members[index]
    else:
        members[index] = new


def _member_place(place: _Place, part: str) -> _Place:
    if isinstance(place.members, dict):
        return place.members[part]
    if isinstance(place.members, list):
        return place.members[int(part)]
    raise LookupError(part)


def _walk_untouched(place: _Place, path: _Path) -> Iterator[tuple[_Path, str]]:
    if place.origin is not None:
        yield path, place.origin
    if isinstance(place.members, dict):
        for key, member in place.members.items():
            yield from _walk_untouched(member, (*path, key))
    elif isinstance(place.members, list):
        for index, member in enumerate(place.members):
            yield from _walk_untouched(member, (*path, index))


def _holds_value(document: JsonObject, path: str, value: JsonValue) -> bool:
    try:
        return same_json(value_at_pointer(document, path), value)
    except JsonPatchError:
        return False
