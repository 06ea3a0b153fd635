"""JSON Patch (RFC 6902) for parameters: add, remove and replace; diff and apply.

Only these three operations are needed; a rename is a remove and an add. What does not fit a
document is a `JsonPatchError`.
"""

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.json_values import JsonObject, JsonValue

_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")  # RFC 6901: no leading zeros


class JsonPatchError(ValueError):
    """An operation does not fit the document it is applied to."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `path` is a JSON Pointer (RFC 6901). `before` is the value it replaces."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: JsonValue = None
    before: JsonValue = None


def pointer(parts: Iterable[str | int]) -> str:
    """The JSON Pointer of a path given in parts."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def parse_pointer(text: str) -> list[str]:
    """The parts of a JSON Pointer."""
    if text == "":
        return []
    if not text.startswith("/"):
        raise JsonPatchError(f"the JSON Pointer {text!r} must start with '/'")
    if _BAD_ESCAPE.search(text):
        raise JsonPatchError(f"the JSON Pointer {text!r}: write '~' as '~0' and '/' as '~1'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Equal as JSON texts: unlike in Python, `true` is not `1`, `1` not `1.0`, `0.0` not `-0.0`."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return left == right


def diff(before: JsonObject, after: JsonObject, path: tuple[str, ...] = ()) -> list[Operation]:
    """The operations that turn `before` into `after`; arrays are replaced whole."""
    operations: list[Operation] = []
    for key, old in before.items():
        here = (*path, key)
        if key not in after:
            operations.append(Operation("remove", pointer(here), before=old))
            continue
        new = after[key]
        if isinstance(old, dict) and isinstance(new, dict):
            operations.extend(diff(old, new, here))
        elif not same_json(old, new):
            operations.append(Operation("replace", pointer(here), value=new, before=old))
    operations.extend(
        Operation("add", pointer((*path, key)), value=new)
        for key, new in after.items()
        if key not in before
    )
    return operations


def apply(document: JsonObject, operations: Sequence[Operation]) -> JsonObject:
    """A changed copy of `document`; the document itself stays as it is."""
    changed = deepcopy(document)
    for operation in operations:
        _apply_one(changed, operation)
    return changed


def value_at(document: JsonObject, path: str) -> JsonValue:
    """The value that a JSON Pointer leads to."""
    value: JsonValue = document
    for part in parse_pointer(path):
        value = _member(value, part, path)
    return value


def _apply_one(document: JsonObject, operation: Operation) -> None:
    if not (parts := parse_pointer(operation.path)):
        raise JsonPatchError("the whole document cannot be replaced; name a member")
    container: JsonValue = document
    for part in parts[:-1]:
        container = _member(container, part, operation.path)
    key: Any = parts[-1]
    is_new = operation.op == "add"
    if isinstance(container, list):
        at_end = is_new and key == "-"
        size = len(container)
        key = size if at_end else _index(key, size + is_new, operation.path)
    elif not isinstance(container, dict):
        raise JsonPatchError(f"{operation.path} leads into a value that has no members")
    elif not is_new and key not in container:
        raise JsonPatchError(f"{operation.path} does not exist")
    if operation.op == "remove":
        del container[key]
    elif is_new and isinstance(container, list):
        container.insert(key, deepcopy(operation.value))
    else:
        container[key] = deepcopy(operation.value)


def _member(container: JsonValue, part: str, path: str) -> JsonValue:
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list):
        return container[_index(part, len(container), path)]
    raise JsonPatchError(f"{path} does not exist")


def _index(part: str, size: int, path: str) -> int:
    if not _INDEX.fullmatch(part) or int(part) >= size:
        raise JsonPatchError(f"{path}: {part!r} is no position in an array of {size}")
    return int(part)
