"""Facts: all that is told of one tool, in words of its own, before it is escaped. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from json import dumps
from math import log

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Cohesion, ErrorCategory, ReferralKind
from mongo.records import ToolKey
from retrieval.answer import lesson_of
from retrieval.boundaries.clusters import AxisClusters
from retrieval.boundaries.cohesion import cohesion_of
from retrieval.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.edits import Add, Cast, Clamp, Edit, Remove, Rename, Replace, Unwrap
from retrieval.health.record import HALF_LIFE, KnownHealth, Tally, decay
from retrieval.knowledge.profile import COMMON_SESSIONS
from retrieval.knowledge.rules import TRANSIENT, RepairRule, SignatureKnowledge
from retrieval.known_tools.common import (
    Signature,
    ToolRecord,
    common_value,
    may_be_told,
    signature_of_tool,
)
from retrieval.known_tools.text import Clean, number, plain, without_masks
from retrieval.proposals.experience import rule_trials
from retrieval.reading.reader import signature_of

_WEEK = timedelta(days=7)

_PER_WEEK = log(2) * (_WEEK / HALF_LIFE)
"""At a steady rate r the weight of a tally is r x half-life / ln 2 (the sum of the decays)."""

MAX_PITFALLS = 6
"""Kinds of failure told of one tool; more than that is a tool to be mended, not to be learned."""

_MAX_SIGNATURE = 100
_MAX_LESSON = 160
_MAX_EXAMPLE = 80

_ELSEWHERE: frozenset[ErrorCategory] = frozenset({"wrong_tool_boundary", "low_utility"})
"""Told as referrals."""

_MAX_NAME = 256
_MAX_ABOUT = 120
_MAX_EVIDENCE = 120
_MAX_MESSAGE = 200
_MAX_AXIS = 40
_MAX_AXES = 4
_MAX_METHODS = 8
_MAX_VIOLATIONS = 3
_MAX_PARTS = 5
_MAX_PART = 60

_QUANTILE = 0.75
"""Within the wait that is told, three of four sessions saw such a failure pass (as in advice)."""


@dataclass(frozen=True, slots=True)
class PitfallExample:
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
    example: PitfallExample | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A number beyond which a parameter was refused, as far as the schema does not say so."""

    parameter: str
    worked: str
    beyond: str
    refused: int


@dataclass(frozen=True, slots=True)
class Method:
    """How one method of a tool fares; `share` is that of its successes, 0 to 1."""

    name: str
    calls: int
    share: float


