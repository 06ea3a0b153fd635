"""Fitness and health of tools: what calls, marks and corrections say, each counted once. Pure.

A mark that names an execution of the tool is about that call: the two are one trial, of the graver
kind, under the mark's version. Without one, a mark is a call of its own.

A user's correction counts as a low mark of the call that it is about, in that call's own version
and scenario: an answer that a user had to correct heals nothing, whatever the tool stated of it. A
call that the tool refused as not its job is a trial of the kind "referral".

What the versions of a tool were used for is one document for each distinct wording. Wordings are
shown apart by their letters: case, white space and digits make no difference, so that "Translate  3
pages" and "translate 12 pages" meet.

Tallies of health come out the same in whatever order and batches the records arrive, to rounding;
so do the lists of latest events, for each keeps its latest by time. Where a table is full and one
entry makes space for another, the order decides which.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from aftercall.models import ErrorCategory, Execution, Outcome, Referral, ReferralKind
from aftercall.outcomes import referral_of
from embeddings.text import MAX_TEXT
from ingest.learner import session_of
from ingest.workspace import WorkspaceCache
from mongo.contents import (
    BETWEEN,
    Called,
    CorrectionRecord,
    FailureRecord,
    StoredExecution,
    name_as_given,
)
from mongo.records import OWNER, ToolKey
from retrieval.knowledge.memory import (
    AXES,
    CALL,
    DOCUMENT,
    HEALTH,
    MARKED,
    STATISTICS,
    TROUBLE,
    USED,
    tool_row,
)
from retrieval.knowledge.patterns.clusters import normalised_axes
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rows.documents import MAX_EXECUTION_IDS, Document, document_id
from retrieval.knowledge.rows.health import (
    MAX_METHOD_SESSIONS,
    OWN_FAILURES,
    Corrected,
    KnownHealth,
    Marked,
    OwnFailure,
    Referred,
    Tally,
    Weak,
    count_axes,
    method_to_update,
    remember_event,
    remember_referral,
    remember_user,
    shorten_line,
)
from retrieval.knowledge.rows.health_signals import is_earlier, method_of
from retrieval.knowledge.rows.principals import key_mark
from retrieval.knowledge.rows.statistics import (
    MAX_NEGATIVE_TAGS,
    MAX_SCENARIO_TRIALS,
    MAX_SCENARIOS,
    NO_VERSION,
    ToolTrials,
    Trial,
    TrialKind,
    merge_trials,
    trial_moment,
    trial_of,
    trial_of_call,
    with_trial,
)
from retrieval.knowledge.tool.rules import remember_name

_MAX_MESSAGE = 500
"""Characters kept of an error message: it is shown, not searched."""
_DIGITS = re.compile(r"\d+")
_KNOWN_WORDINGS = 8_192
"""Whose ids are kept: a batch of 4,000 asks for each twice, first for all of them."""


class Counted(NamedTuple):
    """Under which version a call was counted, and as what."""

    version: str
    outcome: Outcome


def learn_trial(
    cache: WorkspaceCache,
    stored: StoredExecution,
    reading: ErrorReading | None,
    weakness: str | None,
) -> None:
    """Count an execution, in place; `reading` is of its error, `weakness` states why it is weak."""
    execution, tool, at = stored.execution, stored.tool_key, stored.execution.timestamp
    known = cache.get_or_make(STATISTICS, tool_row(tool))
    version = execution.tool_version or NO_VERSION
    is_referral = reading is not None and reading.category == "wrong_tool_boundary"
    kind: TrialKind = "referral" if is_referral else "weak" if weakness else execution.outcome
    bare = not (execution.context or "").strip()
    trial = trial_of(at, execution.execution_id, kind, stored.principal, bare=bare)
    marked = _read_counted(cache, tool, execution.execution_id)
    counted_in = known.version_to_update(marked.version if marked else version)
    counted_in.add(trial, at, marked.outcome if marked else None)
    _learn_scenario(
        cache,
        known.scenarios,
        stored.position,
        tool=tool,
        version=version,
        scenario=execution.context or "",
        trial=trial,
        at=at,
        message=execution.error.message if execution.error else None,
        execution_id=execution.execution_id,
        agent=name_as_given(execution.agent),
    )
    cache.put(STATISTICS, tool_row(tool), tool=tool)


def learn_mark(
    cache: WorkspaceCache, mark: FailureRecord, called: Called | None, position: int
) -> None:
    """Count a marked failure, in place; `called` is the call of its tool that it names."""
    known, at = cache.get_or_make(STATISTICS, tool_row(mark.tool)), mark.marked_at
    version = mark.version or NO_VERSION
    trial = trial_of(at, mark.execution_id or mark.mark_id, mark.severity, mark.principal)
    before = None
    if mark.execution_id is not None:
        before = _read_counted(cache, mark.tool, mark.execution_id)
        if before is None and called is not None and called.tool == mark.tool:
            before = Counted(called.version or NO_VERSION, called.outcome)
        _note_counted(cache, mark.tool, mark.execution_id, Counted(version, "failure"))
    if before is not None and before.version != version:
        _move_trial(known, trial.key, before, version)
        before = None
    outcome = None if before is None else before.outcome
    known.version_to_update(version).add(trial, at, outcome)
    by = f"{key_mark(mark.principal)}{BETWEEN}" if mark.principal != OWNER else ""
    _remember_tags(known.negative_tags, tuple(by + tag for tag in mark.negative_tags), at)
    _learn_scenario(
        cache,
        known.scenarios,
        position,
        tool=mark.tool,
        version=version,
        scenario=mark.scenario,
        trial=trial,
        at=at,
        message=mark.error_message,
        execution_id=mark.execution_id,
    )
    cache.put(STATISTICS, tool_row(mark.tool), tool=mark.tool)
    cache.put(MARKED, tool_row(mark.tool), tool=mark.tool)
    if mark.execution_id is not None and (called is None or called.outcome != "success"):
        return  # the call itself is known as a failure
    health = cache.get_or_make(HEALTH, tool_row(mark.tool))
    remember_user(health, mark.principal)
    marked = Marked(
        at=at,
        execution_id=mark.execution_id or mark.mark_id,
        severity=mark.severity,
        message=shorten_line(mark.error_message, _MAX_HEALTH_MESSAGE),
        by=key_mark(mark.principal),
    )
    remember_event(health.marks, marked)
    _in_trouble(health, at)
    _put_health(cache, mark.tool, health)


def learn_correction(
    cache: WorkspaceCache, correction: CorrectionRecord, called: Called, position: int
) -> None:
    """Count a user's correction of a call, in place."""
    tool, at = called.tool, correction.corrected_at
    known = cache.get_or_make(STATISTICS, tool_row(tool))
    own_version = called.version or NO_VERSION
    trial = trial_of(at, correction.execution_id, "low", correction.principal)
    before = _read_counted(cache, tool, correction.execution_id) or Counted(
        own_version, called.outcome
    )
    known.version_to_update(before.version).add(trial, at, before.outcome)
    _note_counted(cache, tool, correction.execution_id, Counted(before.version, "failure"))
    _learn_scenario(
        cache,
        known.scenarios,
        position,
        tool=tool,
        version=own_version,  # that of the document which the call itself is in
        scenario=called.context or "",
        trial=trial,
        at=at,
        message=correction.text,
        execution_id=correction.execution_id,
    )
    cache.put(STATISTICS, tool_row(tool), tool=tool)
    cache.put(MARKED, tool_row(tool), tool=tool)
    health, axes = (
        cache.get_or_make(HEALTH, tool_row(tool)),
        normalised_axes(correction.boundary_axes),
    )
    corrected = Corrected(
        at=at,
        correction_id=correction.correction_id,
        execution_id=correction.execution_id,
        kind=correction.kind,
        text=shorten_line(correction.text),
        axes=list(axes)[:_MAX_AXES],
        by=key_mark(correction.principal),
    )
    remember_user(health, correction.principal)
    health.corrections.add(at)
    remember_event(health.recent_corrections, corrected)
    _in_trouble(health, at)
    _count_axes(cache, axes, at)
    _put_health(cache, tool, health)


