"""How healthy tools are: what executions and users' corrections say, counted once each. Pure.

Tallies come out the same in whatever order and batches the records arrive, to rounding; so do the
lists of latest events, for each keeps its latest by time. Where a table is full and one entry makes
room for another, the order decides which.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from aftercall.models import ErrorCategory, Execution, Referral, ReferralKind
from aftercall.outcomes import referral_of
from ingest.learner import session_of
from mongo.records import CorrectionRecord, HealthRow, StoredExecution, ToolKey
from retrieval.boundaries.axes import normalised_axes
from retrieval.health.record import (
    MAX_METHOD_SESSIONS,
    OWN_FAILURES,
    AxisBook,
    Corrected,
    KnownHealth,
    OwnFailure,
    Referred,
    Tally,
    Weak,
    count_axes,
    encoded,
    latest_use,
    method_to_update,
    prune,
    remember_correction,
    remember_own_failure,
    remember_referral,
    remember_weak,
    short,
)
from retrieval.health.signals import breaches_of, count_breach, is_earlier, method_of, weakness_of
from retrieval.knowledge.recovery import workspace_wide
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

log = logging.getLogger("aftercall.indexer")


class TiedCorrection(NamedTuple):
    """A correction, and the execution that it is about."""

    correction: CorrectionRecord
    stored: StoredExecution


@dataclass(slots=True)
class HealthMaterial:
    """All that learning the health of tools needs; learned into in place."""

    executions: list[StoredExecution]
    corrections: list[TiedCorrection]
    readings: Mapping[int, ErrorReading]
    """Of the batch's failures, by position."""
    health: dict[ToolKey, KnownHealth]
    books: dict[str, AxisBook]
    """By workspace; of those whose axes the batch may count."""


@dataclass(frozen=True, slots=True)
class LearnedHealth:
    """The health of tools now, ready to be stored."""

    rows: list[HealthRow] = field(default_factory=list)
    named_axes: list[str] = field(default_factory=list)
    """Workspaces whose `AxisBook` has changed."""


def learn_health(material: HealthMaterial) -> LearnedHealth:
    """Learn from every execution and correction of a batch. Pure, but for the log.

    A record that cannot be learned from is logged and passed over, as in `ingest.batch`; it is
    read whole before anything of it is counted.
    """
    named_axes: dict[str, None] = {}
    for stored in material.executions:
        try:
            if _learn_execution(material, stored):
                named_axes[stored.workspace] = None
        except Exception:
            log.exception("no health was learned from execution %s", stored.execution.execution_id)
    for tied in material.corrections:
        try:
            if _learn_correction(material, tied):
                named_axes[tied.correction.workspace] = None
        except Exception:
            log.exception("nothing was learned from correction %s", tied.correction.correction_id)
    rows = [*_tool_rows(material.health), *_book_rows(material.books, named_axes)]
    return LearnedHealth(rows, list(named_axes))


def _learn_execution(material: HealthMaterial, stored: StoredExecution) -> bool:
    """Count one execution; returns whether it named axes."""
    execution, at = stored.execution, stored.execution.timestamp
    known = material.health[stored.tool_key]
    reading = material.readings.get(stored.position)
    if reading is None:
        why = weakness_of(execution)
        _count_call(known, execution, None)
        if why is not None:
            known.weak.add(at)
            remember_weak(known, Weak(at=at, execution_id=execution.execution_id, why=short(why)))
            _in_trouble(known, at)
        return False
    return _learn_failure(material, known, stored, reading.category)


def _learn_failure(
    material: HealthMaterial, known: KnownHealth, stored: StoredExecution, category: ErrorCategory
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
    if axes:
        count_axes(material.books[stored.workspace], axes, at)
    return bool(axes)


def _learn_correction(material: HealthMaterial, tied: TiedCorrection) -> bool:
    """Count one correction; returns whether it named axes."""
    correction, at = tied.correction, tied.correction.corrected_at
    known = material.health[tied.stored.tool_key]
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
    if axes:
        count_axes(material.books[correction.workspace], axes, at)
    return bool(axes)


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


def _tool_rows(health: Mapping[ToolKey, KnownHealth]) -> Iterator[HealthRow]:
    for tool, known in health.items():
        used_at = known.used_at or known.troubled_at
        if used_at is not None:  # nothing at all could be learned of it
            yield HealthRow(tool, encoded(known), used_at, known.troubled_at)


def _book_rows(books: Mapping[str, AxisBook], changed: Mapping[str, None]) -> Iterator[HealthRow]:
    for workspace in changed:
        book = books[workspace]
        prune(book)
        used_at = latest_use(book)
        if used_at is not None:
            data = book.model_dump_json(exclude_defaults=True).encode()
            yield HealthRow(workspace_wide(workspace), data, used_at)
