"""Failure patterns, as the latest nightly job made them, and how often each was met."""

import asyncio
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from cachetools import LRUCache
from fastapi import APIRouter, Path, Query
from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Name
from aftercall.redaction import Redactor
from aftercall.tables import sum_values
from mongo.contents import StoredPatternReview, hour_of, review_command
from mongo.records import ToolKey, decode_json
from retrieval.knowledge.memory import CONSOLIDATED, PATTERN, REPAIR, MendedFailure
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, cost_of, mark_of
from retrieval.knowledge.patterns.lessons import title_of
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.documents import document_id
from retrieval.knowledge.rows.registry import UnknownNameError
from service.context import Space
from service.requests import NO_QUERY, Admin, JsonRoute, ListQuery, Read, WindowQuery
from service.windows import CALL_COUNTERS, WindowHours, rank_counts, read_window

router = APIRouter(tags=["statistics"], route_class=JsonRoute)
MAX_PATTERNS = 5_000
"""Patterns that are looked through, those of most failures; `docs/figures/scale.md` has 1,400."""
MAX_REPAIRS = 2_000
"""The latest repairs that are looked at."""
MAX_COSTS = 500
"""Patterns that are weighed, those of most failures."""
PatternId = Annotated[Name, Path(alias="patternId", description="From `GET /patterns`.")]


class PatternsQuery(m.WireModel):
    """Which patterns are wanted."""

    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: m.ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)

    def includes_pattern(self, pattern: ConsolidatedPattern) -> bool:
        """Return whether the query includes a pattern."""
        return (
            self.tool_name in (None, pattern.tool_name)
            and self.server_name in (None, pattern.server_name)
            and self.category in (None, pattern.category)
        )


class _Marks(LRUCache[Hashable, Mapping[str, str]]):
    """Pattern ids by the marks of failures, for a workspace and a consolidation: some MB each."""

    def __init__(self) -> None:
        super().__init__(maxsize=20)


@router.get("/patterns", summary="Ways in which tools fail, with what helps", name="patterns")
async def list_patterns(
    space: Read, query: Annotated[PatternsQuery, Query()]
) -> m.FailurePatternList:
    """Return failure patterns, most failures first.

    The nightly run makes them, so that failures of today appear tomorrow. Failures of one tool with
    one meaning are one pattern, whatever their wording. A pattern keeps its id as long as any part
    of it exists. Words of tools are quoted as data.
    """
    is_filtered = (query.tool_name, query.server_name, query.category) != (None, None, None)
    found = await _read_patterns(space, MAX_PATTERNS if is_filtered else query.limit)
    asked = [each for each in found if query.includes_pattern(each)][: query.limit]
    return m.FailurePatternList(
        patterns=await show_patterns(space, asked),
        consolidated_at=await read_consolidated_at(space),
    )


@router.get(
    "/stats/patterns", summary="Failure patterns by what was met lately", name="pattern_statistics"
)
async def read_pattern_statistics(space: Read, query: ListQuery) -> m.PatternStatistics:
    """Return the failures of patterns in the window, most failures first.

    The list is empty before the first nightly run, which makes patterns. Failures without a pattern
    are counted together. Words of tools are quoted as data.
    """
    span, about = await read_window(space, query.window)
    most, failures, earlier = await _count_met(span, query.limit)
    found = [
        m.PatternFailures(
            pattern=each,
            failures=failures[each.pattern_id],
            before=None if earlier is None else earlier.get(each.pattern_id, 0),
        )
        for each in await show_patterns(space, most)
    ]
    total = (await span.by_name(*CALL_COUNTERS))[what.FAILURE]
    other = max(0, total - sum(each.failures for each in found))
    return m.PatternStatistics(**about, patterns=found, other_failures=other)


@router.get("/stats/fix-first", summary="What costs most tasks now", name="fix_first")
async def rank_patterns(space: Read, query: ListQuery) -> m.FixFirst:
    """Return open patterns by the failures without a repair, weighed by the trend.

    Patterns are made by the nightly run, so that failures of today appear tomorrow.
    """
    # Agents repaired as many as the latest 2,000 repairs show, but at least the pattern's share
    # of all times: a repair that no edit describes is only counted.
    span, about = await read_window(space, query.window)
    met, failures, earlier = await _count_met(span, MAX_COSTS)
    reviews = await _read_reviews(space, met)
    marks: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for each in await list_latest_repairs(space):
        if about["since"] <= each.mended.failed_at <= about["until"]:
            marks[each.mended.followed_suggestion][each.mark] += 1
    by_suggestion = await count_by_pattern(space, marks[True])
    by_agents = await count_by_pattern(space, marks[False])
    costs: dict[str, dict[str, Any]] = {}
    left: Counter[str] = Counter()
    for one in met:
        name = one.pattern_id
        state = _pattern_state(reviews.get(name))
        if state != "open":
            left[state] += 1
            continue
        failed = failures[name]
        before = None if earlier is None else earlier.get(name, 0)
        helped = min(failed, by_suggestion.get(name, 0))
        share = one.mended / max(1, one.count)
        expected = round(failed * share)
        seen = max(by_agents.get(name, 0), expected)
        alone = min(failed - helped, seen)
        unmended = failed - helped - alone
        costs[name] = {
            "failures": failed,
            "before": before,
            "mended_by_suggestion": helped,
            "mended_by_agents": alone,
            "unmended": unmended,
            "cost": cost_of(unmended, failed, before),
        }

    def sort_key(pattern: ConsolidatedPattern) -> tuple[float, int, str]:
        cost = costs[pattern.pattern_id]
        return -cost["cost"], -cost["failures"], pattern.pattern_id

    open_ones = [each for each in met if each.pattern_id in costs]
    ranked = sorted(open_ones, key=sort_key)
    first = await show_patterns(space, ranked[: query.limit])
    return m.FixFirst(
        **about,
        patterns=[m.PatternCost(pattern=each, **costs[each.pattern_id]) for each in first],
        ignored=left["ignored"],
        resolved=left["resolved"],
    )


