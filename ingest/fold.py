"""The fold: what each event, in the order of the log, adds to what is known. Pure but for `load`.

It depends on nothing but the rows before it and the log: not on the clock, not on where batches are
cut. So learning all again ends with the same rows, whatever part of it was done before. Old events
are deleted a day after the base has learned them. For a rebuild to give the same rows even so,
learning an event uses only events of the time `LOOKBACK` before it.

A row is loaded before it is read (`load`, `get`, `made`), changed in place, and written only if
`put` was called for it in the batch.
"""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from aftercall.models import Execution
from ingest import learner, trials
from ingest.mining import find_passed, mine_repairs, tried_in_vain
from ingest.pacing import let_answers_pass
from ingest.workspace import WorkspaceCache
from mongo.contents import (
    Called,
    CorrectionRecord,
    FailureRecord,
    IssuedSuggestion,
    PromotionEvent,
    RuleRemoval,
    StoredExecution,
    StoredPromotion,
    StoredTool,
    SuggestionOutcome,
    ToolChange,
    name_for_principal,
    named_execution_of,
    thread_of,
)
from mongo.protocol import EventLog, Knowledge
from mongo.records import Counter, Event, EventKind, ToolKey, decode_json
from retrieval.knowledge.memory import (
    AGENTS,
    AXES,
    CALL,
    DOCUMENT,
    FOLLOWED,
    HEALTH,
    JUDGED,
    KNOWLEDGE,
    REGISTERED,
    REPAIR,
    SIGNATURES,
    SKIPPED,
    STATISTICS,
    TAUGHT,
    VERSIONS,
    Followed,
    JudgedSuggestion,
    MendedFailure,
    RowKind,
    tool_row,
)
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edits import edit_key, edits_of_key
from retrieval.knowledge.rows.documents import Kind, document_id, shape_of
from retrieval.knowledge.rows.health_signals import weakness_of
from retrieval.knowledge.tool.links import MAX_CALLS
from retrieval.knowledge.tool.rules import UNNAMED_AGENT, ToolKnowledge, workspace_wide

LOOKBACK = timedelta(hours=20)
MARGIN = timedelta(days=1)
"""From the moment at which the base has learned an event until that may be deleted."""
_CONTENTS: dict[EventKind, type[Any]] = {
    "suggestion": IssuedSuggestion,
    "outcome": SuggestionOutcome,
    "mark": FailureRecord,
    "correction": CorrectionRecord,
    "tool": ToolChange,
    "promotion": PromotionEvent,
    "rule": RuleRemoval,
}
_OF_A_CALL = (KNOWLEDGE, HEALTH, STATISTICS, REGISTERED, SIGNATURES, VERSIONS)
"""Rows of a tool that its calls are learned into."""
log = logging.getLogger("aftercall.learner")


@dataclass(slots=True)
class Batch:
    """Events of one workspace in the order of the log, and what learning from them needs."""

    events: Sequence[Event]
    contents: dict[int, Any]
    """What they hold, by position; events that say nothing readable are left out."""
    readings: dict[str, ErrorReading]
    """Of failed executions, by id."""
    earlier: dict[str, StoredExecution] = field(default_factory=dict)
    """Executions that are named: by marks and corrections without their call, and as repaired."""
    issued: dict[str, tuple[Event, IssuedSuggestion]] = field(default_factory=dict)
    """Suggestions from before the batch that executions say they followed."""
    documents: dict[int, str] = field(default_factory=dict)
    """The ids of the executions' documents, by position."""


async def load(
    cache: WorkspaceCache, events: Sequence[Event], *, log_: EventLog, knowledge: Knowledge
) -> Batch:
    """Read what is known about what the events are about; a `StoreError` may pass."""
    batch = await asyncio.to_thread(_read_batch, events)
    workspace = cache.workspace
    named, followed = _named_events(batch)
    earlier = await log_.find_events(workspace, "execution", named) if named else ()
    batch.earlier = {each.id: named_execution_of(each) for each in earlier}
    issued = await log_.find_events(workspace, "suggestion", followed) if followed else ()
    batch.issued = {each.id: (each, decode_json(IssuedSuggestion, each.data)) for each in issued}
    executions = (each for each in batch.contents.values() if isinstance(each, StoredExecution))
    sessions = {thread_of(each.execution) for each in executions}
    await cache.load_sessions(log_, sessions, before=events[0].position)
    wanted = await asyncio.to_thread(_wanted_rows, workspace, batch)
    await cache.load(knowledge, wanted)
    # Outcomes of calls that came before the suggestions which they followed.
    late: list[tuple[RowKind[Any], str]] = [
        row
        for event in events
        if event.kind == "suggestion" and event.tool and (waiting := cache.get(FOLLOWED, event.id))
        for followed in waiting.calls
        for row in ((JUDGED, f"{event.id}\x1f{followed.execution_id}"),
                    (KNOWLEDGE, tool_row(event.tool)))
    ]  # fmt: skip
    await cache.load(knowledge, late)
    spoken_of = any(kind is CALL and cache.get(kind, key) for kind, key in wanted)
    if spoken_of or any(each.category in trials.REFERRALS for each in batch.readings.values()):
        await cache.load(knowledge, [(AXES, "")])
    return batch


