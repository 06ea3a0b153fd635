"""Lessons: what a correction teaches, in one plain sentence each; made from the edits."""

from collections.abc import Sequence

from aftercall.json_values import JsonValue, canonical_json
from retrieval.edits.kinds import Add, Clamp, Copy, Edit, Reformat, Rename, Replace, Respell
from retrieval.paths import Path
from retrieval.texts import Style

_MAX_VALUE = 80
_STYLES: dict[Style, str] = {
    "lower": "in lower case", "upper": "in capitals", "title": "Like This",
    "capital": "with a capital first", "snake": "like_this", "kebab": "like-this",
    "camel": "likeThis", "pascal": "LikeThis", "spaced": "in separate words",
}  # fmt: skip


def lesson_of(edits: Sequence[Edit]) -> str:
    """The lesson of a repair. Values are shown as JSON and cut, since they are data."""
    return " ".join(dict.fromkeys(_sentence(edit) for edit in edits))


_SENTENCES = {
    "remove": "Leave out {place}.",
    "add": "{place} must be given, such as {value}.",
    "cast": "{place} must be of type {to}.",
    "replace": "For {place}, use {value} instead of {before}.",
    "wrap": "{place} must be a list, also of one.",
    "unwrap": "{place} must be the value itself, not a list of it.",
    "split": "{place} must be a list, not one text with {separator} in it.",
    "join": "{place} must be one text, joined by {separator}, not a list.",
    "respell": "Write {place} {style}.",
    "strip": "Write {place} without its {what}.",
    "prefix": "{place} must start with {text}.",
    "reformat": "Write {place} in the form {to}.",
    "snap": "{place} must be one of the allowed values.",
    "from_error": "For {place}, use the value that the error states.",
    "from_context": "For {place}, use what the task itself states ({form}).",
    "copy": "{place} must be the same as {source}.",
    "balance": "Change {place} so that the sum is the total that the error states.",
    "usual": "For {place}, use the usual value.",
}
_AS_JSON = frozenset({"value", "before", "separator", "text"})
"""Fields that are data."""


def _sentence(edit: Edit) -> str:
    place = spoken(edit.path)
    if isinstance(edit, Rename):
        around = f" in {spoken(edit.path[:-1])}" if edit.inside else ""
        return f"The parameter{around} is called {edit.to}, not {edit.path[-1]}."
    if isinstance(edit, Clamp):
        return _bounds(place, edit)
    fields = {
        name: shown(value) if name in _AS_JSON else str(value) for name, value in edit if value
    }
    match edit:
        case Add() | Replace():
            fields |= {"value": shown(edit.value)}
            fields |= {"before": shown(edit.before)} if isinstance(edit, Replace) else {}
        case Respell():
            fields["style"] = _STYLES[edit.style]
        case Reformat():
            fields["to"] = edit.to or "that the error asks for"
        case Copy():
            fields["source"] = spoken(edit.source)
    return _SENTENCES[edit.kind].format(place=place, **fields)


def _bounds(name: str, edit: Clamp) -> str:
    low = f"at least {edit.minimum:g}" if edit.minimum is not None else ""
    high = f"at most {edit.maximum:g}" if edit.maximum is not None else ""
    stated = " and ".join(part for part in (low, high) if part)
    return f"{name} must be {stated or 'within the stated bounds'}."


def spoken(path: Path) -> str:
    """A place in words: `date of each of flights`, `amount of the last of payment_methods`."""
    words = str(path[0])
    for step in path[1:]:
        if step == "*":
            words = f"each of {words}"
        elif step == -1:
            words = f"the last of {words}"
        elif isinstance(step, int):
            words = f"number {step + 1} of {words}"
        else:
            words = f"{step} of {words}"
    return words


def shown(value: JsonValue) -> str:
    """A value as JSON, cut."""
    if isinstance(value, str):
        value = value[: _MAX_VALUE + 1]
    text = canonical_json(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