@router.put(
    "/patterns/{patternId}",
    summary="Say what is done about a failure pattern",
    dependencies=[NO_QUERY],
)
async def change_pattern(
    space: Admin, pattern_id: PatternId, change: m.PatternChange
) -> m.FailurePattern:
    """Note what is done about a pattern; ignored and resolved ones are not ranked any more.

    A resolved pattern opens again (`review.reopened`) when it is met later than that.

    Raises:
        UnknownNameError: there is no pattern of that id.
    """
    context, workspace = space
    found = [await find_pattern(space, pattern_id)]
    now, reason = context.clock(), (change.reason or "").strip()
    hour = hour_of(now)
    review = StoredPatternReview(
        pattern_id=pattern_id,
        state=change.state,
        changed_at=now,
        counted=(await _count_since(space, found[0], hour))[hour],
        version=await _latest_version(space, found[0]),
        reason=context.redactor.text(reason) or None,
        changed_by=change.changed_by and context.redactor.text(change.changed_by),
    )
    event, state = review_command(review, context.caller.principal)
    await context.store.events.append(workspace, [event], [state])
    context.indexer.wake_learner()
    await context.note_action(workspace, f"pattern.{change.state}", pattern_id)
    [answered] = await show_patterns(space, found)
    return answered


@router.get(
    "/stats/patterns/{patternId}",
    summary="How often a failure pattern was met over time",
    name="pattern_history",
)
async def read_pattern_history(
    space: Read, pattern_id: PatternId, query: WindowQuery
) -> m.PatternHistory:
    """Return how often a pattern was met, step by step up to now, also where it was not met.

    Ids are those of `GET /patterns`; they last.

    Raises:
        UnknownNameError: there is no pattern of that id.
    """
    stored = await find_pattern(space, pattern_id)
    [answered] = await show_patterns(space, [stored])
    span, about = await read_window(space, query.window)
    points = await span.read_points(
        [f"{what.SIGNATURE}{mark.hex()}" for mark in stored.member_marks()]
    )
    return m.PatternHistory(
        **about,
        pattern=answered,
        points=[m.FailurePoint(at=at, failures=point.total()) for at, point in points],
    )


async def _count_met(
    span: WindowHours, limit: int
) -> tuple[list[ConsolidatedPattern], dict[str, int], dict[str, int] | None]:
    """Return the patterns met most, with all failures in the window and in the span before."""
    space, before = span.space, await span.known_before()

    if await read_consolidated_at(space) is None:
        return [], {}, None if before is None else {}

    async def count_span(span: WindowHours) -> dict[str, int]:
        return await count_by_pattern(space, await span.by_name(prefix=what.SIGNATURE))

    failures, earlier = await count_span(span), await count_span(before) if before else None
    names = [name for name, _ in rank_counts(failures)][:limit]
    return await find_patterns(space, names), failures, earlier


async def read_consolidated_at(space: Space) -> datetime | None:
    """Return when the latest nightly job made patterns; None before the first job."""
    context, workspace = space
    rows = await context.store.knowledge.get(workspace, CONSOLIDATED, [""])
    return decode_json(datetime, rows[0].data) if rows else None


async def count_by_pattern(space: Space, marks: Mapping[str, int]) -> dict[str, int]:
    """Return failures by pattern, from failures by mark (hex); other marks are left out."""
    of_marks = await _read_marks(space)
    return sum_values((of_marks[mark], marks[mark]) for mark in marks.keys() & of_marks.keys())


async def find_patterns(space: Space, pattern_ids: Sequence[str]) -> list[ConsolidatedPattern]:
    """Return the existing ones of these patterns, in the order of the ids."""
    context, workspace = space
    rows = await context.store.knowledge.get(workspace, PATTERN, pattern_ids)
    by_id = {row.key: decode_json(ConsolidatedPattern, row.data) for row in rows}
    return [by_id[each] for each in pattern_ids if each in by_id]


