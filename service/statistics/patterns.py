"""Patterns by what was met lately: which failures belong to which, and how they are told."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aftercall.models import FailurePattern
from aftercall.redaction import Redactor
from ingest.nightly.patterns import patterns_fact
from mongo.protocol import LogStore
from mongo.records import PatternRow, ToolKey
from retrieval.fitness.registry import UnknownNameError, named
from retrieval.memory import Memory
from retrieval.patterns import Pattern, decoded

MAX_PATTERNS = 5_000
"""Patterns that failures are looked for in, those of most failures. At a million executions there
are some 1,400 (`docs/figures/scale.md`)."""

_MAX_WORKSPACES = 20
"""Whose marks are kept: a few megabytes each at most."""

_AT_A_TIME = 50
"""Patterns that are read without a pause: some 2 ms."""


class UnknownPatternError(UnknownNameError):
    """No pattern has the id."""

    def __init__(self, pattern_id: str) -> None:
        super().__init__("pattern", pattern_id, (), "GET /patterns")


class Shares(NamedTuple):
    """Failures by pattern: within a window, and in the span before it where that is known."""

    failures: Mapping[str, int]
    before: Mapping[str, int] | None


class _Marks(NamedTuple):
    """Which pattern a failure belongs to, by its mark in hex; as of one consolidation."""

    consolidated_at: str
    pattern_ids: Mapping[str, str]


class KnownPatterns:
    """Finds patterns by the marks of their failures.

    Args:
        store: where patterns are.
        memory: knows registered tools.
        redactor: masks secrets before anything is answered.
    """

    def __init__(self, *, store: LogStore, memory: Memory, redactor: Redactor) -> None:
        self._store = store
        self._memory = memory
        self._redactor = redactor
        self._marks: OrderedDict[str, _Marks] = OrderedDict()

    async def shares(
        self, workspace: str, counts: Mapping[str, int], before: Mapping[str, int] | None
    ) -> Shares:
        """Failures that are counted by mark, by pattern; those of none are left out.

        Args:
            workspace: whose.
            counts: by mark (hex), within a window.
            before: the same of the span before it.

        Raises:
            StoreError: when the store cannot say.
        """
        of_marks = (await self._known(workspace)).pattern_ids
        return Shares(
            _by_pattern(counts, of_marks), None if before is None else _by_pattern(before, of_marks)
        )

    async def find(self, workspace: str, pattern_id: str) -> tuple[Pattern, FailurePattern]:
        """A pattern as it is stored, and as it is answered.

        Raises:
            UnknownPatternError: there is none of that id.
            StoreError: when the store cannot say.
        """
        rows = await self._store.get_patterns(workspace, [pattern_id])
        if not rows:
            raise UnknownPatternError(pattern_id)
        pattern = decoded(rows[0].data)
        [told] = await self._as_told(workspace, [pattern])
        return pattern, told

    async def told(self, workspace: str, pattern_ids: Sequence[str]) -> list[FailurePattern]:
        """Those of the patterns that are there, in the order of the ids, as they are answered.

        Raises:
            StoreError: when the store cannot say.
        """
        if not pattern_ids:
            return []
        rows = await self._store.get_patterns(workspace, pattern_ids)
        return await self._as_told(workspace, [decoded(each.data) for each in rows])

    async def _as_told(self, workspace: str, patterns: Sequence[Pattern]) -> list[FailurePattern]:
        ids = {each.tool_key: each.tool.tool_id for each in await self._memory.tools(workspace)}

        def made() -> list[FailurePattern]:
            found = []
            for each in patterns:
                tool = ToolKey(workspace, each.server_name, each.tool_name)
                found.append(told_pattern(each, tool, ids.get(tool), self._redactor))
            return found

        return await asyncio.to_thread(made)

    async def _known(self, workspace: str) -> _Marks:
        at = await self._store.get_fact(patterns_fact(workspace))
        if at is None:  # never consolidated: what is there is of a first run that is under way
            return _Marks("", {})
        kept = self._marks.get(workspace)
        if kept is None or kept.consolidated_at != at:
            rows = await self._store.list_patterns(workspace, MAX_PATTERNS)
            kept = _Marks(at, await asyncio.to_thread(_marks_of, rows))
            self._marks[workspace] = kept
            self._marks.move_to_end(workspace)
            if len(self._marks) > _MAX_WORKSPACES:
                self._marks.popitem(last=False)
        return kept


def _marks_of(rows: Sequence[PatternRow]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, row in enumerate(rows):
        pattern = decoded(row.data)
        found.update((mark.hex(), pattern.pattern_id) for mark in pattern.marks())
        if place % _AT_A_TIME == 0:
            time.sleep(0)  # the event loop must get the interpreter now and then
    return found


def _by_pattern(counts: Mapping[str, int], of_marks: Mapping[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for mark, count in counts.items():
        pattern_id = of_marks.get(mark)
        if pattern_id is not None:
            found[pattern_id] += count
    return found


def told_pattern(
    pattern: Pattern, tool: ToolKey, tool_id: str | None, redactor: Redactor
) -> FailurePattern:
    """A pattern as it is answered: without secrets, whenever it was learned."""
    wordings = [redactor.text(each) for each in pattern.signatures or [pattern.leader]]
    return FailurePattern(
        pattern_id=pattern.pattern_id,
        tool=named(tool, tool_id),
        category=pattern.category,
        signature=wordings[0],
        wordings=list(dict.fromkeys(wordings)),
        count=pattern.count,
        mended=pattern.mended,
        agents=pattern.agents,
        examples=pattern.execution_ids,
        lesson=redactor.text(pattern.lesson),
        first_seen=pattern.first_seen,
        last_seen=pattern.last_seen,
    )
