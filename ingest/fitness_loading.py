"""What must be read from the store before a batch teaches how tools fare."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ingest.fitness import Call, Counted, FitnessMaterial
from ingest.health import HealthMaterial
from ingest.scenarios import DocumentKey, scenario_id
from mongo.protocol import LogStore
from mongo.records import DocumentRow, FailureRecord, StoredExecution, ToolKey
from retrieval.fitness.statistics import NO_VERSION, ToolStatistics
from retrieval.knowledge.documents import Document

_MAX_TOOLS = 1_000
_MAX_DOCUMENTS = 3_000
"""Scenario documents kept decoded between batches: at most 16 trials each, some 5 KiB."""


@dataclass(frozen=True, slots=True)
class FitnessAtHand:
    """What is known to equal the store's, kept decoded between batches; the most recent ones."""

    statistics: Mapping[ToolKey, ToolStatistics] = field(default_factory=dict)
    documents: Mapping[DocumentKey, Document] = field(default_factory=dict)

    def after(self, material: FitnessMaterial, removed: Iterable[DocumentKey]) -> "FitnessAtHand":
        """With what a batch that is committed learned."""
        documents = material.documents | dict(self.documents)
        for key in removed:
            documents.pop(key, None)
        statistics = material.statistics | dict(self.statistics)
        return FitnessAtHand(
            dict(islice(statistics.items(), _MAX_TOOLS)),
            dict(islice(documents.items(), _MAX_DOCUMENTS)),
        )

    def share(self) -> float:
        """How much of what may be kept it takes, 0 to 1."""
        return max(len(self.statistics) / _MAX_TOOLS, len(self.documents) / _MAX_DOCUMENTS)


async def load_marked(
    marks: Sequence[FailureRecord], store: LogStore
) -> dict[Call, StoredExecution]:
    """The executions that marks are about, where they were learned from."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for mark in marks:
        if mark.execution_id is not None:
            wanted[mark.tool.workspace].add(mark.execution_id)
    return {
        (stored.tool_key, stored.execution.execution_id): stored
        for workspace, ids in wanted.items()
        for stored in await store.get_executions(workspace, sorted(ids), learned=True)
    }


async def load_fitness(
    executions: list[StoredExecution],
    marks: list[FailureRecord],
    marked: Mapping[Call, StoredExecution],
    health: HealthMaterial,
    *,
    store: LogStore,
    at_hand: FitnessAtHand,
) -> FitnessMaterial:
    """Read what is known of the tools, calls and scenarios of a batch.

    Args:
        executions: the batch's, oldest first.
        marks: the batch's.
        marked: of `load_marked`.
        health: of the same batch, before it is learned into: its corrections and readings.
        store: where it is read from.
        at_hand: learned into in place.
    """
    corrections = health.corrections
    called = [*(e.tool_key for e in executions), *(c.stored.tool_key for c in corrections)]
    tools = dict.fromkeys([*called, *(m.tool for m in marks)])
    missing = [tool for tool in tools if tool not in at_hand.statistics]
    rows = await store.get_statistics(missing) if missing else []
    read = await asyncio.to_thread(
        lambda: {row.tool: ToolStatistics.model_validate_json(row.data) for row in rows}
    )
    statistics = {
        tool: at_hand.statistics.get(tool) or read.get(tool) or ToolStatistics() for tool in tools
    }
    calls = [*executions, *(each.stored for each in corrections)]
    touched = await asyncio.to_thread(_touched, calls, marks, statistics)
    return FitnessMaterial(
        executions=executions,
        marks=marks,
        statistics=statistics,
        documents=await _documents(touched, store, at_hand.documents),
        counted=await _counted(executions, marks, marked, health, store),
        corrections=corrections,
        readings=health.readings,
    )


async def _counted(
    executions: list[StoredExecution],
    marks: list[FailureRecord],
    marked: Mapping[Call, StoredExecution],
    health: HealthMaterial,
    store: LogStore,
) -> dict[Call, Counted]:
    """As what the batch's calls, and those that marks and corrections are about, were counted.

    What was corrected before is taken from the latest corrections that the tool's health remembers.
    """
    own = {(each.tool_key, each.execution.execution_id) for each in executions}
    corrected = [each.stored for each in health.corrections]
    called = dict(marked) | {
        (each.tool_key, each.execution.execution_id): each for each in corrected
    }
    counted = {
        call: Counted(
            stored.execution.tool_version or NO_VERSION,
            "failure" if _was_corrected(call, health) else stored.execution.outcome,
        )
        for call, stored in called.items()
        if call not in own
    }
    ids: dict[str, set[str]] = defaultdict(set)
    for each in [*executions, *corrected]:
        ids[each.workspace].add(each.execution.execution_id)
    for mark in marks:
        if mark.execution_id is not None:
            ids[mark.tool.workspace].add(mark.execution_id)
    for workspace, wanted in ids.items():
        for mark in await store.learned_marks(workspace, list(wanted)):
            version = mark.version or NO_VERSION
            counted[mark.tool, str(mark.execution_id)] = Counted(version, "failure")
    return counted


def _was_corrected(call: Call, health: HealthMaterial) -> bool:
    tool, execution_id = call
    known = health.health.get(tool)
    return known is not None and any(
        each.execution_id == execution_id for each in known.recent_corrections
    )


def _touched(
    executions: list[StoredExecution],
    marks: list[FailureRecord],
    statistics: Mapping[ToolKey, ToolStatistics],
) -> list[DocumentKey]:
    """The scenario documents that the tools have and the batch is about."""
    said = [
        *((e.tool_key, e.execution.tool_version, e.execution.context) for e in executions),
        *((mark.tool, mark.version, mark.scenario) for mark in marks),
    ]
    keys = {
        (tool, scenario_id(tool, version or NO_VERSION, scenario))
        for tool, version, scenario in said
        if scenario
    }
    return [(tool.workspace, key) for tool, key in keys if key in statistics[tool].scenarios]


async def _documents(
    touched: list[DocumentKey], store: LogStore, at_hand: Mapping[DocumentKey, Document]
) -> dict[DocumentKey, Document]:
    documents = {key: at_hand[key] for key in touched if key in at_hand}
    missing: dict[str, list[str]] = defaultdict(list)
    for workspace, document_id in touched:
        if (workspace, document_id) not in documents:
            missing[workspace].append(document_id)
    for workspace, ids in missing.items():
        rows = await store.get_documents(workspace, ids)
        documents |= await asyncio.to_thread(_decoded, rows)
    return documents


def _decoded(rows: list[DocumentRow]) -> dict[DocumentKey, Document]:
    return {
        (row.workspace, row.document_id): Document.model_validate_json(row.data) for row in rows
    }
