"""The lesson and the title of a pattern: what repaired its failures, in words that all may read."""

import json
import re
from collections.abc import Mapping, Sequence

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ErrorCategory, Example
from aftercall.tables import gather_values
from retrieval.knowledge.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.knowledge.patterns.consolidation import (
    MASK,
    STEP,
    WORD,
    ConsolidatedPattern,
    Failure,
    Lesson,
)
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.rewrites.edits import Clamp, Edit, Remove, Replace
from retrieval.knowledge.rewrites.sentences import lesson_of, show_json, speak_path
from retrieval.knowledge.tool.causes import NO_CHANGES, Changes, correction_of
from retrieval.knowledge.tool.record import ToolRecord, concrete_bound, may_be_told
from retrieval.knowledge.tool.repairs import open_example
from retrieval.knowledge.tool.rules import SignatureKnowledge, rule_trials
from retrieval.knowledge.values.parameters import ParameterView, written_place
from retrieval.knowledge.values.scalars import same_value, type_of, write_number
from retrieval.knowledge.values.texts import is_number

_UNCHANGED = "The same call, made again later, worked."
_SEVERAL = 3
_EACH_OTHERWISE = (
    "Mended {} times, each time with another value: only the caller knows the right one."
)
_BY_CATEGORY: dict[ErrorCategory, str] = {
    "rate_limited": "Wait before calling again; the call itself is right.",
    "timeout": "The call took too long: ask for less, or call again later.",
    "unavailable": "The tool could not be reached; the same call may work later.",
    "permission_denied": "The caller may not do this: ask for the permission, do not retry.",
    "user_rejected": "The user refused the call: ask before trying anything like it.",
    "wrong_tool_boundary": "This is not the tool's job: use another one, or split the request.",
    "conflict": "The current state does not allow the call: read it again first.",
}


def lesson_of_pattern(
    pattern: ConsolidatedPattern, failures: Sequence[Failure], record: ToolRecord
) -> Lesson:
    """Return what helps against such failures; empty texts where nothing is known.

    The correction is that of the rule that repaired most of them, of those that repair surely
    enough and may be shown, a general one before one about a single value; else what repairs have
    in common, without values. Without any the lesson is what the category states.
    """
    known = _known_signatures(record, [each.signature for each in failures])
    changes = _told_changes(failures, record)
    places = _places_of(pattern, failures)
    told = _told_rule(known, record)
    seen = correction_of(changes, places)
    mends = sum(each.mends for each in known if each.examples)
    if mends >= _SEVERAL and not any(each.is_structural for each in changes.values()):
        seen = _EACH_OTHERWISE.format(mends)
    return Lesson(
        lesson=told or _BY_CATEGORY.get(pattern.category, seen),
        example=_choose_example(known, changes, _public_names(failures, record), record),
        mistake=_describe_mistake(pattern, places, changes),
        correction=told or seen,
    )


def _told_rule(known: Sequence[SignatureKnowledge], record: ToolRecord) -> str:
    told = []
    for each in known:
        for rule, share in each.told_rules():
            if not may_be_told(rule, record):
                continue
            if lower_bound(rule_trials(rule)) < MIN_CONFIDENCE:
                continue
            if share:
                words = lesson_of(rule.edits, share)
            else:
                words = _describe_edits(rule.edits, each.faults, record)
            is_value = share is None and any(isinstance(edit, Replace) for edit in rule.edits)
            told.append((share is None, is_value, -rule.repairs, words))
    if told:
        return min(told)[-1]
    return ""


def _places_of(
    pattern: ConsolidatedPattern, failures: Sequence[Failure]
) -> Mapping[str, FaultKind]:
    return pattern.places or next((each.places for each in failures if each.places), {})


def _told_changes(failures: Sequence[Failure], record: ToolRecord) -> Changes:
    """Return what repaired most failures, at places whose names everyone may hear.

    A key inside a value may be a caller's own, such as an id in a map.
    """
    repaired = [each for each in failures if each.changes]
    if not repaired:
        return NO_CHANGES
    most = max(repaired, key=lambda each: (each.mended + each.followed, each.document_id))
    names = _public_names(failures, record)
    return {
        place: each
        for place, each in most.changes.items()
        if names.issuperset(_place_steps(place)[1:])
    }