def scenario_id(tool: ToolKey, version: str | None, scenario: str) -> str:
    """Return the id of a scenario's document.

    The same for all wordings that are normalised alike.
    """
    return _scenario_id(tool, version or NO_VERSION, scenario[:MAX_TEXT])


@lru_cache(_KNOWN_WORDINGS)
def _scenario_id(tool: ToolKey, version: str, scenario: str) -> str:
    normalised = _DIGITS.sub("#", " ".join(scenario.casefold().split()))
    what = f"{version}\x1f{normalised}"
    return document_id(tool.workspace, "scenario", tool.server_name, tool.tool_name, what)


def _read_counted(cache: WorkspaceCache, tool: ToolKey, execution_id: str) -> Counted | None:
    notes = cache.get(CALL, execution_id)
    found = notes.counted.get(tool_row(tool)) if notes else None
    return Counted(*found) if found else None


def _note_counted(
    cache: WorkspaceCache, tool: ToolKey, execution_id: str, counted: Counted
) -> None:
    cache.get_or_make(CALL, execution_id).counted[tool_row(tool)] = counted
    cache.put(CALL, execution_id)


def _move_trial(known: ToolTrials, key: str, counted: Counted, version: str) -> None:
    if (left := known.versions.get(counted.version)) is None:
        return  # forgotten, with the call in it
    taken = left.take_out(key, counted.outcome)
    if not (left.trials or left.successes or left.failures):
        del known.versions[counted.version]
    if taken is not None:
        known.version_to_update(version).add(taken, trial_moment(taken))


