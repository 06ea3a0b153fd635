"""Lessons: what a correction teaches, in one plain sentence each; made from the edits."""

from collections.abc import Sequence

from aftercall.json_values import JsonValue, canonical_json
from retrieval.edits import Add, Cast, Clamp, Edit, Remove, Rename, Replace

_MAX_VALUE = 80


def lesson_of(edits: Sequence[Edit]) -> str:
    """The lesson of a repair. Values are shown as JSON and cut, since they are data."""
    return " ".join(dict.fromkeys(_sentence(edit) for edit in edits))


def _sentence(edit: Edit) -> str:
    match edit:
        case Rename():
            return f"The parameter is called {edit.to}, not {edit.name}."
        case Remove():
            return f"Leave out {edit.name}."
        case Add():
            return f"{edit.name} must be given, such as {_shown(edit.value)}."
        case Cast():
            return f"{edit.name} must be of type {edit.to}."
        case Clamp():
            low = f"at least {edit.minimum:g}" if edit.minimum is not None else ""
            high = f"at most {edit.maximum:g}" if edit.maximum is not None else ""
            return f"{edit.name} must be {' and '.join(part for part in (low, high) if part)}."
        case Replace():
            return f"For {edit.name}, use {_shown(edit.value)} instead of {_shown(edit.before)}."


def _shown(value: JsonValue) -> str:
    if isinstance(value, str):
        value = value[: _MAX_VALUE + 1]
    text = canonical_json(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
