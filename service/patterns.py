"""Failure patterns, as the latest nightly job left them, and how often each was met."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Name
from aftercall.redaction import Redactor
from aftercall.tables import sum_values
from mongo.contents import StoredPatternReview, hour_of, review_command
from mongo.records import ToolKey, decode_json
from retrieval.knowledge.memory import CONSOLIDATED, PATTERN, REPAIR, MendedFailure
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, mark_of
from retrieval.knowledge.patterns.lessons import title_of
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.documents import document_id
from retrieval.knowledge.rows.registry import UnknownNameError
from service.context import Context

MAX_PATTERNS = 5_000
"""Patterns that are looked through, those of most failures; `docs/figures/scale.md` has 1,400."""
MAX_REPAIRS = 2_000
"""The latest repairs that are looked at."""


class PatternsQuery(m.WireModel):
    """Which patterns are asked for."""

    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: m.ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)

    def includes(self, pattern: ConsolidatedPattern) -> bool:
        """Return whether a pattern is one of them."""
        return (
            self.tool_name in (None, pattern.tool_name)
            and self.server_name in (None, pattern.server_name)
            and self.category in (None, pattern.category)
        )


async def listed(context: Context, workspace: str, query: PatternsQuery) -> m.FailurePatternList:
    """Return those that are asked for, most failures first."""
    is_filtered = (query.tool_name, query.server_name, query.category) != (None, None, None)
    found = await _most(context, workspace, MAX_PATTERNS if is_filtered else query.limit)
    asked = [each for each in found if query.includes(each)][: query.limit]
    return m.FailurePatternList(
        patterns=await shown(context, workspace, asked),
        consolidated_at=await consolidated_at(context, workspace),
    )


async def consolidated_at(context: Context, workspace: str) -> datetime | None:
    """When the latest nightly job did so; None before the first."""
    rows = await context.store.knowledge.get(workspace, CONSOLIDATED, [""])
    return decode_json(datetime, rows[0].data) if rows else None


async def by_pattern(context: Context, workspace: str, marks: Mapping[str, int]) -> dict[str, int]:
    """Failures that are counted by mark (hex), by pattern; those of none are left out."""
    of_marks = await _of_marks(context, workspace)
    return sum_values((of_marks[mark], marks[mark]) for mark in marks.keys() & of_marks.keys())


async def stored_patterns(
    context: Context, workspace: str, pattern_ids: Sequence[str]
) -> list[ConsolidatedPattern]:
    """Return those of the patterns that are there, in the order of the ids."""
    rows = await context.store.knowledge.get(workspace, PATTERN, pattern_ids)
    by_id = {row.key: decode_json(ConsolidatedPattern, row.data) for row in rows}
    return [by_id[each] for each in pattern_ids if each in by_id]


async def stored_pattern(context: Context, workspace: str, pattern_id: str) -> ConsolidatedPattern:
    """Return the one of that id; an `UnknownNameError` where there is none."""
    for found in await stored_patterns(context, workspace, [pattern_id]):
        return found
    raise UnknownNameError(pattern_id, (), "pattern", "GET /patterns")


async def shown(
    context: Context, workspace: str, patterns: Sequence[ConsolidatedPattern]
) -> list[m.FailurePattern]:
    """Patterns as they are answered."""
    reviews = await reviews_of(context, workspace, patterns)
    keys = {ToolKey(workspace, each.server_name, each.tool_name) for each in patterns}
    registry = await context.memory.registry_of(workspace, keys)
    # Two servers may have a tool of one name; then the title states which.
    names = Counter(each.tool_name for each in keys | registry.shared_names)
    most = 1 if registry.is_whole else 0

    return await asyncio.to_thread(
        lambda: [
            _answered(
                each,
                registry.tool_name(ToolKey(workspace, each.server_name, each.tool_name)),
                reviews.get(each.pattern_id),
                context.redactor,
                f"{each.server_name}/" if each.server_name and names[each.tool_name] > most else "",
            )
            for each in patterns
        ]
    )


async def change_pattern(
    context: Context, workspace: str, pattern_id: str, change: m.PatternChange
) -> m.FailurePattern:
    """Say durably what is done about a pattern; an `UnknownNameError` where there is none."""
    found = [await stored_pattern(context, workspace, pattern_id)]
    now, reason = context.clock(), (change.reason or "").strip()
    hour = hour_of(now)
    review = StoredPatternReview(
        pattern_id=pattern_id,
        state=change.state,
        changed_at=now,
        counted=(await _since(context, workspace, found[0], hour))[hour],
        version=await _latest_version(context, workspace, found[0]),
        reason=context.redactor.text(reason) or None,
        changed_by=change.changed_by and context.redactor.text(change.changed_by),
    )
    event, state = review_command(review, context.caller.principal)
    await context.store.events.append(workspace, [event], [state])
    context.indexer.wake_learner()
    await context.note(workspace, f"pattern.{change.state}", pattern_id)
    [answered] = await shown(context, workspace, found)
    return answered


async def reviews_of(
    context: Context, workspace: str, patterns: Sequence[ConsolidatedPattern]
) -> dict[str, m.PatternReview]:
    """Return what was last stated of those of the patterns of which anything was."""
    by_id = {each.pattern_id: each for each in patterns}
    found = {}
    for row in await context.store.events.read_state(workspace, "pattern", list(by_id)):
        stored, pattern = decode_json(StoredPatternReview, row.data or b""), by_id[row.key]
        hour, is_back = hour_of(stored.changed_at), False
        if stored.state == "resolved":
            is_back = (await _since(context, workspace, pattern, hour)).total() > stored.counted
        found[row.key] = m.PatternReview(
            state=stored.state,
            reason=stored.reason,
            changed_by=stored.changed_by,
            changed_at=stored.changed_at,
            version=stored.version,
            reopened=is_back,
            version_now=await _latest_version(context, workspace, pattern),
        )
    return found


def state_of(review: m.PatternReview | None) -> m.PatternState:
    """Return what a pattern is now: open, unless something else was stated and still holds."""
    return review.state if review and not review.reopened else "open"


async def _since(
    context: Context, workspace: str, pattern: ConsolidatedPattern, hour: int
) -> Counter[int]:
    names = [f"{what.SIGNATURE}{mark.hex()}" for mark in pattern.member_marks()]
    found = await context.store.counters.sum_counters(
        workspace, names, since=hour, until=hour_of(context.clock()), by=["hour"]
    )
    return Counter({each.hour or 0: each.number for each in found})


async def _latest_version(
    context: Context, workspace: str, pattern: ConsolidatedPattern
) -> str | None:
    tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
    known = (await context.memory.read_statistics([tool])).get(tool)
    named = {name: each.last_seen for name, each in known.versions.items()} if known else {}
    seen = [(at, name) for name, at in named.items() if name and at is not None]
    return max(seen)[1] if seen else None


class PatternRepair(NamedTuple):
    """A repair of a tool's failure; its mark in hex, as counters have it."""

    mark: str
    mended: MendedFailure