def learn_batch(cache: WorkspaceCache, batch: Batch) -> Tally[Counter]:
    """Learn from each event into the cache's rows, and return what is counted.

    What cannot be learned is logged and noted.
    """
    counters = Tally[Counter]()
    for event in batch.events:
        let_answers_pass()
        try:
            _learn_event(cache, batch, event, counters)
        except Exception:
            log.exception("nothing was learned from the %s %s", event.kind, event.id)
            cache.put(SKIPPED, f"{event.position:020}", {"kind": event.kind, "id": event.id})
    return counters


def _learn_event(
    cache: WorkspaceCache, batch: Batch, event: Event, counters: Tally[Counter]
) -> None:
    content = batch.contents[event.position]
    match content:
        case StoredExecution():
            _learn_execution(cache, batch, content, counters)
        case IssuedSuggestion():
            counters.update(learner.counts_of_answer(content))
            if (waiting := cache.get(FOLLOWED, event.id)) is not None:
                for followed in waiting.calls:
                    _count_followed(cache, event.id, content, followed, event.position)
                cache.remove(FOLLOWED, event.id)
        case SuggestionOutcome():
            agent = name_for_principal(event.principal, content.agent or UNNAMED_AGENT)
            _count_outcome(cache, replace(content, agent=agent), event.position)
        case FailureRecord():
            called = content.called or _called_of(batch, event, content.execution_id)
            mark = replace(content, principal=event.principal)
            trials.learn_mark(cache, mark, called, event.position)
        case CorrectionRecord():
            called = content.called or _called_of(batch, event, content.execution_id)
            content = replace(content, principal=event.principal)
            if called is None:
                cache.get_or_make(CALL, content.execution_id).waiting.append(content)
                cache.put(CALL, content.execution_id)
            else:
                trials.learn_correction(cache, content, called, event.position)
        case ToolChange():
            _learn_tool(cache, content, event)
        case RuleRemoval():
            learner.learn_removal(cache.get_or_make(KNOWLEDGE, tool_row(content.tool)), content)
            cache.put(KNOWLEDGE, tool_row(content.tool), tool=content.tool)
        case PromotionEvent() if content.promoted is not None:
            cache.put_document(learner.evolution_document(content.promoted), event.position)


def _learn_execution(
    cache: WorkspaceCache, batch: Batch, stored: StoredExecution, counters: Tally[Counter]
) -> None:
    tool, execution, row = stored.tool_key, stored.execution, tool_row(stored.tool_key)
    reading = batch.readings.get(execution.execution_id)
    knowledge = cache.get_or_make(KNOWLEDGE, row)
    registered = cache.get(REGISTERED, row)
    schema_hash = stored.schema_hash or (registered.schema_hash if registered else None)
    if reading is not None:
        learner.learn_failure(knowledge, execution, reading, schema_hash)
    else:
        learner.learn_success(knowledge, execution, schema_hash)
    cache.put(KNOWLEDGE, row, tool=tool)
    if reading is not None or execution.parameters_known:  # which are the shape of a success
        document = cache.get(DOCUMENT, batch.documents[stored.position])
        if document is not None:
            learner.add_to_document(document, execution, reading)
        elif reading is not None:
            document = learner.failure_document(stored.workspace, execution, reading)
        else:
            document = learner.success_document(stored.workspace, execution)
        cache.put_document(document, stored.position, tool)
    weakness = weakness_of(execution) if reading is None else None
    trials.learn_trial(cache, stored, reading, weakness)
    trials.learn_health(cache, stored, reading, weakness)
    counters.update(learner.counts_of_execution(cache, stored, reading))
    _learn_links(cache, stored, knowledge)
    _learn_repairs(cache, batch, stored, schema_hash)
    _learn_followed(cache, batch, stored)
    if (notes := cache.get(CALL, execution.execution_id)) is not None and notes.waiting:
        for correction in notes.waiting:
            trials.learn_correction(
                cache, correction, Called.from_execution(stored), stored.position
            )
        notes.waiting = []
        cache.put(CALL, execution.execution_id)


