"""One indexing batch: what must be loaded for it, and what is learned from it.

Loading is I/O; learning is pure and runs in a thread beside the event loop.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aftercall.models import Execution
from ingest.learner import (
    failure_document,
    learn_failure,
    learn_outcome,
    learn_recoveries,
    learn_repair,
    learn_success,
    merge_document,
    success_document,
)
from ingest.mining import Repair, mine
from mongo.protocol import LogStore
from mongo.records import (
    DocumentRow,
    IssuedSuggestion,
    KnowledgeRow,
    RepairRow,
    StoredExecution,
    SuggestionOutcome,
    ToolKey,
)
from retrieval.edits.kinds import Edit, edit_key, edits_of_key
from retrieval.knowledge.documents import Document, document_id, shape_of
from retrieval.knowledge.recovery import workspace_wide
from retrieval.knowledge.rules import UNNAMED_AGENT, ToolKnowledge
from retrieval.memory import Memory
from retrieval.reading.reader import ErrorReading, read_error

_SESSION_CALLS = 50
"""Calls of one tool in one session, learned before the batch's own, that mining looks back on."""

_LATE = 10_000
"""Positions by which what was learned may be ahead of a batch, where it is not known how far it is:
a store that several processes write to gives out positions before a record is there."""

log = logging.getLogger("aftercall.indexer")


@dataclass(slots=True)
class BatchMaterial:
    """All that learning from a batch needs. Knowledge is learned into in place."""

    executions: list[StoredExecution]
    outcomes: list[tuple[SuggestionOutcome, IssuedSuggestion]]
    reporters: dict[tuple[str, str], str]
    """Agents by workspace and execution id, of those outcomes whose execution is stored."""
    readings: dict[int, ErrorReading]
    knowledge: dict[ToolKey, ToolKnowledge]
    schema_hashes: dict[ToolKey, str | None]
    sessions: dict[tuple[ToolKey, str], list[StoredExecution]]
    documents: dict[tuple[str, str], Document]


@dataclass(slots=True)
class LearnedBatch:
    """What a batch taught, ready to be stored."""

    knowledge_rows: list[KnowledgeRow] = field(default_factory=list)
    document_rows: list[DocumentRow] = field(default_factory=list)
    repair_rows: list[RepairRow] = field(default_factory=list)
    reported: list[SuggestionOutcome] = field(default_factory=list)
    """Outcomes that executions of the batch report by their `suggestionId`."""


async def load_batch(
    executions: list[StoredExecution],
    outcomes: list[SuggestionOutcome],
    *,
    store: LogStore,
    memory: Memory,
    at_hand: Mapping[ToolKey, ToolKnowledge],
    learned_to: int | None = None,
) -> BatchMaterial:
    """Read what is known about the tools, sessions and documents of a batch.

    Args:
        executions: in the order of their positions.
        outcomes: of suggestions.
        store: is read.
        memory: has the registered tools.
        at_hand: knowledge that is known to equal the store's; it is learned into in place.
        learned_to: as `learned_to` said after the batch before; None where nobody knows.
    """
    issued = [(each, await _issued(store, each)) for each in outcomes]
    known_issued = [(outcome, suggestion) for outcome, suggestion in issued if suggestion]
    tools = {each.tool_key for each in executions} | {s.tool for _, s in known_issued}
    knowledge: dict[ToolKey, ToolKnowledge] = {}
    schema_hashes: dict[ToolKey, str | None] = {}
    for tool in tools:
        knowledge[tool] = at_hand.get(tool) or await _knowledge(tool, store)
        registered = await memory.tool(tool)
        schema_hashes[tool] = registered.tool.schema_hash if registered else None
    sessions = await _sessions(executions, store, learned_to)
    learning = {tool for tool, _ in sessions} | {issued.tool for _, issued in known_issued}
    for everywhere in {workspace_wide(tool.workspace) for tool in learning}:
        knowledge[everywhere] = at_hand.get(everywhere) or await _knowledge(everywhere, store)
    readings = await asyncio.to_thread(_read_all, executions)
    return BatchMaterial(
        executions=executions,
        outcomes=known_issued,
        reporters=await _reporters(outcomes, store),
        readings=readings,
        knowledge=knowledge,
        schema_hashes=schema_hashes,
        sessions=sessions,
        documents=await _documents(executions, readings, store),
    )


