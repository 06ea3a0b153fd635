"""Failure patterns, as the latest nightly job left them, and how often each was met."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import Field

from aftercall.models import ErrorCategory, FailurePattern, FailurePatternList, WireModel
from aftercall.models.base import Name
from aftercall.redaction import Redactor
from mongo.records import Row, ToolKey, decoded
from retrieval.fitness.registry import UnknownNameError, named
from retrieval.memory import CONSOLIDATED, PATTERN
from retrieval.patterns import ConsolidatedPattern
from service.context import Context

MAX_PATTERNS = 5_000
"""Patterns that are looked through, those of most failures. At a million executions there are some
1,400 (`docs/figures/scale.md`)."""


class UnknownPatternError(UnknownNameError):
    """There is no pattern of that id."""

    def __init__(self, pattern_id: str) -> None:
        super().__init__("pattern", pattern_id, (), "GET /patterns")


class PatternsQuery(WireModel):
    """Which patterns are asked for."""

    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)

    def includes(self, pattern: ConsolidatedPattern) -> bool:
        """Whether a pattern is one of them."""
        return (
            self.tool_name in (None, pattern.tool_name)
            and self.server_name in (None, pattern.server_name)
            and self.category in (None, pattern.category)
        )


async def listed(context: Context, workspace: str, query: PatternsQuery) -> FailurePatternList:
    """Those that are asked for, most failures first."""
    is_filtered = (query.tool_name, query.server_name, query.category) != (None, None, None)
    rows = await _most(context, workspace, MAX_PATTERNS if is_filtered else query.limit)
    found = await asyncio.to_thread(_decoded, rows)
    asked = [each for each in found if query.includes(each)][: query.limit]
    return FailurePatternList(
        patterns=await shown(context, workspace, asked),
        consolidated_at=await consolidated_at(context, workspace),
    )


async def consolidated_at(context: Context, workspace: str) -> datetime | None:
    """When the latest nightly job did so; None before the first."""
    rows = await context.store.knowledge.get(workspace, CONSOLIDATED, [""])
    return decoded(datetime, rows[0].data) if rows else None


async def by_pattern(context: Context, workspace: str, marks: Mapping[str, int]) -> dict[str, int]:
    """Failures that are counted by mark (hex), by pattern; those of none are left out."""
    of_marks = await _of_marks(context, workspace)
    found = Counter[str]()
    for mark in marks.keys() & of_marks.keys():
        found[of_marks[mark]] += marks[mark]
    return found


async def stored_patterns(
    context: Context, workspace: str, pattern_ids: Sequence[str]
) -> list[ConsolidatedPattern]:
    """Those of the patterns that are there, in the order of the ids."""
    rows = await context.store.knowledge.get(workspace, PATTERN, pattern_ids)
    by_id = {row.key: decoded(ConsolidatedPattern, row.data) for row in rows}
    return [by_id[each] for each in pattern_ids if each in by_id]


async def shown(
    context: Context, workspace: str, patterns: Sequence[ConsolidatedPattern]
) -> list[FailurePattern]:
    """Patterns as they are answered."""
    registry = await context.memory.registry(workspace)

    def made() -> list[FailurePattern]:
        found = []
        for each in patterns:
            tool = ToolKey(workspace, each.server_name, each.tool_name)
            stored = registry.named(tool)
            tool_id = stored.tool.tool_id if stored else None
            found.append(_answered(each, tool, tool_id, context.redactor))
        return found

    return await asyncio.to_thread(made)


async def _most(context: Context, workspace: str, limit: int) -> list[Row]:
    return await context.store.knowledge.scan(workspace, PATTERN, limit, by="rank")


async def _of_marks(context: Context, workspace: str) -> Mapping[str, str]:
    """Which pattern a failure belongs to, by its mark in hex; as of one consolidation."""
    at = await consolidated_at(context, workspace)
    if at is None:  # what is there is of a first run that is under way
        return {}
    known = context.pattern_marks.get((workspace, at))
    if known is None:
        rows = await _most(context, workspace, MAX_PATTERNS)
        known = await asyncio.to_thread(_marks_of, rows)
        context.pattern_marks[workspace, at] = known
    return known


def _marks_of(rows: Sequence[Row]) -> dict[str, str]:
    return {mark.hex(): each.pattern_id for each in _decoded(rows) for mark in each.marks()}


def _decoded(rows: Sequence[Row]) -> list[ConsolidatedPattern]:
    return [decoded(ConsolidatedPattern, row.data) for row in rows]


def _answered(
    pattern: ConsolidatedPattern, tool: ToolKey, tool_id: str | None, redactor: Redactor
) -> FailurePattern:
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
        example=pattern.example,
        first_seen=pattern.first_seen,
        last_seen=pattern.last_seen,
    )