def _remember_tags(known: dict[str, datetime], tags: tuple[str, ...], at: datetime) -> None:
    """Add tags to a bounded table, in place of those that were given longest ago."""
    known |= {tag: max(at, known.get(tag, at)) for tag in tags}
    while len(known) > MAX_NEGATIVE_TAGS:
        del known[min(known, key=lambda tag: (known[tag], tag))]


def _learn_scenario(
    cache: WorkspaceCache,
    scenarios: dict[str, datetime],
    position: int,
    *,
    tool: ToolKey,
    version: str,
    scenario: str,
    trial: Trial,
    at: datetime,
    message: str | None,
    execution_id: str | None,
    agent: str | None = None,
) -> None:
    """Add a use to its scenario's document; in a full table the least recent makes space."""
    if not scenario or scenario.isspace():
        return
    identity = scenario_id(tool, version, scenario)
    if identity not in scenarios and not _has_room(cache, at, identity, scenarios, position):
        return
    scenarios[identity] = max(at, scenarios.get(identity, at))
    new = Document(
        document_id=identity,
        kind="scenario",
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        text=scenario[:MAX_TEXT],
        count=1,
        agents=[agent] if agent else [],
        execution_ids=[execution_id] if execution_id else [],
        last_seen=at,
        version=version,
        trials=[trial],
        message=message[:_MAX_MESSAGE] if message else None,
    )
    if (document := cache.get(DOCUMENT, identity)) is not None:
        _merge_use(document, new, trial, at)
    cache.put_document(document or new, position, tool)


def _has_room(
    cache: WorkspaceCache,
    at: datetime,
    identity: str,
    scenarios: dict[str, datetime],
    position: int,
) -> bool:
    if len(scenarios) < MAX_SCENARIOS:
        return True
    latest_use = min(scenarios.values())
    least = min([each for each, used_at in scenarios.items() if used_at == latest_use])
    if (at, identity) < (latest_use, least):
        return False  # a late arrival, from before all that is known
    del scenarios[least]
    cache.remove_document(least, position)
    return True


def _merge_use(document: Document, use: Document, trial: Trial, at: datetime) -> None:
    """Add a use in place: each call counts once, the latest failure's message is shown."""
    known = document.trials
    if use.message:
        failures = (each.at for each in known if not each.is_success)
        if document.message is None or trial.at >= max(failures, default=trial.at):
            document.message = use.message
    if trial_of_call(known, trial.key) is None:
        document.count += 1
        document.trials = with_trial(known, trial, MAX_SCENARIO_TRIALS)
    else:
        document.trials = merge_trials(known, use.trials, limit=MAX_SCENARIO_TRIALS)
    document.last_seen = max(at, document.last_seen or at)
    for agent in use.agents:
        remember_name(document.agents, agent)
    for execution_id in use.execution_ids:
        remember_name(document.execution_ids, execution_id, MAX_EXECUTION_IDS)