def _learn_links(cache: WorkspaceCache, stored: StoredExecution, known: ToolKnowledge) -> None:
    """From which earlier calls of its session a success has its values."""
    execution = stored.execution
    if execution.session_id is None or execution.outcome != "success":
        return
    since = stored.received_at - LOOKBACK
    latest = {
        each.execution.tool_name: each.execution
        for each in list(cache.sessions.get(execution.session_id, ()))[-MAX_CALLS:]
        if each.execution.outcome == "success" and each.received_at >= since
    }
    if latest and execution.parameters_known:
        earlier = [cache.session_call(each) for each in latest.values()]
        known.links.learn_values(execution.parameters, earlier)


def _learn_repairs(
    cache: WorkspaceCache, batch: Batch, stored: StoredExecution, schema_hash: str | None
) -> None:
    """Repairs whose half that arrived last is this call."""
    calls = cache.remember_call(stored)
    if not stored.execution.parameters_known:
        return
    tool, since = stored.tool_key, stored.received_at - LOOKBACK
    name = (tool.server_name, tool.tool_name)
    of_tool = [
        each
        for stored_call in calls
        if ((each := stored_call.execution).server_name, each.tool_name) == name
        and stored_call.received_at >= since
        and each.parameters_known
    ]
    if tried := tried_in_vain(of_tool, stored.execution, lambda failed: _reading_of(batch, failed)):
        learner.learn_in_vain(cache.get_or_make(KNOWLEDGE, tool_row(tool)), tried)
        cache.put(TAUGHT, tool_row(tool), tool=tool)
    if len({each.outcome for each in of_tool}) == 1:
        return
    lately = [each.execution for each in calls if each.received_at >= since]
    if found := find_passed(lately, stored.execution):
        knowledge = cache.get_or_make(KNOWLEDGE, tool_row(tool))
        learner.learn_passed(knowledge, found, _reading_of(batch, found.failed))
    for repair in mine_repairs(
        of_tool, stored.execution, lambda failed: _reading_of(batch, failed)
    ):
        knowledge = cache.get_or_make(KNOWLEDGE, tool_row(tool))
        learner.learn_repair(knowledge, repair, schema_hash)
        cache.put(TAUGHT, tool_row(tool), tool=tool)
        if repair.edits is not None:
            everywhere = cache.get_or_make(KNOWLEDGE, tool_row(workspace_wide(tool.workspace)))
            cache.put(KNOWLEDGE, tool_row(workspace_wide(tool.workspace)))
            learner.learn_recoveries(repair, knowledge, everywhere)
            mended = MendedFailure(
                failed_id=repair.failed.execution_id,
                mended_id=repair.mended.execution_id,
                failed_at=repair.failed.timestamp,
                mended_at=repair.mended.timestamp,
                signature=repair.reading.signature,
                edit_key=edit_key(repair.edits),
            )
            _put_mended(cache, tool, mended, stored.position)


def _put_mended(cache: WorkspaceCache, tool: ToolKey, mended: MendedFailure, position: int) -> None:
    cache.put(REPAIR, f"{mended.failed_id}\x1f{mended.mended_id}", mended, tool=tool, rank=position)


def _learn_followed(cache: WorkspaceCache, batch: Batch, stored: StoredExecution) -> None:
    """Learn what an execution states of the suggestion that it followed."""
    execution = stored.execution
    if execution.suggestion_id is None:
        return
    found = _recent_call(batch, execution.repair_of, stored)
    failed = found.execution if found and found.principal == stored.principal else None
    followed = Followed(
        execution_id=execution.execution_id,
        outcome=execution.outcome,
        agent=execution.agent,
        worked_at=execution.timestamp,
        failed_id=failed.execution_id if failed else None,
        failed_at=failed.timestamp if failed else None,
    )
    issued = batch.issued.get(execution.suggestion_id)
    since = stored.received_at - LOOKBACK
    if issued and issued[0].position < stored.position and issued[0].received_at >= since:
        _count_followed(cache, execution.suggestion_id, issued[1], followed, stored.position)
    else:
        cache.get_or_make(FOLLOWED, execution.suggestion_id).calls.append(followed)
        cache.put(FOLLOWED, execution.suggestion_id)


