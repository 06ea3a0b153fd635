"""Rules that the tool's live schema contradicts: retired, however often they worked."""

from collections.abc import Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from retrieval.edits.kinds import Add, Cast, Clamp, Edit, Remove, Rename, Replace
from retrieval.parameters import ParameterView, ToolView
from retrieval.paths import Path, first, value_at
from retrieval.proposals.case import Case
from retrieval.proposals.subschema import object_view
from retrieval.values import fits


def is_retired(case: Case, edits: Sequence[Edit]) -> bool:
    """Whether the live schema rules out what one of the edits does."""
    return any(
        _contradicts(view, edit)
        for edit in edits
        if (view := _view_around(case, edit.path)) is not None and view.parameters
    )


def _view_around(case: Case, path: Path) -> ToolView | None:
    """What the schema says of the object that the last step of the path is in."""
    if case.schema is None or case.view is None or case.view.source != "schema":
        return None
    if len(path) == 1:
        return case.view
    around = first(path[:-1])
    value = value_at(case.parameters, around)
    return object_view(case.schema, around, value if isinstance(value, dict) else {})


def _contradicts(view: ToolView, edit: Edit) -> bool:
    name = str(edit.path[-1])
    known = view.parameters.get(name)
    if isinstance(edit, Rename):
        return edit.to not in view.parameters
    if isinstance(edit, Add) and known is None:
        return view.closed
    if known is None:
        return False
    match edit:
        case Remove():
            return known.required
        case Cast():
            return bool(known.types) and edit.to not in known.types and not (
                edit.to == "integer" and "number" in known.types
            )  # fmt: skip
        case Add() | Replace():
            return not _is_allowed(known, edit.value)
        case Clamp():
            return _is_beyond(known, edit.minimum) or _is_beyond(known, edit.maximum)
        case _:
            return False


def _is_allowed(known: ParameterView, value: JsonValue) -> bool:
    if not fits(value, known.types):
        return False
    return not known.allowed or any(same_json(value, each) for each in known.allowed)


def _is_beyond(known: ParameterView, limit: float | None) -> bool:
    if limit is None:
        return False
    return (known.minimum is not None and limit < known.minimum) or (
        known.maximum is not None and limit > known.maximum
    )
