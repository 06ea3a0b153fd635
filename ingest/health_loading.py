"""What must be read from the store before a batch teaches the health of tools."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from ingest.health import HealthMaterial, TiedCorrection
from mongo.protocol import LogStore
from mongo.records import CorrectionRecord, StoredExecution, ToolKey
from retrieval.health.record import AxisBook, KnownHealth
from retrieval.knowledge.recovery import workspace_wide
from retrieval.reading.reader import ErrorReading

ExecutionKey: TypeAlias = tuple[str, str]
"""Workspace and execution id."""

_MAX_TOOLS = 250
"""Tools whose health is kept decoded: up to 200 kB each; reading one anew takes 1 ms, mostly less.
"""
_MAX_BOOKS = 20
"""Workspaces whose axes are kept decoded: up to a megabyte each, and few name axes at a time."""


@dataclass(frozen=True, slots=True)
class HealthAtHand:
    """What is known to equal the store's, kept decoded between batches; the most recent ones."""

    health: Mapping[ToolKey, KnownHealth] = field(default_factory=dict)
    books: Mapping[str, AxisBook] = field(default_factory=dict)

    def after(self, material: HealthMaterial) -> "HealthAtHand":
        """With what a batch that is committed learned."""
        return HealthAtHand(
            dict(islice((material.health | dict(self.health)).items(), _MAX_TOOLS)),
            dict(islice((material.books | dict(self.books)).items(), _MAX_BOOKS)),
        )

    def share(self) -> float:
        """How much of what may be kept it takes, 0 to 1."""
        return max(len(self.health) / _MAX_TOOLS, len(self.books) / _MAX_BOOKS)


@dataclass(frozen=True, slots=True)
class CorrectionsOfBatch:
    """What becomes of corrections with a batch: learned from and tied, or off the queue untied."""

    tied: list[TiedCorrection] = field(default_factory=list)
    untied: list[CorrectionRecord] = field(default_factory=list)

    def positions(self) -> list[tuple[int, ToolKey | None]]:
        """As `IndexCommit.corrections` has them."""
        return [
            *((each.correction.position, each.stored.tool_key) for each in self.tied),
            *((each.position, None) for each in self.untied),
        ]


async def load_corrected(
    corrections: Sequence[CorrectionRecord], store: LogStore
) -> dict[ExecutionKey, StoredExecution]:
    """The executions that corrections are about, where they were learned from."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for each in corrections:
        wanted[each.workspace].add(each.execution_id)
    return {
        (workspace, stored.execution.execution_id): stored
        for workspace, ids in wanted.items()
        for stored in await store.get_executions(workspace, sorted(ids), learned=True)
    }


async def tie_corrections(
    corrections: Sequence[CorrectionRecord],
    corrected: Mapping[ExecutionKey, StoredExecution],
    executions: Sequence[StoredExecution],
    store: LogStore,
) -> CorrectionsOfBatch:
    """Tell which corrections are learned from with this batch.

    A correction is learned from together with its execution, or after it, never before: whichever
    of the two comes to the indexer last brings both together, exactly once.

    Args:
        corrections: the batch's.
        corrected: of `load_corrected`.
        executions: the batch's.
        store: asked for earlier corrections of these executions.
    """
    # What is in no batch yet waits for its own one, and finds the correction untied.
    known = dict(corrected)
    ids: dict[str, list[str]] = defaultdict(list)
    for stored in executions:
        known[stored.workspace, stored.execution.execution_id] = stored
        ids[stored.workspace].append(stored.execution.execution_id)
    batch = CorrectionsOfBatch()
    earlier = [
        each
        for workspace, wanted in ids.items()
        for each in await store.untied_corrections(workspace, wanted)
    ]
    for each in [*earlier, *corrections]:
        found = known.get((each.workspace, each.execution_id))
        if found is None:
            batch.untied.append(each)
        else:
            batch.tied.append(TiedCorrection(each, found))
    return batch


async def load_health(
    executions: list[StoredExecution],
    corrections: list[TiedCorrection],
    readings: Mapping[int, ErrorReading],
    marked: Iterable[ToolKey] = (),
    *,
    store: LogStore,
    at_hand: HealthAtHand,
) -> HealthMaterial:
    """Read what is known of the health of the tools of a batch.

    Args:
        executions: the batch's.
        corrections: that are learned from with it.
        readings: of the batch's failures, by position.
        marked: further tools whose earlier corrections are asked about.
        store: where it is read from.
        at_hand: learned into in place.
    """
    corrected = (each.stored.tool_key for each in corrections)
    tools = dict.fromkeys([*(each.tool_key for each in executions), *corrected, *marked])
    missing = [tool for tool in tools if tool not in at_hand.health]
    workspaces = dict.fromkeys(_naming_axes(executions, corrections, readings))
    unread = [each for each in workspaces if each not in at_hand.books]
    wanted = [*missing, *(workspace_wide(each) for each in unread)]
    rows = await store.get_health(wanted) if wanted else []
    read = {row.tool: row.data for row in rows}
    # In a thread, for a thousand tools of which much is remembered take a second.
    health, books = await asyncio.to_thread(
        lambda: (
            {tool: at_hand.health.get(tool) or _health(read.get(tool)) for tool in tools},
            {
                each: at_hand.books.get(each) or _book(read.get(workspace_wide(each)))
                for each in workspaces
            },
        )
    )
    return HealthMaterial(executions, corrections, readings, health, books)


def _naming_axes(
    executions: Sequence[StoredExecution],
    corrections: Sequence[TiedCorrection],
    readings: Mapping[int, ErrorReading],
) -> list[str]:
    """Workspaces whose axes the batch may count."""
    referred = [
        each.workspace
        for each in executions
        if (reading := readings.get(each.position)) is not None
        and reading.category in ("wrong_tool_boundary", "low_utility")
    ]
    return [*referred, *(e.correction.workspace for e in corrections if e.correction.boundary_axes)]


def _health(data: bytes | None) -> KnownHealth:
    return KnownHealth() if data is None else KnownHealth.model_validate_json(data)


def _book(data: bytes | None) -> AxisBook:
    return AxisBook() if data is None else AxisBook.model_validate_json(data)
