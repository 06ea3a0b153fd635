"""The canonical shape of a result: keys and containers only, never a value. Pure.

Three differences are unmistakable, and nothing else is touched:

- the style of a key that the deliverable names: it asks for `movie_titles`, and there are
  `movieTitles` or `Movie-Titles`, once. Never a synonym: `films` are no `titles`;
- an envelope: something is asked for, and there is an object with one key that says nothing
  (`result`, `items`, `data`), around just that;
- one object where an array of such objects is asked for, and an array of one where that one is
  asked for. A single text is never made an array: "no titles found" is not a list of one title.

Doing it twice changes nothing, and what is canonical already comes back as the same object. It may
still break the deliverable: that is for `check` to say.
"""

from typing import Any

from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.values import folded, is_envelope, is_of_type


def canonical(value: Any, wanted: Deliverable) -> Any:
    """`value` in the keys and containers that `wanted` speaks of; see the module."""
    value = _in_container(value, wanted)
    if isinstance(value, dict):
        return _with_fields(_in_style(value, wanted), wanted)
    if isinstance(value, list) and wanted.items is not None:
        items = [canonical(item, wanted.items) for item in value]
        return value if _same(items, value) else items
    return value


def _in_container(value: Any, wanted: Deliverable) -> Any:
    kind = wanted.expected_type
    if kind is None:
        return value
    if kind == "object":
        return _object_in(value, wanted)
    if isinstance(value, dict):
        held = _enveloped(value, wanted)
        if held is not None and is_of_type(held, kind):
            return held
    if kind == "array":
        is_one = isinstance(value, dict) and wanted.items is not None
        return [value] if is_one and _answers_to(value, wanted.items) else value
    return _only(value, kind)


def _object_in(value: Any, wanted: Deliverable) -> Any:
    held = _enveloped(value, wanted) if isinstance(value, dict) else None
    if _answers_to(held, wanted):
        return held
    only = _only(value, "object")
    return only if _answers_to(only, wanted) else value


def _enveloped(value: dict[Any, Any], wanted: Deliverable) -> Any:
    """What the one key holds, when it is an envelope and not a key that was asked for."""
    if len(value) != 1:
        return None
    (key,) = value
    is_asked_for = isinstance(key, str) and folded(key) in wanted.named_in_any_style
    return value[key] if is_envelope(key) and not is_asked_for else None


def _answers_to(value: Any, wanted: Deliverable | None) -> bool:
    """Whether it is an object with all keys that are needed, or with any when none is."""
    if wanted is None or not isinstance(value, dict):
        return False
    there = {folded(key) for key in value if isinstance(key, str)}
    needed = [folded(name) for name in wanted.needed]
    if needed:
        return there.issuperset(needed)
    return not there.isdisjoint(wanted.named_in_any_style)


def _only(value: Any, kind: str) -> Any:
    is_one = isinstance(value, list) and len(value) == 1 and is_of_type(value[0], kind)
    return value[0] if is_one else value


def _in_style(value: dict[Any, Any], wanted: Deliverable) -> dict[Any, Any]:
    """Keys in the deliverable's spelling, each where it stood; two that fit are both left."""
    missing = [name for name in wanted.named if name not in value]
    if not missing:
        return value
    by_style: dict[str, list[str]] = {}
    for key in value:
        if isinstance(key, str) and key not in wanted.named:
            by_style.setdefault(folded(key), []).append(key)
    renamed = {
        found[0]: name
        for name in missing
        if len(found := by_style.get(folded(name), [])) == 1
        and wanted.named_in_any_style[folded(name)] == 1
    }
    return {renamed.get(key, key): item for key, item in value.items()} if renamed else value


def _with_fields(value: dict[Any, Any], wanted: Deliverable) -> dict[Any, Any]:
    changed = {
        name: made
        for name, part in wanted.fields.items()
        if name in value and (made := canonical(value[name], part)) is not value[name]
    }
    return {key: changed.get(key, item) for key, item in value.items()} if changed else value


def _same(items: list[Any], others: list[Any]) -> bool:
    return all(item is other for item, other in zip(items, others, strict=True))
