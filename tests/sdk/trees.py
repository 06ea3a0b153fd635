"""Calls as trees, edits of them at any depth, and who names which leaf; used by several tests."""

import random
from collections.abc import Sequence
from copy import deepcopy

from hypothesis import strategies as st

from aftercall.json_patch import Operation, apply, make_pointer, parse_pointer
from aftercall.json_values import JsonObject, JsonValue

_TEXTS = ("    return 2\n", "a", "", " b ", "`x` **y**;", '["discogs"]', "ü/~", "5", "line\r\n\t")
_KEYS = ("a", "b", "file_path", "user-id", "a/b", "~", "", "0", "1")


def value(rng: random.Random, depth: int) -> JsonValue:
    """A value that is at most `depth` containers deep, and often just so deep."""
    kind = rng.random()
    if depth <= 0 or kind < 0.25:
        return rng.choice(
            [*_TEXTS, None, True, False, 0, 1, -1, 1.0, -0.0, 2.5e300, 2**63 - 1, [], {}]
        )
    if kind < 0.6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
    return call(rng, depth - 1)


def call(rng: random.Random, depth: int) -> JsonObject:
    """The parameters of a call whose values are at most `depth` containers deep."""
    names = rng.sample(_KEYS, rng.randrange(1, 4))
    return {name: value(rng, depth) for name in names}


def places(tree: JsonValue, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values in a tree but the tree itself."""
    members: list[tuple[str | int, JsonValue]] = []
    if isinstance(tree, dict):
        members = list(tree.items())
    elif isinstance(tree, list):
        members = list(enumerate(tree))
    found: list[tuple[str | int, ...]] = []
    for key, member in members:
        found += [(*path, key), *places(member, (*path, key))]
    return found


def operation(rng: random.Random, tree: JsonObject) -> Operation | None:
    """An operation that fits a tree, at any depth; None where it is empty."""
    known = places(tree)
    if not known or rng.random() < 0.1:
        return Operation("add", make_pointer([rng.choice(_KEYS)]), value=value(rng, 2))
    path = rng.choice(known)
    kind = rng.random()
    if kind < 0.3:
        return Operation("remove", make_pointer(path))
    if kind < 0.6:
        return Operation("replace", make_pointer(path), value=value(rng, 2))
    within = tree
    for part in path:
        within = within[part]  # type: ignore[call-overload,index,assignment]  # it is there
    if isinstance(within, list):
        place: str | int = rng.choice([rng.randrange(len(within) + 1), "-"])
        return Operation("add", make_pointer([*path, place]), value=value(rng, 2))
    if isinstance(within, dict):
        return Operation("add", make_pointer([*path, rng.choice(_KEYS)]), value=value(rng, 2))
    if isinstance(path[-1], int):  # an element: one more stands before it
        return Operation("add", make_pointer(path), value=value(rng, 2))
    return Operation("add", make_pointer([*path[:-1], rng.choice(_KEYS)]), value=value(rng, 2))


def operations(rng: random.Random, tree: JsonObject) -> list[Operation]:
    """A few operations that fit a tree one after the other."""
    made: list[Operation] = []
    for _ in range(rng.randrange(1, 5)):
        if (one := operation(rng, tree)) is not None:
            made.append(one)
            tree = apply(tree, [one])
    return made


def named_by(before: JsonObject, path: str, changes: Sequence[Operation]) -> str | None:
    """Where a leaf of a call stands after changes; None where one of them names it.

    Follows the one leaf through each operation, so that it can tell whether others do so rightly.
    """
    way = typed_path(before, path)
    for change in changes:
        *parents, last = parse_pointer(change.path)
        size = len(parents)
        inside = [str(part) for part in way]
        if inside[:size] != parents:
            continue
        if len(way) == size:
            return None  # it leads into an empty container
        part = way[size]
        if isinstance(part, str):
            if part == last:
                return None
            continue
        if last == "-":
            continue
        index = int(last)
        if index == part and change.op != "add":
            return None
        if change.op == "add" and index <= part:
            way[size] = part + 1
        elif change.op == "remove" and index < part:
            way[size] = part - 1
    return make_pointer(way)


def typed_path(tree: JsonValue, path: str) -> list[str | int]:
    """The parts of a pointer, indexes of lists as numbers."""
    way: list[str | int] = []
    for part in parse_pointer(path):
        if isinstance(tree, list):
            way.append(int(part))
            tree = tree[int(part)]
        else:
            assert isinstance(tree, dict)
            way.append(part)
            tree = tree[part]
    return way


@st.composite
def operation_lists(draw: st.DrawFn) -> tuple[JsonObject, list[Operation]]:
    """A call and operations that fit it one after the other."""
    rng = draw(st.randoms(use_true_random=False))
    before = call(rng, draw(st.integers(0, 4)))
    return before, operations(rng, before)


@st.composite
def edited_pairs(draw: st.DrawFn) -> tuple[JsonObject, JsonObject]:
    """A call and an edit of it at any depth, so that they share most of what they hold."""
    before, made = draw(operation_lists())
    return before, apply(deepcopy(before), made)