def _count_followed(
    cache: WorkspaceCache,
    suggestion_id: str,
    issued: IssuedSuggestion,
    followed: Followed,
    position: int,
) -> None:
    outcome = SuggestionOutcome(
        suggestion_id=suggestion_id,
        execution_id=followed.execution_id,
        outcome=followed.outcome,
        issued=issued,
        agent=followed.agent,
    )
    _count_outcome(cache, outcome, position)
    if followed.outcome == "success" and followed.failed_id and followed.failed_at:
        mended = MendedFailure(
            failed_id=followed.failed_id,
            mended_id=followed.execution_id,
            failed_at=followed.failed_at,
            mended_at=followed.worked_at,
            signature=issued.signature,
            edit_key=issued.edit_key,
            followed_suggestion=True,
        )
        _put_mended(cache, issued.tool, mended, position)


def _count_outcome(cache: WorkspaceCache, outcome: SuggestionOutcome, position: int) -> None:
    """Count an outcome; one for each suggestion and execution, the first that was stated."""
    key, issued = f"{outcome.suggestion_id}\x1f{outcome.execution_id}", outcome.issued
    if cache.get(JUDGED, key) is not None or issued.suggestion is None:
        return
    tool = issued.tool
    learner.learn_outcome(
        cache.get_or_make(KNOWLEDGE, tool_row(tool)),
        issued.signature,
        issued.category,
        edits_of_key(issued.edit_key),
        outcome.outcome,
        outcome.agent or UNNAMED_AGENT,
    )
    cache.put(KNOWLEDGE, tool_row(tool), tool=tool)
    cache.put(TAUGHT, tool_row(tool), tool=tool)
    judged = JudgedSuggestion(
        outcome=outcome.outcome,
        confidence=issued.suggestion.confidence,
        estimate=issued.estimate,
        agent=outcome.agent,
    )
    cache.put(JUDGED, key, judged, tool=tool, rank=position)


def _learn_tool(cache: WorkspaceCache, change: ToolChange, event: Event) -> None:
    workspace = cache.workspace
    before = StoredTool(workspace, change.before) if change.before else None
    after = StoredTool(workspace, change.after) if change.after else None
    for each in (before, after):
        if each is not None:
            names = cache.get_or_make(REGISTERED, tool_row(each.tool_key))
            names.schema_hashes.pop(change.tool_id, None)
            if each is after:
                names.schema_hashes[change.tool_id] = each.tool.schema_hash
            cache.put(REGISTERED, tool_row(each.tool_key), tool=each.tool_key)
    if before is not None and (after is None or after.tool_key != before.tool_key):
        cache.remove_document(learner.tool_document_row_id(before), event.position)
    if after is not None:
        cache.put_document(learner.tool_document(after), event.position, after.tool_key)


# What a batch needs


def _read_batch(events: Sequence[Event]) -> Batch:
    batch = Batch(events, {}, {})
    for event in events:
        let_answers_pass()
        found: Any = None
        try:
            if event.kind == "execution":
                found = named_execution_of(event)
            elif event.kind in _CONTENTS:
                found = decode_json(_CONTENTS[event.kind], event.data)
        except ValueError:
            log.exception("the %s %s cannot be read", event.kind, event.id)
            continue
        batch.contents[event.position] = found
        if isinstance(found, StoredExecution) and found.execution.error is not None:
            _reading_of(batch, found.execution)
    return batch


def _reading_of(batch: Batch, failed: Execution) -> ErrorReading:
    if failed.execution_id not in batch.readings and failed.error is not None:
        batch.readings[failed.execution_id] = read_error(failed.error, failed.parameters)
    return batch.readings[failed.execution_id]


def _named_events(batch: Batch) -> tuple[list[str], list[str]]:
    """Executions that are named without their call, and suggestions that were followed."""
    executions: dict[str, None] = {}
    suggestions: dict[str, None] = {}
    for event in batch.events:
        match batch.contents.get(event.position):
            case StoredExecution(execution=execution) if execution.suggestion_id is not None:
                suggestions[execution.suggestion_id] = None
                if execution.repair_of is not None:
                    executions[execution.repair_of] = None
            case FailureRecord() | CorrectionRecord() as said:
                if said.called is None and said.execution_id is not None:
                    executions[said.execution_id] = None
    return list(executions), list(suggestions)