_MAX_AXES = 8
"""Axes kept of one referral: a tool that names more shows no boundary. All count in the book."""
_MAX_SPLIT = 8
_MAX_PART = 100
"""Characters kept of a task's shape, and of a part of a split: names of tools and of jobs."""
_MAX_HEALTH_MESSAGE = 200
REFERRALS: dict[ErrorCategory, ReferralKind] = {
    "wrong_tool_boundary": "wrong_tool_boundary",
    "low_utility": "low_utility",
}
"""Failures that may name axes."""


def learn_health(
    cache: WorkspaceCache,
    stored: StoredExecution,
    reading: ErrorReading | None,
    weakness: str | None,
) -> None:
    """Count an execution, in place, as `learn_trial`."""
    execution, at = stored.execution, stored.execution.timestamp
    known = cache.get_or_make(HEALTH, tool_row(stored.tool_key))
    remember_user(known, stored.principal)
    if reading is None:
        _count_call(known, execution, None)
        if weakness is not None:
            known.weak.add(at)
            weak = Weak(at=at, execution_id=execution.execution_id, why=shorten_line(weakness))
            remember_event(known.recent_weak, weak)
            _in_trouble(known, at)
    else:
        _learn_failure(cache, known, stored, reading.category)
    _put_health(cache, stored.tool_key, known)


def _learn_failure(
    cache: WorkspaceCache, known: KnownHealth, stored: StoredExecution, category: ErrorCategory
) -> None:
    execution, at = stored.execution, stored.execution.timestamp
    kind, referral = REFERRALS.get(category), None
    if kind and execution.error:
        # One whose type is stated another way than the wire's states no more.
        referral = referral_of(execution.error) or Referral()
    axes = normalised_axes(referral.boundary_axes) if referral else {}
    message = shorten_line(execution.error.message, _MAX_HEALTH_MESSAGE) if execution.error else ""
    _count_call(known, execution, category)
    if category in OWN_FAILURES:
        own = OwnFailure(
            at=at, execution_id=execution.execution_id, category=category, message=message
        )
        remember_event(known.own_failures, own)
        _in_trouble(known, at)
    if kind and referral:
        shape, evidence = referral.observed_task_shape, referral.evidence
        referred = Referred(
            at=at,
            execution_id=execution.execution_id,
            kind=kind,
            session=session_of(execution),
            axes=list(axes)[:_MAX_AXES],
            spelled=list(axes.values())[:_MAX_AXES],
            shape=None if shape is None else shorten_line(shape, _MAX_PART),
            split=[shorten_line(part, _MAX_PART) for part in referral.suggested_split[:_MAX_SPLIT]],
            evidence=None if evidence is None else shorten_line(evidence),
            message=message,
        )
        remember_referral(known, referred)
        _in_trouble(known, at)
    _count_axes(cache, axes, at)


def _count_axes(cache: WorkspaceCache, axes: Mapping[str, str], at: datetime) -> None:
    if axes:
        count_axes(cache.get_or_make(AXES, ""), axes, at)
        cache.put(AXES, "")


def _put_health(cache: WorkspaceCache, tool: ToolKey, known: KnownHealth) -> None:
    cache.put(HEALTH, tool_row(tool), tool=tool)
    if (used_at := known.used_at or known.troubled_at) is not None:
        cache.put(USED, tool_row(tool), tool=tool, rank=_trouble_rank(used_at))
    if known.troubled_at is not None:
        cache.put(TROUBLE, tool_row(tool), tool=tool, rank=_trouble_rank(known.troubled_at))


def _trouble_rank(moment: datetime) -> int:
    return max(1, int(moment.timestamp() * 1000))


def _count_call(known: KnownHealth, execution: Execution, category: ErrorCategory | None) -> None:
    """Count a call; `category` has no value for a success."""
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
    if (called := method_of(execution.parameters)) is None:
        return
    parameter, method = called
    if is_earlier(parameter, known.method_parameter):
        known.method_parameter = parameter
    tallies = method_to_update(known, method)
    (tallies.successes if category is None else tallies.failures).add(at)
    if category is not None:
        tallies.categories.setdefault(category, Tally()).add(at)
    # Those that sort first, so that which ones stay does not depend on the order.
    tallies.sessions = sorted({*tallies.sessions, session_of(execution)})[:MAX_METHOD_SESSIONS]


def _in_trouble(known: KnownHealth, at: datetime) -> None:
    known.troubled_at = max(known.troubled_at or at, at)
