"""Common knowledge: what of a tool's calls may be told to everybody (4-rules.md, Suggesting).

The measures are those of `retrieval.proposals.experience` and `retrieval.profile`, without an
asker: there a value may also travel because the asker said it already, here nobody has.
"""

from collections.abc import Sequence

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.edits import Add, Clamp, Edit, Prefix, Rename, Replace
from retrieval.edits.places import first
from retrieval.knowledge import RepairRule
from retrieval.known_tools.records import ToolRecord
from retrieval.parameters import ParameterView, ToolView
from retrieval.profile import COMMON_SESSIONS, ParameterProfile, ToolProfile
from retrieval.profile.places import place_of
from retrieval.values import fits

_SETTLED = 5
"""Successes from which on a parameter that half of the calls have is one, and no key of a map."""


def may_be_told(rule: RepairRule, record: ToolRecord) -> bool:
    """Whether all that the lesson of a rule says is common knowledge, and true of the live schema.

    Names of parameters and forms of values are; values are where two sessions (of two agents, where
    several use the tool) had them, or where the schema states them.
    """
    profile, view = record.profile, record.schema_view()
    is_shared = profile is not None and len(profile.agents) > 1
    sessions = 1 if is_shared and rule.agents() < COMMON_SESSIONS else len(rule.sessions)
    known_to_several = sessions >= COMMON_SESSIONS
    return all(
        not _is_masked(edit)
        and (known_to_several or _is_free(edit, profile, view))
        and not _is_contradicted(edit, view)
        for edit in rule.edits
    )


def _is_masked(edit: Edit) -> bool:
    match edit:
        case Replace():
            return is_redacted(edit.before) or is_redacted(edit.value)
        case Add():
            return is_redacted(edit.value)
        case Prefix():
            return is_redacted(edit.text)
        case _:
            return False


def _is_free(edit: Edit, profile: ToolProfile | None, view: ToolView | None) -> bool:
    """Whether the words of an edit that one session made may be told."""
    if any(isinstance(step, str) and step != "*" for step in edit.inside):
        return False  # a key inside a value may be a caller's own, such as an id in a map
    known = view.parameters.get(edit.name) if view is not None else None
    match edit:
        case Rename():
            return view is None or edit.to in view.parameters
        case Replace():
            return False  # it says what its one caller had sent
        case Add():
            return _is_stated(edit.value, known) or (
                profile is not None
                and any(
                    same_json(edit.value, each.value)
                    for each in profile.common_values(place_of(first(edit.path)))
                )
            )
        case Prefix():
            return edit.text in ("@", "#")
        case Clamp():
            stated = {known.minimum, known.maximum} if known is not None else set()
            return {edit.minimum, edit.maximum} <= stated | {None}
        case _:
            return True


def _is_stated(value: JsonValue, known: ParameterView | None) -> bool:
    if known is None:
        return False
    stated = [*known.allowed, *known.stated_values, *([known.default] * known.has_default)]
    return any(same_json(value, each) for each in stated)


def _is_contradicted(edit: Edit, view: ToolView | None) -> bool:
    """Whether the live schema rules out what an edit of a whole parameter does."""
    if view is None or edit.inside:
        return False
    if isinstance(edit, Rename):
        return edit.to not in view.parameters
    known = view.parameters.get(edit.name)
    if known is None:
        return isinstance(edit, Add) and view.closed
    match edit:
        case Add() | Replace():
            allowed = not known.allowed or any(same_json(edit.value, e) for e in known.allowed)
            return not (allowed and fits(edit.value, known.types))
        case Clamp():
            return any(
                limit is not None
                and ((known.minimum is not None and limit < known.minimum)
                     or (known.maximum is not None and limit > known.maximum))
                for limit in (edit.minimum, edit.maximum)
            )  # fmt: skip
        case _:
            return edit.kind == "remove" and known.required


def is_common_name(known: ParameterProfile, profile: ToolProfile) -> bool:
    """Whether a parameter that no schema states is the tool's, and no key of one caller's own."""
    if len(known.agents) > 1:
        return True
    sessions = {each for value in known.values.values() for each in value.sessions}
    if len(sessions) >= COMMON_SESSIONS and not known.is_shared:
        return True
    return known.successes >= _SETTLED and 2 * known.successes >= profile.successes


def common_value(record: ToolRecord, name: str) -> Sequence[JsonValue]:
    """One value of a parameter that everybody may see; none where there is none.

    The most usual one that is common knowledge, else the first that the schema allows.
    """
    profile, view = record.profile, record.schema_view()
    if profile is not None and (known := profile.common_values(name)):
        return [known[0].value]
    stated = view.parameters.get(name) if view is not None else None
    if stated is None:
        return []
    return stated.allowed[:1] or ([stated.default] if stated.has_default else [])
