"""The step `patterns`: failures that say one thing become one pattern, tool by tool.

All that a pattern counts is made anew from the documents; what lasts is its id, its leader and who
belongs to it. Each tool's patterns are written at once, so a run that is killed and started again
ends with the same. Only the wordings of new documents are embedded.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush, nlargest

import numpy as np

from ingest.nightly.job import NightlyJob
from mongo.records import Removal, Row, ToolKey, encoded
from retrieval.index.protocol import Kind
from retrieval.knowledge.documents import Document
from retrieval.known_tools.common import ToolRecord
from retrieval.memory import CONSOLIDATED, DOCUMENT, PATTERN, STATISTICS
from retrieval.patterns import (
    MAX_FAILURES,
    Clustering,
    ConsolidatedPattern,
    Failure,
    Vector,
    decoded,
    lesson_of_pattern,
    merged,
    subjects_of,
)
from retrieval.patterns import encoded as encoded_pattern

MAX_PATTERNS = 20_000
"""Kept of a workspace, those of most failures: some 50 MB."""

_EMBEDDED_AT_ONCE = 64

_MOST_FAILURES = (1 << 29) - 1
_BEGINNING = 100
"""Bytes: a document says its id first (a UUID) and then its kind; most are not worth decoding."""


async def consolidate(job: NightlyJob) -> dict[str, int]:
    """Bring the patterns of every workspace up to its documents.

    Raises:
        NightlyLostError, StoreError, EmbeddingError: what stopped it; run it again.
    """
    done = {"documents": 0, "embedded": 0, "patterns": 0, "removed": 0}
    for workspace in await job.knowledge.cursors():
        await _Consolidation(job, workspace, done).run()
        at = Row(CONSOLIDATED, "", encoded(job.clock()))
        await job.commit(workspace, [at])
    return done


class _Consolidation:
    """One workspace, tool by tool."""

    def __init__(self, job: NightlyJob, workspace: str, done: dict[str, int]) -> None:
        self._job = job
        self._workspace = workspace
        self._done = done
        self._kept: list[tuple[int, str]] = []
        """Failures and ids of the patterns so far, the fewest first (a heap)."""

    async def run(self) -> None:
        known: dict[ToolKey | None, list[Row]] = defaultdict(list)
        async for row in self._job.rows(self._workspace, PATTERN):
            known[row.tool].append(row)
        async for row in self._job.rows(self._workspace, STATISTICS.name):
            if row.tool is not None:
                await self._consolidate(row.tool, known.pop(row.tool, []))
        gone = [row.key for rows in known.values() for row in rows]
        await self._put([], gone)

    async def _consolidate(self, tool: ToolKey, before: list[Row]) -> None:
        lines = [
            row.data
            async for row in self._job.rows(self._workspace, DOCUMENT.name, tool=tool)
            if is_of(row, "reflection")
        ]
        self._done["documents"] += len(lines)
        self._job.on_progress("patterns", self._done["documents"])
        if lines or before:
            await self._tool(tool, lines, before)

    async def _tool(self, tool: ToolKey, lines: Sequence[bytes], before: list[Row]) -> None:
        record = ToolRecord(
            key=tool,
            tool=found.tool if (found := await self._job.memory.tool(tool)) else None,
            knowledge=await self._job.memory.knowledge(tool),
        )
        previous = [decoded(row.data) for row in before]
        failures = await asyncio.to_thread(_failures, lines, record)
        clustering = Clustering(tool, previous, failures)
        fingerprint, vectors = "", dict[str, Vector]()
        # Whose vectors are wanted does not depend on the model where no document is new.
        if clustering.has_choices:
            embedder = await self._job.embedder()
            fingerprint = embedder.fingerprint
            texts = clustering.texts(fingerprint)
            for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
                chunk = texts[start : start + _EMBEDDED_AT_ONCE]
                array = (await embedder.embed(chunk, "document")).astype(np.float32, copy=False)
                vectors.update(zip(chunk, array, strict=True))
            self._done["embedded"] += len(texts)

        def lesson_of(pattern: ConsolidatedPattern, members: Sequence[Failure]) -> str:
            said = [each.signature for each in members]
            return lesson_of_pattern(said, pattern.category, record)

        patterns = [merged(each, lesson_of) for each in clustering.close(vectors, fingerprint)]
        made = [_row(tool, pattern) for pattern in patterns]
        unchanged = {row.key: replace(row, serial=0) for row in before}
        removed = unchanged.keys() - {row.key for row in made}
        removed |= self._surplus(made)
        changed = [row for row in made if unchanged.get(row.key) != row and row.key not in removed]
        self._done["patterns"] += len(made)
        await self._put(changed, sorted(removed))

    def _surplus(self, rows: Iterable[Row]) -> set[str]:
        """Patterns of the fewest failures that there is no room for, of this tool or another."""
        for row in rows:
            heappush(self._kept, (row.rank, row.key))
        surplus = set()
        while len(self._kept) > MAX_PATTERNS:
            surplus.add(heappop(self._kept)[1])
        return surplus

    async def _put(self, rows: Sequence[Row], removed: Sequence[str]) -> None:
        if rows or removed:
            await self._job.commit(
                self._workspace, rows, [Removal(PATTERN, each) for each in removed]
            )
            self._done["removed"] += len(removed)


def _failures(lines: Iterable[bytes], record: ToolRecord) -> list[Failure]:
    documents = (Document.model_validate_json(line) for line in lines)
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
        known = knowledge.signature(signature) if knowledge is not None else None
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
            )
        )
    return found


def _row(tool: ToolKey, pattern: ConsolidatedPattern) -> Row:
    """Ranked by failures, of equals the latest seen first."""
    seen = 0 if pattern.last_seen is None else max(0, int(pattern.last_seen.timestamp()))
    rank = (min(pattern.count, _MOST_FAILURES) << 34) + min(seen, (1 << 34) - 1)
    return Row(PATTERN, pattern.pattern_id, encoded_pattern(pattern), tool, rank)


def is_of(row: Row, kind: Kind) -> bool:
    """Whether a document is of this kind, read off its beginning."""
    return f'"kind":"{kind}"'.encode() in row.data[:_BEGINNING]