def _public_names(failures: Sequence[Failure], record: ToolRecord) -> set[str]:
    """Return the names that schema and errors say, which everyone may hear."""
    schema = record.tool.input_schema if record.tool is not None else None
    names = set(WORD.findall(json.dumps(schema))) if schema else set[str]()
    return names.union(
        name for each in failures for place in each.places for name in _place_steps(place)
    )


def _place_steps(place: str) -> list[str]:
    return STEP.sub("", place).split(".")


def _choose_example(
    known: Sequence[SignatureKnowledge], changes: Changes, names: set[str], record: ToolRecord
) -> Example | None:
    """Return what failed and what worked in the repair that most sessions made.

    Where no several sessions repaired alike it is the latest repair, our own too, in the
    parameters that it changed: of values those that the schema states, of others the type.
    """
    repairs = [repair for each in known for repair in each.learned_repairs()]
    if repairs:
        failed, successful = open_example(max(repairs, key=lambda each: each.sessions))
        return Example(failed=failed, successful=successful)
    changed = {_place_steps(place)[0] for place in changes}
    examples = [
        each
        for signature in known
        for each in signature.examples
        if changed & {*each.failed, *each.mended}
    ]
    if not examples:
        return None
    latest = max(examples, key=lambda each: (each.at, each.execution_id))
    view = record.schema_view()

    def open_call(call: JsonObject) -> JsonObject:
        return {
            name: _show_value(value, view.parameters.get(name) if view else None, names)
            for name, value in call.items()
            if name in changed
        }

    return Example(failed=open_call(latest.failed), successful=open_call(latest.mended))


