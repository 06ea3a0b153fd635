"""Facts: all that is told of one tool, in words of its own, before it is escaped. Pure."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from aftercall.models import Cohesion, ErrorCategory
from mongo.records import ToolKey
from retrieval.boundaries.clusters import AxisClusters
from retrieval.boundaries.cohesion import DEFAULT_RULES, CohesionRules, cohesion_of
from retrieval.health.record import KnownHealth, MethodTallies, decay
from retrieval.known_tools.pitfalls import Limit, Pitfall, limits_of, pitfalls_of
from retrieval.known_tools.plain import Clean, plain, without_masks
from retrieval.known_tools.rates import weekly
from retrieval.known_tools.records import ToolRecord
from retrieval.known_tools.signature import Signature, signature_of_tool
from retrieval.profile import COMMON_SESSIONS
from retrieval.reading.signature import signature_of
from retrieval.recovery import TRANSIENT

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
class Split:
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
    split: Split | None = None

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
    rules: CohesionRules = DEFAULT_RULES,
) -> ToolFacts:
    """All that is known of a tool and may be told to everybody.

    Args:
        record: the tool.
        clusters: of the workspace's boundary axes.
        now: the time of asking.
        clean: masks secrets.
        tool_names: names of registered tools.
        rules: when a tool is said to be asked for several jobs.
    """
    health = record.health or KnownHealth()
    cohesion = cohesion_of(health, clusters, now=now, rules=rules)
    successes, failures = _counts(record)
    calls, failed = weekly(health.successes, now), weekly(health.failures, now)
    tool = record.tool
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
        method_parameter=_method_parameter(health, clean),
        methods=_methods(record, health, now, clean),
        boundary=_boundary(health, cohesion, now, clean),
        utility=_utility(health, now, clean),
        weak=health.weak.count,
        corrections=health.corrections.count,
        cohesion=plain(cohesion.message, _MAX_MESSAGE, clean) if cohesion.warning else None,
        pitfalls=tuple(pitfalls_of(record, now, clean)),
        limits=tuple(limits_of(record, clean)),
        contracts=_contracts(health, now, clean),
        waits=_waits(record, health, now),
        split=_split(health, now, clean, tool_names),
    )


def _counts(record: ToolRecord) -> tuple[int, int]:
    """Successes and failures; of the tool's statistics where its health is not known yet."""
    if record.health is not None:
        return record.health.successes.count, record.health.failures.count
    versions = record.statistics.versions.values() if record.statistics is not None else ()
    return sum(each.successes for each in versions), sum(each.failures for each in versions)


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0]
    return sentence if len(sentence) <= _MAX_ABOUT else sentence[: _MAX_ABOUT - 1].rstrip() + "…"


def _method_parameter(health: KnownHealth, clean: Clean) -> str | None:
    if health.method_parameter is None:
        return None
    return plain(health.method_parameter, _MAX_AXIS, clean)


def _methods(
    record: ToolRecord, health: KnownHealth, now: datetime, clean: Clean
) -> tuple[Method, ...]:
    """Methods whose names are common knowledge, the most used first."""
    view = record.schema_view()
    stated = view.parameters.get(health.method_parameter or "") if view is not None else None
    allowed = stated.allowed if stated is not None else ()
    told = [
        (_weight(each, now), name, each)
        for name, each in health.methods.items()
        if len(each.sessions) >= COMMON_SESSIONS or name in allowed
    ]
    told.sort(key=lambda one: (-one[0], one[1]))
    return tuple(
        Method(plain(name, _MAX_AXIS, clean), calls, each.successes.count / calls)
        for _, name, each in told[:_MAX_METHODS]
        if (calls := each.successes.count + each.failures.count)
    )


def _weight(method: MethodTallies, now: datetime) -> float:
    return method.successes.weight_at(now) + method.failures.weight_at(now)


def _boundary(health: KnownHealth, cohesion: Cohesion, now: datetime, clean: Clean) -> Referrals:
    tally = health.categories.get("wrong_tool_boundary")
    if tally is None:
        return Referrals()
    axes = tuple(
        (plain(each.name, _MAX_AXIS, clean), each.count) for each in cohesion.axes[:_MAX_AXES]
    )
    evidence = _latest(health, "wrong_tool_boundary", clean)
    return Referrals(tally.count, weekly(tally, now), axes, evidence)


def _utility(health: KnownHealth, now: datetime, clean: Clean) -> Referrals:
    tally = health.categories.get("low_utility")
    if tally is None:
        return Referrals()
    return Referrals(
        tally.count, weekly(tally, now), evidence=_latest(health, "low_utility", clean)
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
) -> Split | None:
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
    return Split(shown, is_tools, counts[best], rate)