async def find_pattern(space: Space, pattern_id: str) -> ConsolidatedPattern:
    """Return the pattern of an id.

    Raises:
        UnknownNameError: there is no such pattern.
    """
    for found in await find_patterns(space, [pattern_id]):
        return found
    raise UnknownNameError(pattern_id, (), "pattern", "GET /patterns")


async def show_patterns(
    space: Space, patterns: Sequence[ConsolidatedPattern]
) -> list[m.FailurePattern]:
    """Return patterns in the form of the wire, with secrets masked."""
    context, workspace = space
    reviews = await _read_reviews(space, patterns)
    keys = {ToolKey(workspace, each.server_name, each.tool_name) for each in patterns}
    registry = await context.memory.read_registry_of(workspace, keys)
    # If two servers have a tool of one name, the title names the server.
    names = Counter(each.tool_name for each in keys | registry.shared_names)
    most = 1 if registry.is_whole else 0

    return await asyncio.to_thread(
        lambda: [
            _make_answer(
                each,
                registry.tool_name(ToolKey(workspace, each.server_name, each.tool_name)),
                reviews.get(each.pattern_id),
                context.redactor,
                f"{each.server_name}/" if each.server_name and names[each.tool_name] > most else "",
            )
            for each in patterns
        ]
    )


async def _read_reviews(
    space: Space, patterns: Sequence[ConsolidatedPattern]
) -> dict[str, m.PatternReview]:
    """Return the latest review of each pattern that has one, by pattern id."""
    context, workspace = space
    by_id = {each.pattern_id: each for each in patterns}
    found = {}
    for row in await context.store.events.read_state(workspace, "pattern", list(by_id)):
        stored, pattern = decode_json(StoredPatternReview, row.data or b""), by_id[row.key]
        hour, is_back = hour_of(stored.changed_at), False
        if stored.state == "resolved":
            is_back = (await _count_since(space, pattern, hour)).total() > stored.counted
        found[row.key] = m.PatternReview(
            state=stored.state,
            reason=stored.reason,
            changed_by=stored.changed_by,
            changed_at=stored.changed_at,
            version=stored.version,
            reopened=is_back,
            version_now=await _latest_version(space, pattern),
        )
    return found


def _pattern_state(review: m.PatternReview | None) -> m.PatternState:
    """Return the state of a pattern: open, unless a review holds."""
    return review.state if review and not review.reopened else "open"


async def _count_since(space: Space, pattern: ConsolidatedPattern, hour: int) -> Counter[int]:
    context, workspace = space
    names = [f"{what.SIGNATURE}{mark.hex()}" for mark in pattern.member_marks()]
    found = await context.store.counters.sum_counters(
        workspace, names, since=hour, until=hour_of(context.clock()), by=["hour"]
    )
    return Counter({each.hour or 0: each.number for each in found})


async def _latest_version(space: Space, pattern: ConsolidatedPattern) -> str | None:
    context, workspace = space
    tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
    known = (await context.memory.read_statistics([tool])).get(tool)
    named = {name: each.last_seen for name, each in known.versions.items()} if known else {}
    seen = [(at, name) for name, at in named.items() if name and at is not None]
    return max(seen)[1] if seen else None


class PatternRepair(NamedTuple):
    """A repair of a tool's failure; its mark in hex, as counters have it."""

    mark: str
    mended: MendedFailure


async def list_latest_repairs(space: Space) -> list[PatternRepair]:
    """Return the latest repairs, newest first."""
    context, workspace = space
    rows = await context.store.knowledge.scan_rows(workspace, REPAIR.name, MAX_REPAIRS, by="rank")
    return [
        PatternRepair(
            mark_of(document_id(workspace, "reflection", *tool[1:], mended.signature)).hex(), mended
        )
        for tool, mended in ((row.tool, REPAIR.decode_row(row)) for row in rows)
        if tool is not None
    ]


async def _read_patterns(space: Space, limit: int) -> list[ConsolidatedPattern]:
    context, workspace = space
    rows = await context.store.knowledge.scan_rows(workspace, PATTERN, limit, by="rank")
    return await asyncio.to_thread(lambda: [decode_json(ConsolidatedPattern, e.data) for e in rows])


async def _read_marks(space: Space) -> Mapping[str, str]:
    """Return pattern ids by mark in hex, as of one consolidation."""
    context, workspace = space
    at = await read_consolidated_at(space)
    if at is None:  # the first run is still under way
        return {}
    kept = context.caches.get_cache(_Marks)
    if (known := kept.get((workspace, at))) is None:
        found = await _read_patterns(space, MAX_PATTERNS)
        known = {mark.hex(): each.pattern_id for each in found for mark in each.member_marks()}
        kept[workspace, at] = known
    return known


def _make_answer(
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
        state=_pattern_state(review),
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