@dataclass(frozen=True, slots=True)
class Referrals:
    """Failures of one kind by which a tool refers elsewhere.

    `axes` are clusters of boundary axes with their counts, most first; `evidence` is the latest.
    """

    count: int = 0
    per_week: float = 0.0
    axes: tuple[tuple[str, int], ...] = ()
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """One way in which a tool's results broke a contract."""

    path: str
    mismatch: str
    expected: str
    count: int
    per_week: float


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a failure of the moment takes to pass, in seconds."""

    category: ErrorCategory
    seconds: float
    per_week: float


@dataclass(frozen=True, slots=True)
class KnownSplit:
    """What to call in the tool's place, in order. `is_tools`: all parts are registered tools."""

    parts: tuple[str, ...]
    is_tools: bool
    count: int
    per_week: float


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What is told of one tool. Texts are plain, bounded, without secrets, and unescaped."""

    key: ToolKey
    tool_id: str | None
    name: str
    server: str | None
    signature: Signature
    about: str
    successes: int = 0
    failures: int = 0
    lately: float | None = None
    """The recency-weighted share of successes, 0 to 1; None where nothing was called."""
    calls_per_week: float = 0.0
    failures_per_week: float = 0.0
    method_parameter: str | None = None
    methods: tuple[Method, ...] = ()
    boundary: Referrals = Referrals()
    utility: Referrals = Referrals()
    weak: int = 0
    corrections: int = 0
    cohesion: str | None = None
    pitfalls: tuple[Pitfall, ...] = ()
    limits: tuple[Limit, ...] = ()
    contracts: tuple[Contract, ...] = ()
    waits: tuple[Wait, ...] = ()
    split: KnownSplit | None = None

    @property
    def calls(self) -> int:
        """All recorded calls."""
        return self.successes + self.failures


def use_of(health: KnownHealth | None, now: datetime) -> float:
    """How useful it is to know of a tool: its failures a week, and a tenth of its calls a week."""
    if health is None:
        return 0.0
    failures = weekly(health.failures, now)
    return failures + (weekly(health.successes, now) + failures) / 10


def facts_of(
    record: ToolRecord,
    *,
    clusters: AxisClusters,
    now: datetime,
    clean: Clean,
    tool_names: Collection[str] = (),
) -> ToolFacts:
    """All that is known of a tool and may be told to everybody.

    Args:
        record: the tool.
        clusters: of the workspace's boundary axes.
        now: the time of asking.
        clean: masks secrets.
        tool_names: names of registered tools.
    """
    health = record.health or KnownHealth()
    cohesion = cohesion_of(health, clusters, now=now)
    successes, failures = _counts(record)
    calls, failed = weekly(health.successes, now), weekly(health.failures, now)
    tool, parameter = record.tool, health.method_parameter
    return ToolFacts(
        key=record.key,
        tool_id=tool.tool_id if tool else None,
        name=plain(record.key.tool_name, _MAX_NAME, clean),
        server=plain(record.key.server_name, _MAX_NAME, clean) if record.key.server_name else None,
        signature=signature_of_tool(record, clean),
        about=_first_sentence(plain(tool.description, 2 * _MAX_ABOUT, clean)) if tool else "",
        successes=successes,
        failures=failures,
        lately=calls / (calls + failed) if calls + failed else None,
        calls_per_week=calls + failed,
        failures_per_week=failed,
        method_parameter=plain(parameter, _MAX_AXIS, clean) if parameter else None,
        methods=_methods(record, health, now, clean),
        boundary=_referrals(health, "wrong_tool_boundary", cohesion, now, clean),
        utility=_referrals(health, "low_utility", None, now, clean),
        weak=health.weak.count,
        corrections=health.corrections.count,
        cohesion=plain(cohesion.message, _MAX_MESSAGE, clean) if cohesion.warning else None,
        pitfalls=tuple(pitfalls_of(record, now, clean)),
        limits=tuple(limits_of(record, clean)),
        contracts=_contracts(health, now, clean),
        waits=_waits(record, health, now),
        split=_split(health, now, clean, tool_names),
    )


def weekly(tally: Tally, now: datetime) -> float:
    """Events a week, by a tally."""
    return tally.weight_at(now) * _PER_WEEK


def weekly_of_count(
    count: int, first_seen: datetime | None, last_seen: datetime | None, now: datetime
) -> float:
    """Events a week, by a plain count: over the time that it took, as far as that is not past."""
    if last_seen is None:
        return 0.0
    weeks = max(1.0, (last_seen - (first_seen or last_seen)) / _WEEK)
    return count / weeks * decay(now, last_seen)


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


def _example(record: ToolRecord, edits: list[Edit], clean: Clean) -> PitfallExample | None:
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
    shown = PitfallExample(plain(before, _MAX_EXAMPLE, clean), plain(after, _MAX_EXAMPLE, clean))
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


def _counts(record: ToolRecord) -> tuple[int, int]:
    """Successes and failures; of the tool's statistics where its health is not known yet."""
    if record.health is not None:
        return record.health.successes.count, record.health.failures.count
    versions = record.statistics.versions.values() if record.statistics is not None else ()
    return sum(each.successes for each in versions), sum(each.failures for each in versions)


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0]
    return sentence if len(sentence) <= _MAX_ABOUT else sentence[: _MAX_ABOUT - 1].rstrip() + "…"