def _recent_call(
    batch: Batch, execution_id: str | None, by: Event | StoredExecution
) -> StoredExecution | None:
    """Return the call that an event names, where it was recorded lately, before the event."""
    found = batch.earlier.get(execution_id or "")
    if found is None or found.position > by.position:
        return None
    return found if found.received_at >= by.received_at - LOOKBACK else None


def _called_of(batch: Batch, event: Event, execution_id: str | None) -> Called | None:
    found = _recent_call(batch, execution_id, event)
    return None if found is None else Called.from_execution(found)


def _wanted_rows(workspace: str, batch: Batch) -> set[tuple[RowKind[Any], str]]:
    wanted: set[tuple[RowKind[Any], str]] = {
        (KNOWLEDGE, tool_row(workspace_wide(workspace))),
        (AGENTS, ""),
    }
    called: set[ToolKey] = set()
    for event in batch.events:
        content = batch.contents.get(event.position)
        if isinstance(content, StoredExecution):
            called.add(content.tool_key)
            wanted.update(_wanted_by_execution(batch, content))
        else:
            wanted.update(_wanted_by_report(workspace, batch, event, content))
    return wanted.union((kind, tool_row(tool)) for tool in called for kind in _OF_A_CALL)


def _wanted_by_report(
    workspace: str, batch: Batch, event: Event, content: Any
) -> Iterator[tuple[RowKind[Any], str]]:
    match content:
        case IssuedSuggestion():
            yield FOLLOWED, event.id  # of its tool nothing is read, unless it was followed already
        case SuggestionOutcome() as outcome:
            yield KNOWLEDGE, tool_row(outcome.issued.tool)
            yield JUDGED, event.id
        case FailureRecord() as mark:
            yield from _wanted_by_use(mark.tool, mark.version, mark.scenario)
            yield HEALTH, tool_row(mark.tool)
            if mark.execution_id is not None:
                yield CALL, mark.execution_id
        case CorrectionRecord() as correction:
            yield AXES, ""
            yield CALL, correction.execution_id
            called = correction.called or _called_of(batch, event, correction.execution_id)
            if called is not None:
                yield HEALTH, tool_row(called.tool)
                yield from _wanted_by_use(called.tool, called.version, called.context)
        case RuleRemoval() as removal:
            yield KNOWLEDGE, tool_row(removal.tool)
        case ToolChange() as change:
            for tool in filter(None, (change.before, change.after)):
                stored = StoredTool(workspace, tool)
                yield REGISTERED, tool_row(stored.tool_key)
                yield DOCUMENT, learner.tool_document_row_id(stored)
        case PromotionEvent(promoted=StoredPromotion() as promoted):
            yield DOCUMENT, learner.evolution_id(promoted)


def _wanted_by_execution(
    batch: Batch, stored: StoredExecution
) -> Iterator[tuple[RowKind[Any], str]]:
    """Next to the rows of its tool."""
    execution = stored.execution
    yield CALL, execution.execution_id
    reading = batch.readings.get(execution.execution_id)
    kind: Kind = "success" if reading is None else "reflection"
    what = shape_of(execution.parameters) if reading is None else reading.signature
    document = document_id(stored.workspace, kind, execution.server_name, execution.tool_name, what)
    batch.documents[stored.position] = document
    yield DOCUMENT, document
    if scenario := execution.context:
        yield DOCUMENT, trials.scenario_id(stored.tool_key, execution.tool_version, scenario)
    if execution.suggestion_id is not None:
        yield JUDGED, f"{execution.suggestion_id}\x1f{execution.execution_id}"
        yield FOLLOWED, execution.suggestion_id
        if (found := batch.issued.get(execution.suggestion_id)) is not None:
            yield KNOWLEDGE, tool_row(found[1].tool)


def _wanted_by_use(
    tool: ToolKey, version: str | None, scenario: str | None
) -> Iterator[tuple[RowKind[Any], str]]:
    yield STATISTICS, tool_row(tool)
    if scenario:
        yield DOCUMENT, trials.scenario_id(tool, version, scenario)
