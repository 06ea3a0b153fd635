"""The steps of the nightly job: patterns, calibration, axes, expiry.

All that a pattern counts is made again from the documents; what lasts is its id, its leader and who
belongs to it. Each tool's patterns are written at once, so a run that is killed and started again
ends with the same. Only the wordings of new documents are embedded.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest
from math import ceil

from ingest import fold
from ingest.axes import AxisClusterer
from ingest.batches import commit_events
from ingest.nightly import DAYS_LEFT, NightlyJob, Step, is_rebuilding
from ingest.pacing import BATCH
from ingest.workspace import WorkspaceCache
from mongo.contents import BETWEEN
from mongo.paging import all_rows
from mongo.records import Cursor, Removal, Row, ToolKey, decode_json, encode_json
from retrieval.knowledge.confidence import ENOUGH_OUTCOMES, Scaling
from retrieval.knowledge.fitting import refit_scaling
from retrieval.knowledge.memory import (
    CALIBRATION,
    CONSOLIDATED,
    DOCUMENT,
    JUDGED,
    PATTERN,
    STATISTICS,
)
from retrieval.knowledge.patterns.consolidation import (
    ConsolidatedPattern,
    Failure,
    Lesson,
    subjects_of,
)
from retrieval.knowledge.patterns.groups import MAX_FAILURES, group_failures, merge_group
from retrieval.knowledge.patterns.lessons import lesson_of_pattern
from retrieval.knowledge.rows.documents import Document, Kind
from retrieval.knowledge.rows.log import read_executions
from retrieval.knowledge.tool.causes import NO_CHANGES, find_place_changes
from retrieval.knowledge.tool.record import ToolRecord

log = logging.getLogger("aftercall.nightly")
_MOST_FAILURES = (1 << 29) - 1
_BEGINNING = 100
"""Bytes: a document states its id first (a UUID) and then its kind; most are not worth decoding."""


async def consolidate_patterns(job: NightlyJob) -> dict[str, int]:
    """Bring the patterns of every workspace up to its documents."""
    done = {"documents": 0, "embedded": 0, "patterns": 0, "removed": 0}
    for workspace in await job.knowledge.read_cursors():
        await _Consolidation(job, workspace, done).run()
        await job.commit(workspace, [Row(CONSOLIDATED, "", encode_json(job.clock()))])
    return done


class _Consolidation:
    def __init__(self, job: NightlyJob, workspace: str, done: dict[str, int]) -> None:
        self._job = job
        self._workspace = workspace
        self._done = done

    async def run(self) -> None:
        known: dict[ToolKey | None, list[Row]] = defaultdict(list)
        async for row in self._read_rows(PATTERN):
            known[row.tool].append(row)
        async for row in self._read_rows(STATISTICS.name):
            if row.tool is not None:
                await self._consolidate_tool(row.tool, known.pop(row.tool, []))
        await self._put_rows([], [row.key for rows in known.values() for row in rows])

    def _read_rows(self, kind: str, tool: ToolKey | None = None) -> AsyncIterator[Row]:
        return all_rows(self._job.knowledge, self._workspace, kind, tool=tool)

    async def _consolidate_tool(self, tool: ToolKey, before: list[Row]) -> None:
        lines = [
            row.data
            async for row in self._read_rows(DOCUMENT.name, tool)
            if is_of(row, "reflection")
        ]
        self._done["documents"] += len(lines)
        self._job.on_progress("patterns", self._done["documents"])
        if lines or before:
            await self._patterns_of_tool(tool, lines, before)

    async def _patterns_of_tool(
        self, tool: ToolKey, lines: Sequence[bytes], before: list[Row]
    ) -> None:
        record = ToolRecord(
            key=tool,
            tool=found.tool if (found := await self._job.memory.find_tool(tool)) else None,
            knowledge=await self._job.memory.read_knowledge(tool),
        )
        previous = [decode_json(ConsolidatedPattern, row.data) for row in before]
        failures = await asyncio.to_thread(_read_failures, lines, record)
        groups, embedded = await group_failures(tool, previous, failures, self._job.open_embedder)
        self._done["embedded"] += embedded

        def lesson_of(pattern: ConsolidatedPattern, members: Sequence[Failure]) -> Lesson:
            return lesson_of_pattern(pattern, members, record)

        patterns = [merge_group(each, lesson_of) for each in groups]
        types = await self._error_types(patterns)
        made = [
            _pattern_row(tool, each.model_copy(update={"error_type": types[each.pattern_id]}))
            for each in patterns
        ]
        unchanged = {row.key: replace(row, serial=0) for row in before}
        removed = unchanged.keys() - {row.key for row in made}
        changed = [row for row in made if unchanged.get(row.key) != row]
        self._done["patterns"] += len(made)
        await self._put_rows(changed, sorted(removed))

    async def _error_types(self, patterns: Sequence[ConsolidatedPattern]) -> dict[str, str]:
        """Return the type of the latest errors of each pattern; as before where none is left."""
        ids = [name for each in patterns for name in each.execution_ids]
        stored = await read_executions(self._job.store.events, self._workspace, ids)
        types = {
            each.execution.execution_id: each.execution.error.type
            for each in stored
            if each.execution.error is not None and each.execution.error.type
        }
        found = {}
        for pattern in patterns:
            given = [types[name] for name in reversed(pattern.execution_ids) if name in types]
            found[pattern.pattern_id] = max(given, key=given.count, default=pattern.error_type)
        return found

    async def _put_rows(self, rows: Sequence[Row], removed: Sequence[str]) -> None:
        if rows or removed:
            await self._job.commit(
                self._workspace, rows, [Removal(PATTERN, each) for each in removed]
            )
            self._done["removed"] += len(removed)


def _read_failures(lines: Iterable[bytes], record: ToolRecord) -> list[Failure]:
    documents = (decode_json(Document, line) for line in lines)
    frequent = nlargest(MAX_FAILURES, documents, key=lambda each: (each.count, each.document_id))
    knowledge = record.knowledge
    names = {
        name
        for profile in (knowledge.profiles.values() if knowledge is not None else ())
        for name in profile.parameters
    }
    found = []
    for each in frequent:
        signature = each.signature or ""
        known = knowledge.find_signature(signature) if knowledge is not None else None
        places = dict(known.faults) if known is not None else {}
        found.append(
            Failure(
                document_id=each.document_id,
                category=each.category or "unknown",
                signature=signature,
                count=each.count,
                last_seen=each.last_seen,
                agents=tuple(each.agents),
                execution_ids=tuple(each.execution_ids),
                places=places,
                subjects=tuple(subjects_of(signature, places, names)),
                first_seen=known.first_seen if known is not None else None,
                mended=known.mends if known is not None else 0,
                followed=sum(rule.successes for rule in known.rules.values()) if known else 0,
                changes=find_place_changes(known.examples) if known is not None else NO_CHANGES,
            )
        )
    return found


def _pattern_row(tool: ToolKey, pattern: ConsolidatedPattern) -> Row:
    """Ranked by failures, of equals the latest seen first."""
    seen = 0 if pattern.last_seen is None else max(0, int(pattern.last_seen.timestamp()))
    rank = (min(pattern.count, _MOST_FAILURES) << 34) + min(seen, (1 << 34) - 1)
    return Row(PATTERN, pattern.pattern_id, encode_json(pattern, sparse=True), tool, rank)


def is_of(row: Row, kind: Kind) -> bool:
    """Return whether a document is of this kind, read off its beginning."""
    return f'"kind":"{kind}"'.encode() in row.data[:_BEGINNING]


_LATEST = 20_000
"""Outcomes that calibration looks at; older ones speak of tools that have changed since."""
_ERASED_AT_ONCE = 2_000
"""Events in one deletion: a fraction of a second in which others wait."""


async def recalibrate_workspaces(job: NightlyJob) -> dict[str, int]:
    """Fit each workspace's scaling again; one that is worse on the newest outcomes is not taken."""
    changed = 0
    for workspace in await job.knowledge.read_cursors():
        rows = await job.knowledge.scan_rows(workspace, JUDGED.name, _LATEST, by="rank")
        judged = [each for row in rows if (each := JUDGED.decode_row(row)).estimate is not None]
        before = await job.memory.read_scaling(workspace)
        scaling = Scaling()
        if len(judged) >= ENOUGH_OUTCOMES:
            scaling = await asyncio.to_thread(
                refit_scaling,
                before,
                [each.estimate or 0.0 for each in judged],
                [each.outcome == "success" for each in judged],
                [each.agent and each.agent.partition(BETWEEN)[0] for each in judged],
            )
        if scaling.model_copy(update={"fitted_at": before.fitted_at}) == before:
            continue
        scaling = scaling.model_copy(update={"fitted_at": job.clock()})
        await job.commit(workspace, [Row(CALIBRATION, "", encode_json(scaling))])
        changed += 1
        log.info(
            "confidence of workspace %s is scaled by %.2f and shifted by %.2f, from %d outcomes",
            workspace, scaling.slope, scaling.shift, scaling.outcomes,
        )  # fmt: skip
    return {"workspaces": changed}