async def latest_repairs(context: Context, workspace: str) -> list[PatternRepair]:
    """Return the latest repairs, newest first."""
    rows = await context.store.knowledge.scan_rows(workspace, REPAIR.name, MAX_REPAIRS, by="rank")
    return [
        PatternRepair(
            mark_of(document_id(workspace, "reflection", *tool[1:], mended.signature)).hex(), mended
        )
        for tool, mended in ((row.tool, REPAIR.decode_row(row)) for row in rows)
        if tool is not None
    ]


async def _most(context: Context, workspace: str, limit: int) -> list[ConsolidatedPattern]:
    rows = await context.store.knowledge.scan_rows(workspace, PATTERN, limit, by="rank")
    return await asyncio.to_thread(lambda: [decode_json(ConsolidatedPattern, e.data) for e in rows])


async def _of_marks(context: Context, workspace: str) -> Mapping[str, str]:
    """Return which pattern a failure belongs to, by its mark in hex; as of one consolidation."""
    at = await consolidated_at(context, workspace)
    if at is None:  # what is there is of a first run that is under way
        return {}
    if (known := context.pattern_marks.get((workspace, at))) is None:
        found = await _most(context, workspace, MAX_PATTERNS)
        known = {mark.hex(): each.pattern_id for each in found for mark in each.member_marks()}
        context.pattern_marks[workspace, at] = known
    return known


def _answered(
    pattern: ConsolidatedPattern,
    tool: m.ToolName,
    review: m.PatternReview | None,
    redactor: Redactor,
    before: str = "",
) -> m.FailurePattern:
    wordings = [redactor.text(each) for each in pattern.signatures or [pattern.leader]]
    return m.FailurePattern(
        pattern_id=pattern.pattern_id,
        tool=tool,
        title=redactor.text(f"{before}{title_of(pattern)}"),
        state=state_of(review),
        review=review,
        category=pattern.category,
        signature=wordings[0],
        wordings=list(dict.fromkeys(wordings)),
        count=pattern.count,
        mended=pattern.mended + pattern.followed,
        mended_by_suggestion=pattern.followed,
        error_type=redactor.text(pattern.error_type) or pattern.category,
        common_mistake=redactor.text(pattern.mistake),
        correction=redactor.text(pattern.correction),
        frequency=pattern.count,
        agents_affected=pattern.agents,
        agents=pattern.agents,
        examples=pattern.execution_ids,
        lesson=redactor.text(pattern.lesson),
        example=pattern.example,
        first_seen=pattern.first_seen,
        last_seen=pattern.last_seen,
    )
