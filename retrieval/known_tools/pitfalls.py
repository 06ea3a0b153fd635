"""Pitfalls: the errors that a tool answers most, with what mended them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from json import dumps

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ErrorCategory
from retrieval.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.edits import Add, Cast, Clamp, Edit, Remove, Rename, Replace, Unwrap, Wrap
from retrieval.knowledge import RepairRule, SignatureKnowledge
from retrieval.known_tools.common import common_value, may_be_told
from retrieval.known_tools.plain import Clean, number, plain, without_masks
from retrieval.known_tools.rates import weekly_of_count
from retrieval.known_tools.records import ToolRecord
from retrieval.lessons import lesson_of
from retrieval.proposals.experience import rule_trials

MAX_PITFALLS = 6
"""Kinds of failure told of one tool; more than that is a tool to be mended, not to be learned."""

_MAX_SIGNATURE = 100
_MAX_LESSON = 160
_MAX_EXAMPLE = 80
_ELSEWHERE: frozenset[ErrorCategory] = frozenset({"wrong_tool_boundary", "low_utility"})
"""Told as referrals."""


@dataclass(frozen=True, slots=True)
class Example:
    """The part of a call that failed, and what worked in its place; JSON of common knowledge."""

    failed: str
    worked: str


@dataclass(frozen=True, slots=True)
class Pitfall:
    """One kind of failure. All texts are plain and unescaped.

    `per_week` is how often it happens now; `confidence` (0 to 1) the lower bound of how surely the
    lesson mends it, 0 without one.
    """

    error: str
    category: ErrorCategory
    count: int
    per_week: float
    lesson: str | None = None
    confidence: float = 0.0
    example: Example | None = None


def pitfalls_of(record: ToolRecord, now: datetime, clean: Clean) -> list[Pitfall]:
    """The most frequent kinds of failure of a tool, most frequent first."""
    if record.knowledge is None:
        return []
    known = [
        (weekly_of_count(each.count, each.first_seen, each.last_seen, now), each)
        for each in record.knowledge.signatures.values()
        if each.category not in _ELSEWHERE and each.count
    ]
    known.sort(key=lambda pair: (-pair[0], -pair[1].count, pair[1].signature))
    return [_pitfall(record, each, rate, clean) for rate, each in known[:MAX_PITFALLS]]


def _pitfall(
    record: ToolRecord, known: SignatureKnowledge, per_week: float, clean: Clean
) -> Pitfall:
    error = plain(without_masks(known.signature), _MAX_SIGNATURE, clean)
    ranked = sorted(_told(record, known), key=lambda pair: (-pair[0], lesson_of(pair[1].edits)))
    if not ranked:
        return Pitfall(error, known.category, known.count, per_week)
    confidence, rule = ranked[0]
    edits = [concrete(record, edit) if isinstance(edit, Clamp) else edit for edit in rule.edits]
    return Pitfall(
        error,
        known.category,
        known.count,
        per_week,
        plain(lesson_of(edits), _MAX_LESSON, clean),
        confidence,
        _example(record, edits, clean),
    )


def _told(record: ToolRecord, known: SignatureKnowledge) -> Iterator[tuple[float, RepairRule]]:
    for rule in known.rules.values():
        if rule.edits and may_be_told(rule, record):
            confidence = lower_bound(rule_trials(rule))
            if confidence >= MIN_CONFIDENCE:
                yield confidence, rule


def concrete(record: ToolRecord, edit: Clamp) -> Clamp:
    """A bound that each error states anew, as what the schema or the calls say that it is."""
    if edit.inside or (edit.minimum, edit.maximum) != (None, None):
        return edit
    view = record.schema_view()
    stated = view.parameters.get(edit.name) if view is not None else None
    if stated is not None and (stated.minimum, stated.maximum) != (None, None):
        return edit.model_copy(update={"minimum": stated.minimum, "maximum": stated.maximum})
    known = record.profile.parameters.get(edit.name) if record.profile is not None else None
    bound = known.boundary() if known is not None else None
    if known is None or bound is None:
        return edit
    if not (known.is_shared or _is_common(record, edit.name, bound)):
        return edit
    low = bound.smallest if bound.fails_below is not None else None
    high = bound.largest if bound.fails_above is not None else None
    return edit.model_copy(update={"minimum": low, "maximum": high})


def _example(record: ToolRecord, edits: list[Edit], clean: Clean) -> Example | None:
    """What the edits of whole parameters did, shown on values that everybody may see."""
    failed: JsonObject = {}
    worked: JsonObject = {}
    for edit in edits:
        pair = None if edit.inside else _shown(record, edit)
        if pair is None:
            return None
        failed |= pair[0]
        worked |= pair[1]
    before, after = (dumps(each, ensure_ascii=False) for each in (failed, worked))
    if before == after or max(len(before), len(after)) > _MAX_EXAMPLE:
        return None
    shown = Example(plain(before, _MAX_EXAMPLE, clean), plain(after, _MAX_EXAMPLE, clean))
    return shown if shown.failed != shown.worked else None


def _shown(record: ToolRecord, edit: Edit) -> tuple[JsonObject, JsonObject] | None:
    match edit:
        case Replace():
            return {edit.name: edit.before}, {edit.name: edit.value}
        case Add():
            return {}, {edit.name: edit.value}
        case Clamp():
            return _clamped(edit)
        case _:
            usual = common_value(record, edit.to if isinstance(edit, Rename) else edit.name)
            return _on_usual(edit, usual[0] if usual else "…")


def _on_usual(edit: Edit, value: JsonValue) -> tuple[JsonObject, JsonObject] | None:
    """An edit of form, shown on the usual value of its parameter, or on `…`."""
    match edit:
        case Rename():
            return {edit.name: value}, {edit.to: value}
        case Remove():
            return {edit.name: "…"}, {}  # a usual value of it is one that worked
        case Cast() if isinstance(value, int | float) and not isinstance(value, bool):
            return {edit.name: str(value)}, {edit.name: value}
        case Wrap():
            return {edit.name: "…"}, {edit.name: ["…"]}
        case Unwrap():
            return {edit.name: [value]}, {edit.name: value}
        case _:
            return None


def _clamped(edit: Clamp) -> tuple[JsonObject, JsonObject] | None:
    """One beyond the bound, which is nobody's own value, and the bound."""
    limit, step = (edit.maximum, 1) if edit.maximum is not None else (edit.minimum, -1)
    if limit is None or not float(limit).is_integer():
        return None
    beyond, bound = int(limit) + step, int(limit)
    return {edit.name: beyond}, {edit.name: bound}