def _methods(
    record: ToolRecord, health: KnownHealth, now: datetime, clean: Clean
) -> tuple[Method, ...]:
    """Methods whose names are common knowledge, the most used first."""
    view = record.schema_view()
    stated = view.parameters.get(health.method_parameter or "") if view is not None else None
    allowed = stated.allowed if stated is not None else ()
    told = [
        (each.successes.weight_at(now) + each.failures.weight_at(now), name, each)
        for name, each in health.methods.items()
        if len(each.sessions) >= COMMON_SESSIONS or name in allowed
    ]
    told.sort(key=lambda one: (-one[0], one[1]))
    return tuple(
        Method(plain(name, _MAX_AXIS, clean), calls, each.successes.count / calls)
        for _, name, each in told[:_MAX_METHODS]
        if (calls := each.calls)
    )


def _referrals(
    health: KnownHealth, kind: ReferralKind, cohesion: Cohesion | None, now: datetime, clean: Clean
) -> Referrals:
    tally = health.categories.get(kind)
    if tally is None:
        return Referrals()
    axes = cohesion.axes[:_MAX_AXES] if cohesion else ()
    return Referrals(
        tally.count,
        weekly(tally, now),
        tuple((plain(each.name, _MAX_AXIS, clean), each.count) for each in axes),
        _latest(health, kind, clean),
    )


def _latest(health: KnownHealth, kind: str, clean: Clean) -> str | None:
    """The latest evidence of a kind, else the latest message: a tool's words, without its values.

    Numbers, addresses and what stands in quotation marks are masked as in an error's signature:
    they are some caller's own.
    """
    referrals = [each for each in reversed(health.referrals) if each.kind == kind]
    said = next((each.evidence for each in referrals if each.evidence), None)
    said = said or next((each.message for each in referrals if each.message), None)
    if said is None:
        return None
    return plain(without_masks(signature_of(said)), _MAX_EVIDENCE, clean) or None


def _contracts(health: KnownHealth, now: datetime, clean: Clean) -> tuple[Contract, ...]:
    found = [
        Contract(
            plain(each.path, _MAX_PART, clean),
            plain(each.mismatch, _MAX_AXIS, clean),
            plain(each.expected, _MAX_PART, clean),
            each.tally.count,
            weekly(each.tally, now),
        )
        for each in health.violations
    ]
    found.sort(key=lambda each: (-each.per_week, each.path, each.mismatch))
    return tuple(found[:_MAX_VIOLATIONS])


def _waits(record: ToolRecord, health: KnownHealth, now: datetime) -> tuple[Wait, ...]:
    recoveries = record.knowledge.recoveries if record.knowledge is not None else {}
    found = []
    for category in sorted(TRANSIENT & recoveries.keys()):
        seconds = recoveries[category].quantile_s(_QUANTILE)
        tally = health.categories.get(category)
        if seconds is not None:
            found.append(Wait(category, seconds, weekly(tally, now) if tally is not None else 0.0))
    return tuple(found)


def _split(
    health: KnownHealth, now: datetime, clean: Clean, tool_names: Collection[str]
) -> KnownSplit | None:
    """What the tool suggested most, of late above all, to be called in its place."""
    weights: dict[tuple[str, ...], float] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for each in health.referrals:
        parts = tuple(each.split[:_MAX_PARTS])
        if parts:
            weights[parts] = weights.get(parts, 0.0) + decay(now, each.at)
            counts[parts] += 1
    if not weights:
        return None
    best = min(weights, key=lambda parts: (-weights[parts], parts))
    is_tools = all(each in tool_names for each in best)
    said = best if is_tools else [without_masks(signature_of(each)) for each in best]
    shown = tuple(plain(each, _MAX_PART, clean) for each in said)
    tally = health.categories.get("wrong_tool_boundary")
    rate = weekly(tally, now) if tally is not None else weights[best]
    return KnownSplit(shown, is_tools, counts[best], rate)