def learned_to(executions: Sequence[StoredExecution], before: int | None) -> int | None:
    """A position above which nothing was learned from, after these executions have been."""
    if not executions:
        return before
    last = executions[-1].position
    return last + _LATE if before is None else max(before, last)


def learn_batch(material: BatchMaterial) -> LearnedBatch:
    """Learn from every record of a batch. Pure, but for the log.

    A record that cannot be learned from is logged and passed over: it stays in the log store, and
    must not hold up those behind it.
    """
    learned = LearnedBatch()
    documents: dict[tuple[str, str], Document] = {}
    for stored in material.executions:
        try:
            document = _learn_one(material, stored)
        except Exception:
            log.exception("nothing was learned from execution %s", stored.execution.execution_id)
            continue
        if document is not None:
            key = (stored.workspace, document.document_id)
            known = documents.get(key) or material.documents.get(key)
            documents[key] = merge_document(known, document)
        if stored.execution.suggestion_id is not None:
            learned.reported.append(_reported(stored))
    learned.repair_rows.extend(_learn_repairs(material))
    for outcome, issued in material.outcomes:
        knowledge = material.knowledge[issued.tool]
        edits = edits_of_key(issued.edit_key)
        reporter = material.reporters.get((outcome.workspace, outcome.execution_id), UNNAMED_AGENT)
        everywhere = material.knowledge[workspace_wide(issued.tool.workspace)]
        learn_outcome(knowledge, issued.signature, edits, outcome.outcome, reporter, everywhere)
    learned.knowledge_rows = [
        KnowledgeRow(tool, knowledge.model_dump_json().encode())
        for tool, knowledge in material.knowledge.items()
        if tool != workspace_wide(tool.workspace) or knowledge.recoveries or knowledge.signatures
    ]
    learned.document_rows = [
        DocumentRow(*key, document.model_dump_json().encode(), key not in material.documents)
        for key, document in documents.items()
    ]
    return learned


def _learn_one(material: BatchMaterial, stored: StoredExecution) -> Document | None:
    tool, execution = stored.tool_key, stored.execution
    knowledge = material.knowledge[tool]
    schema_hash = stored.schema_hash or material.schema_hashes[tool]
    reading = material.readings.get(stored.position)
    if reading is None:
        learn_success(knowledge, execution, schema_hash)
        if not execution.parameters_known:
            return None  # the shape of a success is that of its parameters
        return success_document(stored.workspace, execution)
    learn_failure(knowledge, execution, reading, schema_hash)
    return failure_document(stored.workspace, execution, reading)


def _learn_repairs(material: BatchMaterial) -> Iterable[RepairRow]:
    """Repairs of which a half is in this batch, where all else was learned from before.

    So each is counted exactly once: with the half that is learned from last, whichever came first.
    """
    in_batch = {each.position for each in material.executions}
    for (tool, session), calls in material.sessions.items():
        stored = {each.execution.execution_id: each for each in calls}
        try:
            known = [each.execution for each in calls if each.execution.parameters_known]
            repairs = mine(known)
        except Exception:
            log.exception("no repairs were looked for in session %s of %s", session, tool)
            continue
        for repair in repairs:
            pair = (repair.failed.execution_id, repair.mended.execution_id)
            if any(stored[each].position in in_batch for each in pair):
                mended = stored[repair.mended.execution_id]
                schema_hash = mended.schema_hash or material.schema_hashes[tool]
                everywhere = material.knowledge[workspace_wide(tool.workspace)]
                learn_repair(material.knowledge[tool], repair, schema_hash, everywhere)
                if repair.edits is not None:
                    learn_recoveries(repair, material.knowledge[tool], everywhere)
                    yield _repair_row(tool, repair, repair.edits)


