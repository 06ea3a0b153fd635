"""The lesson of a pattern in words: what mended such failures, as far as everybody may hear it.

A pattern stands for many calls, so what one value was replaced by, or that a call worked without a
parameter, is told as what was seen; what holds for all of them comes from what was wrong.
"""

from collections.abc import Iterator, Mapping, Sequence

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory
from retrieval.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.edits import Clamp, Edit, Remove, Replace, Snap
from retrieval.knowledge import RepairRule, SignatureKnowledge
from retrieval.known_tools.common import may_be_told
from retrieval.known_tools.pitfalls import concrete
from retrieval.known_tools.records import ToolRecord
from retrieval.lessons import lesson_of, shown, spoken
from retrieval.profile.places import place_of
from retrieval.proposals.experience import rule_trials
from retrieval.reading.faults import FaultKind

_UNCHANGED = "The same call, made again later, worked."
_BY_CATEGORY: dict[ErrorCategory, str] = {
    "rate_limited": "Wait before calling again; the call itself is right.",
    "timeout": "The call took too long: ask for less, or call again later.",
    "unavailable": "The tool could not be reached; the same call may work later.",
    "permission_denied": "The caller may not do this: ask for the permission, do not retry.",
    "user_rejected": "The user refused the call: ask before trying anything like it.",
    "wrong_tool_boundary": "This is not the tool's job: use another one, or split the request.",
    "conflict": "The present state refuses the call: read it anew first.",
}


def lesson_of_pattern(
    signatures: Sequence[str], category: ErrorCategory, record: ToolRecord
) -> str:
    """What helps against failures of these signatures; empty where nothing is known.

    The rule that mended most of them, of those that mend surely enough and may be told, a general
    one before one about a single value; else what the category says.
    """
    known = [found for each in signatures if (found := _known(record, each)) is not None]
    told = [(_is_about_one(rule), -rule.repairs, text) for rule, text in _told(known, record)]
    return min(told)[2] if told else _BY_CATEGORY.get(category, "")


def _told(
    known: Sequence[SignatureKnowledge], record: ToolRecord
) -> Iterator[tuple[RepairRule, str]]:
    for each in known:
        for rule in each.rules.values():
            if may_be_told(rule, record) and lower_bound(rule_trials(rule)) >= MIN_CONFIDENCE:
                yield rule, _text(rule, each.faults, record)


def _is_about_one(rule: RepairRule) -> bool:
    return any(isinstance(edit, Replace) for edit in rule.edits)


def _text(rule: RepairRule, faults: Mapping[str, FaultKind], record: ToolRecord) -> str:
    if not rule.edits:
        return _UNCHANGED
    said = (_said(edit, faults.get(place_of(edit.path)), record) for edit in rule.edits)
    return " ".join(dict.fromkeys(said))


def _said(edit: Edit, fault: FaultKind | None, record: ToolRecord) -> str:
    match edit:
        case Replace() if fault == "out_of_range" and _is_number(edit.value):
            seen = ""  # a number of one call is no lesson for another
        case Replace():
            before, value = shown(edit.before), shown(edit.value)
            seen = f"For {spoken(edit.path)}, {value} worked in the place of {before}."
        case Clamp() if (edit.minimum, edit.maximum) == (None, None):
            return _bounds(edit, record)
        case Remove() if fault != "unexpected":
            seen = f"Without {spoken(edit.path)} the call worked."
        case _:
            return lesson_of([edit])
    return " ".join(filter(None, (_rule_of(edit, fault, record), seen)))


def _rule_of(edit: Remove | Replace, fault: FaultKind | None, record: ToolRecord) -> str:
    """What holds for all values, as far as the error says what is wrong."""
    match fault:
        case "out_of_range":
            return _bounds(Clamp(name=edit.name, inside=edit.inside), record)
        case "not_allowed":
            return lesson_of([Snap(name=edit.name, inside=edit.inside)])
        case _:
            return ""


def _bounds(edit: Clamp, record: ToolRecord) -> str:
    """Bounds that the schema states; else what is known to have worked within them."""
    known = concrete(record, edit)
    view = record.schema_view()
    stated = view.parameters.get(edit.name) if view is not None else None
    if stated is not None and (stated.minimum, stated.maximum) != (None, None):
        return lesson_of([known])
    low = f"from {known.minimum:g}" if known.minimum is not None else ""
    high = f"up to {known.maximum:g}" if known.maximum is not None else ""
    worked = " ".join(filter(None, (low, high)))
    return lesson_of([edit]) + (f" Values {worked} worked." if worked else "")


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _known(record: ToolRecord, signature: str) -> SignatureKnowledge | None:
    return None if record.knowledge is None else record.knowledge.signature(signature)
