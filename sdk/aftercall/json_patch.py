"""JSON Patch (RFC 6902) for parameters: add, remove and replace; diff and apply.

Only these three operations are needed; a rename is a remove and an add. A diff is minimal: one
operation for each changed leaf or moved subtree, at every depth, in lists as well. Anything that
does not fit a document is a `JsonPatchError`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.json_values import JsonObject, JsonValue, canonical_json

_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")  # RFC 6901: no leading zeros
_MAX_PAIRS = 4_096
"""Pairs of elements that are compared to align two lists, 64 by 64: a few milliseconds of work."""
_Path = tuple[str | int, ...]


class JsonPatchError(ValueError):
    """An operation does not fit the document it is applied to."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `path` is a JSON Pointer (RFC 6901). `before` is the value it replaces."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: JsonValue = None
    before: JsonValue = None


def make_pointer(parts: Iterable[str | int]) -> str:
    """Return the JSON Pointer of a path given in parts."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def parse_pointer(text: str) -> list[str]:
    """Return the parts of a JSON Pointer."""
    if text == "":
        return []
    if not text.startswith("/"):
        raise JsonPatchError(f"the JSON Pointer {text!r} must start with '/'")
    if _BAD_ESCAPE.search(text):
        raise JsonPatchError(f"the JSON Pointer {text!r}: write '~' as '~0' and '/' as '~1'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def copy_value(value: JsonValue) -> Any:
    """Return a copy in which no part is shared, even where the value holds one part twice."""
    if isinstance(value, dict):
        return {key: copy_value(held) for key, held in value.items()}
    if isinstance(value, list):
        return [copy_value(held) for held in value]
    return value


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Equal as JSON texts: unlike in Python, `true` is not `1`, `1` not `1.0`, `0.0` not `-0.0`."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        return all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        return all(map(same_json, left, right))
    return left == right


def diff(before: JsonObject, after: JsonObject) -> list[Operation]:
    """Return the operations that, applied one after the other, turn `before` into `after`.

    Objects are compared key by key, lists of the same length element by element. Other lists are
    aligned by their longest common subsequence: what both hold is not named. Beyond 64 by 64
    elements that differ, only their common beginning and end are aligned. A value that becomes one
    of another type is replaced whole.
    """
    return list(_object_changes(before, after, ()))


def _diff_values(before: JsonValue, after: JsonValue, path: _Path) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _object_changes(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_changes(before, after, path)
    elif not same_json(before, after):
        yield Operation("replace", make_pointer(path), value=after, before=before)


def _object_changes(before: JsonObject, after: JsonObject, path: _Path) -> Iterator[Operation]:
    for key, old in before.items():
        place = (*path, key)
        if key in after:
            yield from _diff_values(old, after[key], place)
        else:
            yield Operation("remove", make_pointer(place), before=old)
    for key, new in after.items():
        if key not in before:
            place = (*path, key)
            yield Operation("add", make_pointer(place), value=new)


def _list_changes(
    before: list[JsonValue], after: list[JsonValue], path: _Path
) -> Iterator[Operation]:
    """Yield the operations from the first element to the last.

    An index counts what came before it.
    """
    index = 0
    for old, new in _align_lists(before, after):
        paired = min(len(old), len(new))
        for one, other in zip(old, new, strict=False):
            yield from _diff_values(one, other, (*path, index))
            index += 1
        for gone in old[paired:]:  # each removal brings the next element to the same index
            place = make_pointer((*path, index))
            yield Operation("remove", place, before=gone)
        for value in new[paired:]:
            place = make_pointer((*path, index))
            yield Operation("add", place, value=value)
            index += 1


_Run = tuple[list[JsonValue], list[JsonValue]]
"""Neighbouring elements of both lists that stand for each other."""


def _align_lists(before: list[JsonValue], after: list[JsonValue]) -> Iterator[_Run]:
    """Yield all of both lists as runs: what both hold, and what stands between that."""
    if len(before) == len(after):
        yield before, after
        return
    old, new = ([canonical_json(value) for value in values] for values in (before, after))
    left = right = 0
    for this, other in _common_positions(old, new):
        yield before[left:this], after[right:other]
        yield [before[this]], [after[other]]
        left = this + 1
        right = other + 1
    yield before[left:], after[right:]


def _common_positions(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return the positions in both lists of a common subsequence, the longest within the bound."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_end = len(old) - end
    new_end = len(new) - end
    pairs = [(place, place) for place in range(start)]
    for this, other in _longest_common(old[start:old_end], new[start:new_end]):
        pairs.append((start + this, start + other))
    pairs += [(old_end + place, new_end + place) for place in range(end)]
    return pairs


def _longest_common(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return the textbook's table of lengths (Hirschberg 1975); nothing beyond `_MAX_PAIRS`."""
    if len(old) * len(new) > _MAX_PAIRS:
        return []
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for this in reversed(range(len(old))):
        row = lengths[this]
        below = lengths[this + 1]
        for other in reversed(range(len(new))):
            if old[this] == new[other]:
                row[other] = below[other + 1] + 1
            else:
                row[other] = max(below[other], row[other + 1])
    pairs = []
    this = other = 0
    while this < len(old) and other < len(new):
        if old[this] == new[other]:
            pairs.append((this, other))
            this = this + 1
            other = other + 1
        elif lengths[this + 1][other] >= lengths[this][other + 1]:
            this += 1
        else:
            other += 1
    return pairs


def apply(document: JsonObject, operations: Sequence[Operation]) -> JsonObject:
    """Return a changed copy of `document`; the document itself stays as it is."""
    changed: JsonObject = copy_value(document)
    for operation in operations:
        apply_in_place(changed, operation)
    return changed


def value_at_pointer(document: JsonObject, path: str) -> JsonValue:
    """Return the value that a JSON Pointer leads to."""
    value: JsonValue = document
    for part in parse_pointer(path):
        value = _member_of(value, part, path)
    return value


def apply_in_place(document: JsonObject, operation: Operation) -> None:
    """Change `document` by one operation; where it does not fit, nothing is changed."""
    parts = parse_pointer(operation.path)
    if not parts:
        raise JsonPatchError("the whole document cannot be replaced; name a member")
    container: JsonValue = document
    for part in parts[:-1]:
        container = _member_of(container, part, operation.path)
    key: Any = parts[-1]
    is_new = operation.op == "add"
    if isinstance(container, list):
        at_end = is_new and key == "-"
        size = len(container)
        key = size if at_end else _read_index(key, size + is_new, operation.path)
    elif not isinstance(container, dict):
        raise JsonPatchError(f"{operation.path} leads into a value that has no members")
    elif not is_new and key not in container:
        raise JsonPatchError(f"{operation.path} does not exist")
    if operation.op == "remove":
        del container[key]
    elif is_new and isinstance(container, list):
        container.insert(key, copy_value(operation.value))
    else:
        container[key] = copy_value(operation.value)


def _member_of(container: JsonValue, part: str, path: str) -> JsonValue:
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list):
        return container[_read_index(part, len(container), path)]
    raise JsonPatchError(f"{path} does not exist")


def _read_index(part: str, size: int, path: str) -> int:
    if not _INDEX.fullmatch(part) or int(part) >= size:
        raise JsonPatchError(f"{path}: {part!r} is no position in an array of {size}")
    return int(part)
