"""Common knowledge: what of a tool's calls may be told to everybody (4-rules.md, Suggesting).

The measures are those of `retrieval.proposals` and `retrieval.knowledge`, without an asker: there a
value may also travel because the asker said it already, here nobody has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import Tool
from aftercall.redaction import is_redacted
from mongo.records import ToolKey
from retrieval.edits import Add, Clamp, Edit, Rename, Replace
from retrieval.fitness.statistics import ToolTrials
from retrieval.health.record import KnownHealth
from retrieval.knowledge.profile import COMMON_SESSIONS, ParameterProfile, ToolProfile
from retrieval.knowledge.rules import RepairRule, ToolKnowledge
from retrieval.known_tools.text import Clean, estimate_tokens, in_quotes, named, plain
from retrieval.parameters import JsonType, ParameterView, ToolView, first, place_of, view_of_schema
from retrieval.proposals.experience import contradicts
from retrieval.values import number

_SETTLED = 5
"""Successes from which on a parameter that half of the calls have is one, and no key of a map."""
_MAX_SHOWN = 16
"""Parameters that are told one by one; required ones come first."""
_MAX_ALLOWED = 8
_MAX_NAME = 64
_MAX_VALUE = 30


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
        """The profile of the live schema; without a schema that of the newest calls."""
        if self.knowledge is None:
            return None
        if self.tool is not None and self.tool.schema_hash is not None:
            return self.knowledge.profile(self.tool.schema_hash)
        return next(reversed(self.knowledge.profiles.values()), None)

    def schema_view(self) -> ToolView | None:
        """The parameters by the live schema; None where there is none, or it says nothing."""
        if self.tool is None or self.tool.input_schema is None:
            return None
        view = view_of_schema(self.tool.input_schema)
        states_none = view.closed or self.tool.input_schema.get("properties") == {}
        return view if view.parameters or states_none else None


@dataclass(frozen=True, slots=True)
class Signature:
    """A tool's parameters in two lengths, each in parentheses; unescaped.

    `full` says types, bounds and allowed values; `short` names the required parameters and counts
    the others. Both are `(?)` where nothing is known.
    """

    short: str
    full: str


def may_be_told(rule: RepairRule, record: ToolRecord) -> bool:
    """Whether all that the lesson of a rule says is common knowledge, and true of the live schema.

    Names of parameters and forms of values are; values are where two sessions of two agents had
    them, or where the schema states them.
    """
    profile, view = seen_by_all(record), record.schema_view()
    known_to_several = min(rule.agents(), len(rule.sessions)) >= COMMON_SESSIONS
    return all(
        not _is_masked(edit)
        and (known_to_several or _is_free(edit, profile, view))
        and not (view is not None and not edit.inside and contradicts(view, edit))
        for edit in rule.edits
    )


def _is_masked(edit: Edit) -> bool:
    match edit:
        case Replace():
            return is_redacted(edit.before) or is_redacted(edit.value)
        case Add():
            return is_redacted(edit.value)
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
            return (known is not None and known.states(edit.value)) or (
                profile is not None
                and any(
                    same_json(edit.value, each.value)
                    for each in profile.common_values(place_of(first(edit.path)))
                )
            )
        case Clamp():
            stated = {known.minimum, known.maximum} if known is not None else set()
            return {edit.minimum, edit.maximum} <= stated | {None}
        case _:
            return True


def is_common_name(known: ParameterProfile, profile: ToolProfile) -> bool:
    """Whether a parameter that no schema states is the tool's, and no key of one caller's own."""
    if len(known.agents) > 1:
        return True
    sessions = {each for value in known.values.values() for each in value.sessions}
    if len(sessions) >= COMMON_SESSIONS and not known.is_shared:
        return True
    return known.successes >= _SETTLED and 2 * known.successes >= profile.successes


def seen_by_all(record: ToolRecord) -> ToolProfile | None:
    """The profile for readers of whom none has used the tool: one agent's values are private."""
    return None if record.profile is None else record.profile.seen_by("")


def common_value(record: ToolRecord, name: str) -> Sequence[JsonValue]:
    """One value of a parameter that everybody may see; none where there is none.

    The most usual one that is common knowledge, else the first that the schema allows.
    """
    profile, view = seen_by_all(record), record.schema_view()
    if profile is not None and (known := profile.common_values(name)):
        return [known[0].value]
    stated = view.parameters.get(name) if view is not None else None
    if stated is None:
        return []
    return stated.allowed[:1] or ([stated.default] if stated.has_default else [])


def signature_of_tool(record: ToolRecord, clean: Clean) -> Signature:
    """The signature of a tool. An optional parameter has a `?` behind its name."""
    views = _views(record)
    if views is None:
        return Signature("(?)", "(?)")
    required = [each for each in views if each.required]
    optional = [each for each in views if not each.required]
    names = [_name(each, clean) for each in required[:_MAX_SHOWN]]
    left = len(required) - len(names)
    if left:
        names.append(f"{left} more")
    if len(optional) == 1 and not left:
        names.append(f"{_name(optional[0], clean)}?")
    elif optional:
        names.append(f"{len(optional)} optional")
    told = [_told(each, clean) for each in [*required, *optional][:_MAX_SHOWN]]
    if len(views) > _MAX_SHOWN:
        told.append(f"{len(views) - _MAX_SHOWN} more")
    short, full = f"({', '.join(names)})", f"({', '.join(told)})"
    return Signature(min(full, short, key=estimate_tokens), full)


def _views(record: ToolRecord) -> Sequence[ParameterView] | None:
    view = record.schema_view()
    if view is not None:
        return list(view.parameters.values())
    profile = record.profile
    if profile is None or not profile.successes:
        return None
    return [
        each
        for name, each in sorted(profile.view().parameters.items())
        if is_common_name(profile.parameters[name], profile)
    ]


def _name(view: ParameterView, clean: Clean) -> str:
    return named(plain(view.name, _MAX_NAME, clean))


def _told(view: ParameterView, clean: Clean) -> str:
    what = _kind(view, clean)
    name = _name(view, clean) + ("" if view.required else "?")
    return f"{name}: {what}" if what else name


def _kind(view: ParameterView, clean: Clean) -> str:
    if view.allowed:
        shown = [_value(each, clean) for each in view.allowed[:_MAX_ALLOWED]]
        left = len(view.allowed) - len(shown)
        return "|".join([*shown, *([f"{left} more"] if left else [])])
    types = "|".join(_type(each, view) for each in view.types)
    bounds = _bounds(view.minimum, view.maximum)
    return " ".join(part for part in (types, bounds) if part)


def _type(kind: JsonType, view: ParameterView) -> str:
    if kind == "array" and view.item_types:
        return f"{view.item_types[0]}[]"
    return kind


def _bounds(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return f"from {number(low)}" if low is not None else f"up to {number(high or 0)}"
    return f"{number(low)}..{number(high)}"


def _value(value: JsonValue, clean: Clean) -> str:
    if isinstance(value, str):
        return in_quotes(plain(value, _MAX_VALUE, clean))
    return plain(canonical_json(value), _MAX_VALUE, clean)
