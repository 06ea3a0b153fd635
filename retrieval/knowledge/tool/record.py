"""The record of a tool, and what of its calls is common knowledge: its own, and no caller's."""

from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import Tool
from mongo.records import ToolKey
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edits import Add, Clamp, Edit, Rename, Replace, is_masked
from retrieval.knowledge.rows.health import KnownHealth
from retrieval.knowledge.rows.principals import principal_of
from retrieval.knowledge.rows.statistics import ToolTrials
from retrieval.knowledge.tool.profile import (
    COMMON_SESSIONS,
    Boundary,
    ParameterProfile,
    ToolProfile,
)
from retrieval.knowledge.tool.rules import RepairRule, ToolKnowledge
from retrieval.knowledge.values.parameters import (
    ToolView,
    first_path,
    view_of_schema,
    written_place,
)
from retrieval.knowledge.values.scalars import fits_types

_SETTLED = 5
"""Successes from which on a parameter that half of the calls have is one, and no key of a map."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool: as it is registered, if it is, and what was learned of its calls, if anything."""

    key: ToolKey
    tool: Tool | None = None
    knowledge: ToolKnowledge | None = None
    health: KnownHealth | None = None
    statistics: ToolTrials | None = None

    @property
    def profile(self) -> ToolProfile | None:
        """Profile of the live schema; without a schema that of the newest calls."""
        if self.knowledge is None:
            return None
        if self.tool is not None and self.tool.schema_hash is not None:
            return self.knowledge.find_profile(self.tool.schema_hash)
        return next(reversed(self.knowledge.profiles.values()), None)

    def schema_view(self) -> ToolView | None:
        """Return the parameters by the live schema.

        None without one, or where it states nothing.
        """
        if self.tool is None or self.tool.input_schema is None:
            return None
        view = view_of_schema(self.tool.input_schema)
        states_none = view.closed or self.tool.input_schema.get("properties") == {}
        if view.parameters or states_none:
            return view
        return None


def may_be_told(rule: RepairRule, record: ToolRecord) -> bool:
    """Return whether a rule's lesson is common knowledge and true of the live schema.

    Names of parameters and forms of values are; values are where two sessions of two agents had
    them, or where the schema states them.
    """
    profile = seen_by_all(record)
    view = record.schema_view()
    menders = rule.repair_agents()
    several = len(menders) if one_key_of(menders) is None else 1
    known_to_several = min(several, len(rule.sessions)) >= COMMON_SESSIONS
    return all(
        not is_masked(edit)
        and (known_to_several or _is_free(edit, profile, view))
        and not (view is not None and not edit.inside and contradicts_view(view, edit))
        for edit in rule.edits
    )


def one_key_of(marks: Collection[str]) -> str | None:
    """Return the mark of the key that all marks are of; None of several, and of the owner."""
    keys = set(map(principal_of, marks))
    if len(keys) == 1:
        return next(iter(keys)) or None
    return None


def _is_free(edit: Edit, profile: ToolProfile | None, view: ToolView | None) -> bool:
    if any(isinstance(step, str) and step != "*" for step in edit.inside):
        return False  # a key inside a value may be a caller's own, such as an id in a map
    known = view.parameters.get(edit.name) if view is not None else None
    match edit:
        case Rename():
            return view is None or edit.to in view.parameters
        case Replace():
            return False  # it states what its one caller had sent
        case Add():
            is_stated = known is not None and known.states_value(edit.value)
            return is_stated or _is_common_value(
                profile, written_place(first_path(edit.path)), edit.value
            )
        case Clamp():
            stated = {known.minimum, known.maximum} if known is not None else set()
            return {edit.minimum, edit.maximum} <= stated | {None}
        case _:
            return True


def _is_common_value(profile: ToolProfile | None, place: str, value: JsonValue) -> bool:
    """Return whether readers of other keys may be shown a value.

    One key alone makes none common.
    """
    known = profile.profile_at(place) if profile is not None else None
    if known is None:
        return False
    agents = {key: each.agents for key, each in known.values.items()}
    return any(
        same_json(value, each.value) and one_key_of(agents[canonical_json(each.value)]) is None
        for each in known.common_values()
        if canonical_json(each.value) in agents
    )


def is_common_name(known: ParameterProfile, profile: ToolProfile) -> bool:
    """Return whether a parameter outside of the schema is the tool's, and no caller's own."""
    if len(known.agents) > 1:
        return True
    sessions = {each for value in known.values.values() for each in value.sessions}
    if len(sessions) >= COMMON_SESSIONS and not known.is_shared:
        return True
    return known.successes >= _SETTLED and 2 * known.successes >= profile.successes


def seen_by_all(record: ToolRecord) -> ToolProfile | None:
    """Return the profile for readers of whom none has used the tool.

    One agent's values are private.
    """
    if record.profile is None:
        return None
    return record.profile.seen_by("")


def concrete_bound(record: ToolRecord, edit: Clamp) -> Clamp:
    """Return the bound of an error in terms of the schema or of the calls."""
    if edit.inside or (edit.minimum, edit.maximum) != (None, None):
        return edit
    view = record.schema_view()
    profile = record.profile
    stated = view.parameters.get(edit.name) if view is not None else None
    if stated is not None and (stated.minimum, stated.maximum) != (None, None):
        return edit.model_copy(update={"minimum": stated.minimum, "maximum": stated.maximum})
    known = profile.parameters.get(edit.name) if profile is not None else None
    bound = known.find_boundary() if known is not None else None
    if (
        known is None
        or bound is None
        or not (known.is_shared or _is_common(record, edit.name, bound))
    ):
        return edit
    low = bound.smallest if bound.fails_below is not None else None
    high = bound.largest if bound.fails_above is not None else None
    return edit.model_copy(update={"minimum": low, "maximum": high})


def _is_common(record: ToolRecord, name: str, bound: Boundary) -> bool:
    """Return whether the ends of what worked are common knowledge."""
    profile = seen_by_all(record)
    values = profile.common_values(name) if profile is not None else []
    return {bound.smallest, bound.largest} <= {each.value for each in values}


def contradicts_view(view: ToolView, edit: ed.Edit) -> bool:
    """Return whether what is known of the object around rules out what an edit does."""
    known = view.parameters.get(str(edit.path[-1]))
    if isinstance(edit, ed.Rename):
        return edit.to not in view.parameters
    if isinstance(edit, ed.Add) and known is None:
        return view.closed
    if known is None:
        return False
    match edit:
        case ed.Remove():
            return known.required
        case ed.Cast():
            return bool(known.types) and edit.to not in known.types and not (
                edit.to == "integer" and "number" in known.types
            )  # fmt: skip
        case ed.Add() | ed.Replace():
            listed = not known.allowed or any(same_json(edit.value, v) for v in known.allowed)
            return not (listed and fits_types(edit.value, known.types))
        case ed.Clamp():
            low = -inf if known.minimum is None else known.minimum
            high = inf if known.maximum is None else known.maximum
            limits = (each for each in (edit.minimum, edit.maximum) if each is not None)
            return any(not low <= each <= high for each in limits)
        case _:
            return False
