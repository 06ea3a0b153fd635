"""How tools fare: trials from executions and marks, each call once, however it is told. Pure.

A mark that names an execution of the tool is about that call: the two are one trial, of the graver
kind, under the mark's version. Without one, a mark is a call of its own.

A user's correction counts as a low mark of the call that it is about, in that call's own version
and scenario: an answer that a user had to correct heals nothing, whatever the tool said of it. A
call that the tool refused as not its job is a trial of the kind "referral".
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from aftercall.models import Outcome
from ingest.health import TiedCorrection
from ingest.scenarios import DocumentKey, ScenarioDocuments, Use
from mongo.records import DocumentRow, FailureRecord, StatisticsRow, StoredExecution, ToolKey
from retrieval.fitness.statistics import (
    MAX_NEGATIVE_TAGS,
    NO_VERSION,
    ToolStatistics,
    TrialKind,
    moment_of,
    trial_of,
)
from retrieval.knowledge.documents import Document
from retrieval.reading.reader import ErrorReading

Call: TypeAlias = tuple[ToolKey, str]
"""A call of a tool by its execution id."""

log = logging.getLogger("aftercall.indexer")


class Counted(NamedTuple):
    """Under which version a call was counted, and as what."""

    version: str
    outcome: Outcome


@dataclass(slots=True)
class FitnessMaterial:
    """All that learning how tools fare needs; learned into in place."""

    executions: list[StoredExecution]
    marks: list[FailureRecord]
    statistics: dict[ToolKey, ToolStatistics]
    documents: dict[DocumentKey, Document]
    """Scenario documents that the store has, of those that the batch is about."""
    counted: dict[Call, Counted] = field(default_factory=dict)
    """Calls that marks and corrections are about and that were counted before, by any of them."""
    corrections: list[TiedCorrection] = field(default_factory=list)
    readings: Mapping[int, ErrorReading] = field(default_factory=dict)
    """Of the batch's failures, by position."""


@dataclass(frozen=True, slots=True)
class LearnedFitness:
    """How tools fare now, ready to be stored."""

    statistics: list[StatisticsRow]
    documents: list[DocumentRow]
    removed: list[DocumentKey]


def learn_fitness(material: FitnessMaterial) -> LearnedFitness:
    """Learn from every execution, mark and correction of a batch. Pure, but for the log.

    A record that cannot be learned from is logged and passed over, as in `ingest.batch`.
    """
    scenarios = ScenarioDocuments(material.documents)
    for stored in material.executions:
        try:
            _learn_execution(material, scenarios, stored)
        except Exception:
            log.exception("no trial was learned from execution %s", stored.execution.execution_id)
    for mark in material.marks:
        try:
            _learn_mark(material, scenarios, mark)
        except Exception:
            log.exception("nothing was learned from mark %s", mark.mark_id)
    for tied in material.corrections:
        try:
            _learn_correction(material, scenarios, tied)
        except Exception:
            log.exception("no trial was learned from correction %s", tied.correction.correction_id)
    return LearnedFitness(
        statistics=[
            StatisticsRow(tool, known.model_dump_json().encode())
            for tool, known in material.statistics.items()
        ],
        documents=list(scenarios.rows()),
        removed=scenarios.removed(),
    )


def remember_tags(
    known: dict[str, datetime], tags: tuple[str, ...], at: datetime, limit: int = MAX_NEGATIVE_TAGS
) -> None:
    """Add tags to a bounded table, in place of those that were given longest ago."""
    for tag in tags:
        known[tag] = max(at, known.get(tag, at))
    while len(known) > limit:
        del known[min(known, key=lambda tag: (known[tag], tag))]


def _learn_execution(
    material: FitnessMaterial, scenarios: ScenarioDocuments, stored: StoredExecution
) -> None:
    execution, tool, at = stored.execution, stored.tool_key, stored.execution.timestamp
    known = material.statistics[tool]
    version = execution.tool_version or NO_VERSION
    trial = trial_of(at, execution.execution_id, _kind_of(material, stored))
    call = (tool, execution.execution_id)
    marked = material.counted.get(call)
    if marked is None:
        known.version_to_update(version).add(trial, at)
        material.counted[call] = Counted(version, execution.outcome)
    else:
        known.version_to_update(marked.version).add(trial, at, marked.outcome)
    if execution.context and not execution.context.isspace():
        use = Use(
            tool=tool,
            version=version,
            scenario=execution.context,
            trial=trial,
            at=at,
            message=execution.error.message if execution.error else None,
            agent=execution.agent,
            execution_id=execution.execution_id,
        )
        scenarios.learn(use, known.scenarios)


def _learn_mark(
    material: FitnessMaterial, scenarios: ScenarioDocuments, mark: FailureRecord
) -> None:
    known, at = material.statistics[mark.tool], mark.marked_at
    version = mark.version or NO_VERSION
    trial = trial_of(at, mark.execution_id or mark.mark_id, mark.severity)
    before = None
    if mark.execution_id is not None:
        call = (mark.tool, mark.execution_id)
        before = material.counted.get(call)
        material.counted[call] = Counted(version, "failure")
    if before is not None and before.version != version:
        _move(known, trial.key, before, version)
        before = None
    outcome = None if before is None else before.outcome
    known.version_to_update(version).add(trial, at, outcome)
    remember_tags(known.negative_tags, mark.negative_tags, at)
    if mark.scenario and not mark.scenario.isspace():
        use = Use(
            tool=mark.tool,
            version=version,
            scenario=mark.scenario,
            trial=trial,
            at=at,
            message=mark.error_message,
            execution_id=mark.execution_id,
        )
        scenarios.learn(use, known.scenarios)


def _learn_correction(
    material: FitnessMaterial, scenarios: ScenarioDocuments, tied: TiedCorrection
) -> None:
    execution, tool, at = tied.stored.execution, tied.stored.tool_key, tied.correction.corrected_at
    known = material.statistics[tool]
    own_version = execution.tool_version or NO_VERSION
    trial = trial_of(at, execution.execution_id, "low")
    call = (tool, execution.execution_id)
    before = material.counted.get(call)
    version = own_version if before is None else before.version
    known.version_to_update(version).add(trial, at, None if before is None else before.outcome)
    material.counted[call] = Counted(version, "failure")
    if execution.context and not execution.context.isspace():
        use = Use(
            tool=tool,
            version=own_version,  # that of the document which the call itself is in
            scenario=execution.context,
            trial=trial,
            at=at,
            message=tied.correction.text,
            execution_id=execution.execution_id,
        )
        scenarios.learn(use, known.scenarios)


def _kind_of(material: FitnessMaterial, stored: StoredExecution) -> TrialKind:
    reading = material.readings.get(stored.position)
    if reading is not None and reading.category == "wrong_tool_boundary":
        return "referral"
    return stored.execution.outcome


def _move(known: ToolStatistics, key: str, counted: Counted, version: str) -> None:
    """Count a call under the version that a mark says it was of."""
    left = known.versions.get(counted.version)
    if left is None:
        return  # forgotten, with the call in it
    taken = left.take_out(key, counted.outcome)
    if not (left.trials or left.successes or left.failures):
        del known.versions[counted.version]
    if taken is not None:
        known.version_to_update(version).add(taken, moment_of(taken))