def _show_value(value: JsonValue, stated: ParameterView | None, names: set[str]) -> JsonValue:
    """Return a value that the schema states as it is, of another its type, names that are known."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict) and value and names.issuperset(value):
        return {name: _show_value(each, None, names) for name, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_show_value(value[0], None, names)]
    if stated is not None:
        listed = [*stated.allowed, stated.default, stated.minimum, stated.maximum]
        if any(each is not None and same_value(value, each) for each in listed):
            return value
    return f"<{type_of(value)}>"


def _describe_mistake(
    pattern: ConsolidatedPattern, places: Mapping[str, FaultKind], changes: Changes
) -> str:
    """Return what is wrong with such calls: where, else what repairs changed."""
    if said := _wrong_places(places):
        return said
    gone = [place for place, each in changes.items() if not each.after]
    new = [place for place, each in changes.items() if not each.before]
    changed = [place for place, each in changes.items() if each.before and each.after]
    parts = [
        f"{', '.join(found[:_MAX_NAMED])} {wrong}"
        for found, wrong in ((gone, "sent"), (new, "missing"), (changed, "refused"))
        if found
    ]
    wording = " ".join(MASK.sub("…", pattern.leader).split())[:_MAX_WORDING] or "fails"
    return "; ".join(parts) or _KINDS.get(pattern.category, wording)


def _describe_edits(edits: list[Edit], faults: Mapping[str, FaultKind], record: ToolRecord) -> str:
    said = (_describe_edit(edit, faults.get(written_place(edit.path)), record) for edit in edits)
    return " ".join(dict.fromkeys(said)) or _UNCHANGED


def _describe_edit(edit: Edit, fault: FaultKind | None, record: ToolRecord) -> str:
    match edit:
        case Replace() if fault == "out_of_range" and is_number(edit.value):
            seen = ""  # a number of one call is no lesson for another
        case Replace():
            before = show_json(edit.before)
            value = show_json(edit.value)
            seen = f"For {speak_path(edit.path)}, {value} worked instead of {before}."
        case Clamp() if (edit.minimum, edit.maximum) == (None, None):
            return _describe_bounds(edit, record)
        case Remove() if fault != "unexpected":
            seen = f"Without {speak_path(edit.path)} the call worked."
        case _:
            return lesson_of([edit])
    # What holds for all values, as far as the error states what is wrong.
    rule = ""
    if fault == "out_of_range":
        rule = _describe_bounds(Clamp(name=edit.name, inside=edit.inside), record)
    elif fault == "not_allowed":
        rule = f"{speak_path(edit.path)} must be one of the allowed values."
    return " ".join(filter(None, (rule, seen)))


def _describe_bounds(edit: Clamp, record: ToolRecord) -> str:
    """Bounds that the schema states; else what is known to have worked within them."""
    known = concrete_bound(record, edit)
    view = record.schema_view()
    stated = view.parameters.get(edit.name) if view is not None else None
    if stated is not None and (stated.minimum, stated.maximum) != (None, None):
        return lesson_of([known])
    low = f"from {write_number(known.minimum)}" if known.minimum is not None else ""
    high = f"up to {write_number(known.maximum)}" if known.maximum is not None else ""
    worked = " ".join(filter(None, (low, high)))
    return lesson_of([edit]) + (f" Values {worked} worked." if worked else "")


def _known_signatures(record: ToolRecord, signatures: Sequence[str]) -> list[SignatureKnowledge]:
    found = map(record.knowledge.find_signature, signatures) if record.knowledge else ()
    return [each for each in found if each is not None]


_WRONG: dict[FaultKind, str] = {
    "missing": "missing",
    "unexpected": "unknown",
    "wrong_type": "of the wrong type",
    "out_of_range": "out of range",
    "not_allowed": "not among the allowed values",
    "bad_format": "in the wrong form",
    "not_found": "not found",
    "invalid": "refused",
}
_KINDS: dict[ErrorCategory, str] = {
    "invalid_parameters": "parameters refused",
    "not_found": "not found",
    "conflict": "in conflict with the present state",
    "timeout": "takes too long",
    "rate_limited": "called too often",
    "unavailable": "cannot be reached",
    "permission_denied": "permission denied",
    "contract_violation": "breaks its contract",
    "wrong_tool_boundary": "asked for another tool's job",
    "low_utility": "its answer is of little use",
    "user_rejected": "the user refuses it",
}
_VAGUE: frozenset[ErrorCategory] = frozenset({"invalid_parameters", "not_found", "conflict"})
"""Kinds that say little without a place: the tool's own words say more."""
_PLAIN_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_WORDS = 3
"""Of a wording: `Bad Request` states less than the kind does."""
_MAX_NAMED = 3
_MAX_WORDING = 80


def title_of(pattern: ConsolidatedPattern) -> str:
    """Return a pattern in a few words: `get-sum: a, b missing`, `git_show: revision not found`.

    Made of the tool, what is wrong and where. The tool's own wording, variable parts as `…`, is in
    it where no place is known and the kind of failure states too little.
    """
    said = _wrong_places(pattern.places)
    if not said:
        others = [each for each in pattern.subjects if each != pattern.tool_name]
        is_one = pattern.category == "invalid_parameters" and len(others) == 1
        said = f"{others[0]} refused" if is_one else _kind_or_wording(pattern)
    return f"{pattern.tool_name}: {said}"


def _kind_or_wording(pattern: ConsolidatedPattern) -> str:
    kind = _KINDS.get(pattern.category)
    if kind and pattern.category not in _VAGUE:
        return kind
    wording = " ".join(MASK.sub("…", pattern.leader).split())
    wording = wording.removeprefix(f"{pattern.tool_name}: ").lstrip("…:;, ")[:_MAX_WORDING]
    has_words = len(_PLAIN_WORD.findall(wording)) >= _LEAST_WORDS
    if has_words or (wording and not kind):
        return wording
    return kind or "fails"


def _wrong_places(places: Mapping[str, FaultKind]) -> str:
    by_fault = gather_values((_WRONG[fault], place) for place, fault in sorted(places.items()))
    said = []
    for wrong, found in by_fault.items():
        more = [f"{len(found) - _MAX_NAMED} more"] if len(found) > _MAX_NAMED else []
        said.append(f"{', '.join([*found[:_MAX_NAMED], *more])} {wrong}")
    return "; ".join(said)