def _repair_row(tool: ToolKey, repair: Repair, edits: list[Edit]) -> RepairRow:
    return RepairRow(
        tool=tool,
        failed_id=repair.failed.execution_id,
        mended_id=repair.mended.execution_id,
        signature=repair.reading.signature,
        data=edit_key(edits).encode(),
    )


def _reported(stored: StoredExecution) -> SuggestionOutcome:
    execution = stored.execution
    return SuggestionOutcome(
        workspace=stored.workspace,
        suggestion_id=str(execution.suggestion_id),
        execution_id=execution.execution_id,
        outcome=execution.outcome,
    )


def _read_all(executions: list[StoredExecution]) -> dict[int, ErrorReading]:
    return {
        stored.position: read_error(stored.execution.error, stored.execution.parameters)
        for stored in executions
        if stored.execution.error is not None
    }


async def _knowledge(tool: ToolKey, store: LogStore) -> ToolKnowledge:
    row = await store.get_knowledge(tool)
    return ToolKnowledge.model_validate_json(row.data) if row else ToolKnowledge()


async def _sessions(
    executions: list[StoredExecution], store: LogStore, known_to: int | None
) -> dict[tuple[ToolKey, str], list[StoredExecution]]:
    """The batch's calls by tool and session, with the latest ones that were learned from.

    Those are before the batch, but for a batch with a late arrival. The batch brings its own,
    however many: in a backlog the store's latest are not yet ours.
    """
    own: dict[tuple[ToolKey, str], list[StoredExecution]] = defaultdict(list)
    for stored in executions:
        if stored.execution.session_id is not None:
            own[stored.tool_key, stored.execution.session_id].append(stored)
    if not own:
        return {}
    first = executions[0].position
    until = executions[-1].position + _LATE if known_to is None else known_to
    calls: dict[tuple[ToolKey, str], list[StoredExecution]] = defaultdict(list)
    for call in await store.session_calls(
        list(own), _SESSION_CALLS, max(first, until + 1), learned=True
    ):
        calls[call.tool_key, str(call.execution.session_id)].append(call)
    for key, seen in own.items():
        calls[key] = sorted([*calls[key], *seen], key=lambda call: call.position)
    return {
        key: seen
        for key, seen in calls.items()
        if len({call.execution.outcome for call in seen}) > 1
    }


async def _reporters(
    outcomes: list[SuggestionOutcome], store: LogStore
) -> dict[tuple[str, str], str]:
    """Who says what became of suggestions: the agents of the executions that followed them."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        wanted[outcome.workspace].add(outcome.execution_id)
    return {
        (workspace, stored.execution.execution_id): stored.execution.agent
        for workspace, ids in wanted.items()
        for stored in await store.get_executions(workspace, sorted(ids))
    }


async def _documents(
    executions: list[StoredExecution], readings: dict[int, ErrorReading], store: LogStore
) -> dict[tuple[str, str], Document]:
    ids: dict[str, set[str]] = defaultdict(set)
    for stored in executions:
        ids[stored.workspace].add(
            _document_id(stored.workspace, stored.execution, readings.get(stored.position))
        )
    return {
        (workspace, row.document_id): Document.model_validate_json(row.data)
        for workspace, wanted in ids.items()
        for row in await store.get_documents(workspace, sorted(wanted))
    }


def _document_id(workspace: str, execution: Execution, reading: ErrorReading | None) -> str:
    server, tool = execution.server_name, execution.tool_name
    if reading is None:
        return document_id(workspace, "success", server, tool, shape_of(execution.parameters))
    return document_id(workspace, "reflection", server, tool, reading.signature)


async def _issued(store: LogStore, outcome: SuggestionOutcome) -> IssuedSuggestion | None:
    return await store.get_suggestion(outcome.workspace, outcome.suggestion_id)