async def cluster_axes(job: NightlyJob) -> dict[str, int]:
    """Cluster the boundary axes of every workspace again."""
    books = [await job.memory.axis_book(each) for each in await job.knowledge.read_cursors()]
    if not any(book.axes for book in books):
        return {"workspaces": 0}
    job.check_lease()
    clusterer = AxisClusterer(
        knowledge=lambda: job.knowledge,
        memory=job.memory,
        embedder=await job.open_embedder(),
        clock=job.clock,
    )
    return {"workspaces": len(await clusterer.cluster_all())}


_AT_ONCE = timedelta(days=1)
_EXPIRED_UNTIL = "expired until"


async def expire_events(job: NightlyJob) -> dict[str, int]:
    """Fold events that are older than the retention into the base, and delete them a day later.

    The base never passes the cursor of the current generation. A kill in between repeats at most a
    batch that was not committed. A clock that is ahead for once costs a day's events and not all.
    A rebuild that runs began with the base as it was: what the base learns now is deleted later.
    """
    done = {"learned": 0, "events": 0}
    if job.retention is None:
        return done
    wanted = job.clock() - job.retention
    until = await _expired_until(job, wanted)
    edge = wanted if job.expire_all else min(wanted, until + _AT_ONCE)
    done[DAYS_LEFT] = ceil((wanted - edge) / _AT_ONCE)
    base, through = await job.store.open_generation(0), dict[str, int]()
    for workspace, cursor in (await job.knowledge.read_cursors()).items():
        known = (await base.read_cursors()).get(workspace, Cursor())
        position, cache = known.position, WorkspaceCache(workspace, known.serial)
        while True:
            job.check_lease()
            events = await job.store.events.read_after(workspace, position, BATCH)
            old = [e for e in events if e.received_at < edge and e.position <= cursor.position]
            if not old:
                break
            await commit_events(job.store.events, base, cache, old, position)
            position = old[-1].position
            done["learned"] += len(old)
            job.on_progress("expiry", done["learned"])
        through[workspace] = position
    if job.keeper is not None and await is_rebuilding(job.store, job.keeper.ttl):
        done[DAYS_LEFT] = max(1, done[DAYS_LEFT])
        return done
    if taught := [workspace for workspace, position in through.items() if position]:
        # A loss of power must not take what events taught that are in the log no more. All
        # workspaces are in one file, so one of them will do.
        await job.commit(taught[0], lasts=True)
    for workspace, position in through.items():
        while erased := await job.store.events.erase_events(
            workspace, position, edge - fold.MARGIN, _ERASED_AT_ONCE
        ):
            done["events"] += erased
            await asyncio.sleep(0)
    await job.store.metadata.put(_EXPIRED_UNTIL, max(edge, until).isoformat())
    return done


async def _expired_until(job: NightlyJob, wanted: datetime) -> datetime:
    """Return where the last run stopped; before the first one where the events begin."""
    if fact := await job.store.metadata.get(_EXPIRED_UNTIL):
        return datetime.fromisoformat(fact)
    events = job.store.events
    first = [await events.read_after(each, 0, 1) for each in await events.read_heads()]
    return min((event.received_at for [event] in filter(None, first)), default=wanted)


RESULTS: Mapping[str, Step] = {
    "patterns": consolidate_patterns, "calibration": recalibrate_workspaces, "axes": cluster_axes
}  # fmt: skip
"""The steps whose results a new generation needs before it is current."""
STEPS: Mapping[str, Step] = {**RESULTS, "expiry": expire_events}