@dataclass(frozen=True, slots=True)
class Limit:
    """A number beyond which a parameter was refused, as far as the schema does not say so."""

    parameter: str
    worked: str
    beyond: str
    refused: int


def limits_of(record: ToolRecord, clean: Clean) -> list[Limit]:
    """Numbers that were refused as out of range, by parameter; the bounds are what worked.

    The refused numbers themselves are their callers' own and are not told.
    """
    profile, view = record.profile, record.schema_view()
    if profile is None:
        return []
    found = []
    for name, known in sorted(profile.parameters.items()):
        stated = view.parameters.get(name) if view is not None else None
        if view is not None and stated is None:
            continue
        bound = known.boundary()
        if bound is None or not (known.is_shared or _is_common(record, name, bound)):
            continue
        above = bound.fails_above is not None and (stated is None or stated.maximum is None)
        below = bound.fails_below is not None and (stated is None or stated.minimum is None)
        if above or below:
            worked = " to ".join(dict.fromkeys((number(bound.smallest), number(bound.largest))))
            beyond = "more and less" if above and below else "more" if above else "less"
            shown = plain(name, _MAX_SIGNATURE, clean)
            found.append(Limit(shown, worked, beyond, len(known.beyond)))
    return found


def _is_common(record: ToolRecord, name: str, bound: tuple[float | None, ...]) -> bool:
    """Whether the ends of what worked are common knowledge, where one agent alone says so."""
    profile = record.profile
    values = {each.value for each in profile.common_values(name)} if profile is not None else set()
    return {bound[1], bound[2]} <= values
