"""The step `patterns`: failures that say one thing become one pattern, tool by tool.

All that a pattern counts is made anew from the documents; what lasts is its id, its leader and who
belongs to it. Each tool's patterns are written at once, so a run that is killed and started again
ends with the same. Only the wordings of new documents are embedded.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush, nlargest

import numpy as np

from ingest.nightly.kinds import is_of
from ingest.nightly.night import Night
from ingest.nightly.spilling import SpilledByTool
from mongo.records import DocumentRow, PatternRow, ToolKey
from retrieval.knowledge.documents import Document
from retrieval.known_tools.common import ToolRecord
from retrieval.patterns import (
    MAX_FAILURES,
    Clustering,
    Failure,
    Pattern,
    Vector,
    decoded,
    encoded,
    lesson_of_pattern,
    merged,
    subjects_of,
)

MAX_PATTERNS = 20_000
"""Kept of a workspace, those of most failures: some 50 MB."""

_PAGE = 2_000
"""Documents read at a time."""

_EMBEDDED_AT_ONCE = 64

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def patterns_fact(workspace: str) -> str:
    """The name of the store's fact of when a workspace's patterns were consolidated."""
    return f"patterns:{workspace}"


async def consolidate(night: Night) -> dict[str, int]:
    """Bring the patterns of every workspace up to its documents.

    Raises:
        NightlyLostError, StoreError, EmbeddingError, OSError: what stopped it; run it again.
    """
    done = {"documents": 0, "embedded": 0, "patterns": 0, "removed": 0}
    for workspace in await night.store.workspaces():
        with SpilledByTool() as spilled:
            await _spill(night, workspace, spilled, done)
            await _Consolidating(night, workspace, done).run(spilled)
        await night.put_fact(patterns_fact(workspace), night.clock().isoformat())
    return done


async def _spill(
    night: Night, workspace: str, spilled: SpilledByTool, done: dict[str, int]
) -> None:
    after = ""
    while rows := await night.store.scan_documents(workspace, after, _PAGE):
        after = rows[-1].document_id
        await asyncio.to_thread(_spill_reflections, workspace, rows, spilled)
        done["documents"] += len(rows)
        night.on_progress("patterns", done["documents"])


def _spill_reflections(workspace: str, rows: Iterable[DocumentRow], spilled: SpilledByTool) -> None:
    for row in rows:
        if not is_of(row, "reflection"):
            continue
        document = Document.model_validate_json(row.data)
        if document.tool_name is not None and document.signature is not None:
            spilled.put(ToolKey(workspace, document.server_name, document.tool_name), row.data)


class _Consolidating:
    """One workspace, tool by tool."""

    def __init__(self, night: Night, workspace: str, done: dict[str, int]) -> None:
        self._night = night
        self._workspace = workspace
        self._done = done
        self._kept: list[tuple[int, str]] = []
        """Failures and ids of the patterns so far, the fewest first (a heap)."""

    async def run(self, spilled: SpilledByTool) -> None:
        rows = await self._night.store.list_patterns(self._workspace, MAX_PATTERNS + 1_000)
        known: dict[ToolKey, list[PatternRow]] = defaultdict(list)
        for row in rows:
            pattern = decoded(row.data)
            known[ToolKey(self._workspace, pattern.server_name, pattern.tool_name)].append(row)
        for tool, lines in spilled.tools(self._workspace):
            await self._tool(tool, lines, known.pop(tool, []))
        gone = [row.pattern_id for rows in known.values() for row in rows]
        await self._put([], gone)

    async def _tool(self, tool: ToolKey, lines: Sequence[bytes], before: list[PatternRow]) -> None:
        record = ToolRecord(
            key=tool,
            tool=found.tool if (found := await self._night.store.find_tool(tool)) else None,
            knowledge=await self._night.memory.knowledge(tool),
        )
        previous = [decoded(row.data) for row in before]
        failures = await asyncio.to_thread(_failures, lines, record)
        clustering = Clustering(tool, previous, failures)
        fingerprint, vectors = "", dict[str, Vector]()
        # Whose vectors are wanted does not depend on the model where no document is new.
        if clustering.has_choices:
            embedder = await self._night.embedder()
            fingerprint = embedder.fingerprint
            texts = clustering.texts(fingerprint)
            for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
                chunk = texts[start : start + _EMBEDDED_AT_ONCE]
                made = (await embedder.embed(chunk, "document")).astype(np.float32, copy=False)
                vectors.update(zip(chunk, made, strict=True))
            self._done["embedded"] += len(texts)

        def lesson_of(pattern: Pattern, members: Sequence[Failure]) -> str:
            said = [each.signature for each in members]
            return lesson_of_pattern(said, pattern.category, record)

        patterns = [merged(each, lesson_of) for each in clustering.close(vectors, fingerprint)]
        made_rows = [_row(self._workspace, pattern) for pattern in patterns]
        unchanged = {row.pattern_id: row for row in before}
        ids = {row.pattern_id for row in made_rows}
        removed = {row.pattern_id for row in before} - ids
        removed |= self._surplus(made_rows)
        changed = [
            row
            for row in made_rows
            if unchanged.get(row.pattern_id) != row and row.pattern_id not in removed
        ]
        self._done["patterns"] += len(made_rows)
        await self._put(changed, sorted(removed))

    def _surplus(self, rows: Iterable[PatternRow]) -> set[str]:
        """Patterns of the fewest failures that there is no room for, of this tool or another."""
        for row in rows:
            heappush(self._kept, (row.count, row.pattern_id))
        surplus = set()
        while len(self._kept) > MAX_PATTERNS:
            surplus.add(heappop(self._kept)[1])
        return surplus

    async def _put(self, rows: Sequence[PatternRow], removed: Sequence[str]) -> None:
        if rows or removed:
            await self._night.put_patterns(self._workspace, rows, removed)
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


def _row(workspace: str, pattern: Pattern) -> PatternRow:
    at = pattern.last_seen or _NEVER
    return PatternRow(workspace, pattern.pattern_id, encoded(pattern), at, pattern.count)
