"""How healthy tools are: what executions and users' corrections say, counted once each. Pure.

Tallies come out the same in whatever order and batches the records arrive, to rounding; so do the
lists of latest events, for each keeps its latest by time. Where a table is full and one entry makes
room for another, the order decides which.
"""

from collections.abc import Mapping
from datetime import datetime

from aftercall.models import ErrorCategory, Execution, Referral, ReferralKind
from aftercall.outcomes import referral_of
from ingest.learner import session_of
from ingest.workspace import WorkspaceCache
from mongo.contents import Called, CorrectionRecord, StoredExecution
from mongo.records import ToolKey
from retrieval.boundaries.axes import normalised_axes
from retrieval.health.record import (
    MAX_METHOD_SESSIONS,
    OWN_FAILURES,
    Corrected,
    KnownHealth,
    OwnFailure,
    Referred,
    Tally,
    Weak,
    count_axes,
    method_to_update,
    remember_correction,
    remember_own_failure,
    remember_referral,
    remember_weak,
    short,
)
from retrieval.health.signals import breaches_of, count_breach, is_earlier, method_of, weakness_of
from retrieval.memory import AXES, HEALTH, TROUBLE, USED, tool_row
from retrieval.reading.reader import ErrorReading

_MAX_AXES = 8
"""Axes kept of one referral: a tool that names more tells no boundary. All count in the book."""

_MAX_SPLIT = 8
_MAX_PART = 100
"""Characters kept of a task's shape, and of a part of a split: names of tools and of jobs."""

_MAX_MESSAGE = 200

_REFERRALS: dict[ErrorCategory, ReferralKind] = {
    "wrong_tool_boundary": "wrong_tool_boundary",
    "low_utility": "low_utility",
}


def learn_health(
    cache: WorkspaceCache, stored: StoredExecution, reading: ErrorReading | None
) -> bool:
    """Count an execution, in place; whether it named boundary axes. `reading` is of its error."""
    execution, at = stored.execution, stored.execution.timestamp
    known = cache.made(HEALTH, tool_row(stored.tool_key))
    if reading is None:
        why = weakness_of(execution)
        _count_call(known, execution, None)
        if why is not None:
            known.weak.add(at)
            remember_weak(known, Weak(at=at, execution_id=execution.execution_id, why=short(why)))
            _in_trouble(known, at)
        named = False
    else:
        named = _learn_failure(cache, known, stored, reading.category)
    _put(cache, stored.tool_key, known)
    return named


def names_axes(execution: Execution, reading: ErrorReading | None) -> bool:
    """Whether counting a call may want the workspace's axes."""
    return reading is not None and reading.category in _REFERRALS and execution.error is not None


def _learn_failure(
    cache: WorkspaceCache, known: KnownHealth, stored: StoredExecution, category: ErrorCategory
) -> bool:
    execution, at = stored.execution, stored.execution.timestamp
    kind = _REFERRALS.get(category)
    referral = _referral(execution) if kind else None
    axes = normalised_axes(referral.boundary_axes) if referral else {}
    message = short(execution.error.message, _MAX_MESSAGE) if execution.error else ""
    details = execution.error.details if execution.error else {}
    breaches = breaches_of(details) if category == "contract_violation" else []
    _count_call(known, execution, category)
    for breach in breaches:
        count_breach(known.violations, breach, at)
    if category in OWN_FAILURES:
        own = OwnFailure(
            at=at, execution_id=execution.execution_id, category=category, message=message
        )
        remember_own_failure(known, own)
        _in_trouble(known, at)
    if kind and referral:
        remember_referral(known, _referred(execution, kind, referral, axes, message))
        _in_trouble(known, at)
    _count_axes(cache, axes, at)
    return bool(axes)


def learn_correction(cache: WorkspaceCache, correction: CorrectionRecord, called: Called) -> bool:
    """Count a correction of a call, in place; whether it named boundary axes."""
    at = correction.corrected_at
    known = cache.made(HEALTH, tool_row(called.tool))
    axes = normalised_axes(correction.boundary_axes)
    corrected = Corrected(
        at=at,
        correction_id=correction.correction_id,
        execution_id=correction.execution_id,
        kind=correction.kind,
        text=short(correction.text),
        axes=list(axes)[:_MAX_AXES],
    )
    known.corrections.add(at)
    remember_correction(known, corrected)
    _in_trouble(known, at)
    _count_axes(cache, axes, at)
    _put(cache, called.tool, known)
    return bool(axes)


def _count_axes(cache: WorkspaceCache, axes: Mapping[str, str], at: datetime) -> None:
    if axes:
        count_axes(cache.made(AXES, ""), axes, at)
        cache.put(AXES, "")


def _put(cache: WorkspaceCache, tool: ToolKey, known: KnownHealth) -> None:
    cache.put(HEALTH, tool_row(tool), tool=tool)
    used_at = known.used_at or known.troubled_at
    if used_at is not None:
        cache.put(USED, tool_row(tool), tool=tool, rank=_rank(used_at))
    if known.troubled_at is not None:
        cache.put(TROUBLE, tool_row(tool), tool=tool, rank=_rank(known.troubled_at))


def _rank(moment: datetime) -> int:
    return max(1, int(moment.timestamp() * 1000))


def _referral(execution: Execution) -> Referral:
    """What a referral says; one whose type is said another way than the wire's says no more."""
    error = execution.error
    return (referral_of(error) if error else None) or Referral()


def _referred(
    execution: Execution,
    kind: ReferralKind,
    referral: Referral,
    axes: Mapping[str, str],
    message: str,
) -> Referred:
    shape, evidence = referral.observed_task_shape, referral.evidence
    return Referred(
        at=execution.timestamp,
        execution_id=execution.execution_id,
        kind=kind,
        session=session_of(execution),
        axes=list(axes)[:_MAX_AXES],
        spelled=list(axes.values())[:_MAX_AXES],
        shape=None if shape is None else short(shape, _MAX_PART),
        split=[short(part, _MAX_PART) for part in referral.suggested_split[:_MAX_SPLIT]],
        evidence=None if evidence is None else short(evidence),
        message=message,
    )


def _count_call(known: KnownHealth, execution: Execution, category: ErrorCategory | None) -> None:
    """What is counted of every call; `category` is None for a success."""
    at = execution.timestamp
    (known.successes if category is None else known.failures).add(at)
    if category is not None:
        known.categories.setdefault(category, Tally()).add(at)
    if execution.attempt > 1 or execution.repair_of or execution.suggestion_id:
        known.repair_attempts.add(at)
        if category is None:
            known.repair_successes.add(at)
    if known.used_at is None or at > known.used_at:
        known.used_at = at
    if known.first_seen is None or at < known.first_seen:
        known.first_seen = at
    called = method_of(execution.parameters)
    if called is not None:
        _count_method(known, execution, *called, category)


def _count_method(
    known: KnownHealth,
    execution: Execution,
    parameter: str,
    method: str,
    category: ErrorCategory | None,
) -> None:
    at = execution.timestamp
    if is_earlier(parameter, known.method_parameter):
        known.method_parameter = parameter
    tallies = method_to_update(known, method)
    (tallies.successes if category is None else tallies.failures).add(at)
    if category is not None:
        tallies.categories.setdefault(category, Tally()).add(at)
    # Those that sort first, so that which ones stay does not depend on the order.
    tallies.sessions = sorted({*tallies.sessions, session_of(execution)})[:MAX_METHOD_SESSIONS]


def _in_trouble(known: KnownHealth, at: datetime) -> None:
    if known.troubled_at is None or at > known.troubled_at:
        known.troubled_at = at
