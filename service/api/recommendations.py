"""Recommendations: made from the evidence when someone asks, kept when someone acts on them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Id, Name
from mongo.contents import StoredRecommendation, review_command
from mongo.records import ToolKey, decode_json
from retrieval.answers.fitness.promotions import pair_of, status_of
from retrieval.answers.recommendations import queue
from retrieval.answers.recommendations.evidence import Quotes
from retrieval.answers.recommendations.kinds import review_of
from retrieval.knowledge.rows.health import KnownHealth
from retrieval.knowledge.rows.log import troubled_tools
from retrieval.knowledge.rows.registry import (
    Registry,
    UnknownNameError,
    UnknownToolError,
    possible_tools,
)
from service.api.tools import find_called_tools
from service.context import Space
from service.errors import InvalidChangeError
from service.requests import NO_QUERY, Admin, JsonRoute, Read

router = APIRouter(tags=["boundaries"], route_class=JsonRoute)
MAX_TOOLS = 500
"""Tools that are looked at, the latest troubled first: 20 MB, for a row is 40 kB at most. One with
as much evidence as a row can hold takes some 2 ms."""
RecommendationStates = Literal["open", "taken", "done", "dismissed", "all"]
_STILL_TO_DO: frozenset[m.RecommendationState] = frozenset({"open", "taken"})
RecommendationId = Annotated[
    Id, Path(alias="recommendationId", description="A UUID, from `GET /recommendations`.")
]


class RecommendationQuery(m.WireModel):
    """Which recommendations are wanted."""

    state: RecommendationStates | None = Field(
        default=None, description="Only those in that state; open and taken ones when left out."
    )
    tool_id: Name | None = Field(
        default=None,
        description="Only those about a tool (its id, or the name of its calls) or a namespace.",
    )
    kind: m.RecommendationKind | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)


@router.get("/recommendations", summary="What the evidence suggests to tool builders")
async def list_recommendations(
    space: Read, query: Annotated[RecommendationQuery, Query()]
) -> m.RecommendationList:
    """Return recommendations, greatest priority first.

    The service reports and changes nothing automatically. Recommendations are made from the
    evidence for each request: open ones appear and disappear with it. Words of tools and users are
    quoted as data.
    """
    context = space.context
    found = await _list_all(space)
    if query.tool_id is not None:
        found = await _filter_by_tool(space, query.tool_id, found)
    states = _STILL_TO_DO if query.state is None else {query.state}
    wanted = [
        each
        for each in found
        if query.kind in (None, each.kind) and (query.state == "all" or each.state in states)
    ]
    words = Quotes(context.redactor)
    return m.RecommendationList(
        recommendations=[words.show_recommendation(each) for each in wanted[: query.limit]]
    )


@router.put(
    "/recommendations/{recommendationId}",
    summary="Say what is done about a recommendation",
    dependencies=[NO_QUERY],
)
async def change_recommendation(
    space: Admin, recommendation_id: RecommendationId, change: m.RecommendationChange
) -> m.Recommendation:
    """Note what is done about a recommendation; any state may follow any other.

    Of two changes the later one counts. A dismissal needs a `reason`, and lasts. A recommendation
    that is done opens again (`reopened`) when later evidence speaks for it; one that is opened by
    hand lives and ends with its evidence, like an untouched one.

    Raises:
        InvalidChangeError: it is dismissed without a reason.
        UnknownNameError: there is no recommendation of that id, and no one ever acted on it.
    """
    context, workspace = space
    reason = (change.reason or "").strip() or None
    if change.state == "dismissed" and reason is None:
        raise InvalidChangeError(
            "say in `reason` why it is dismissed; it stays dismissed, and the next one who "
            "looks wants to know"
        )
    found, now = await _find_one(space, recommendation_id), context.clock()
    changed = Quotes(context.redactor).show_recommendation(
        found.model_copy(
            update={
                "state": change.state,
                "state_reason": reason,
                "state_changed_at": now,
                "state_changed_by": change.changed_by,
                "reopened": False,
            }
        )
    )
    event, state = review_command(
        StoredRecommendation(
            workspace=workspace,
            recommendation_id=recommendation_id,
            state=change.state,
            changed_at=now,
            data=changed.model_dump_json().encode(),
            reason=changed.state_reason,
            changed_by=changed.state_changed_by,
        ),
        context.caller.principal,
    )
    await context.store.events.append(workspace, [event], [state])
    context.indexer.wake_learner()
    await context.note_action(workspace, f"recommendation.{change.state}", recommendation_id)
    return changed


async def find_recommendations(space: Space, tools: Sequence[ToolKey]) -> list[m.Recommendation]:
    """Return open and taken recommendations about these tools, greatest priority first."""
    context = space.context
    if not (known := await context.memory.read_health(tools)):
        return []
    around = await _open_workspace(space, known)
    found = await asyncio.to_thread(queue.about_tools, around, known.items())
    return queue.by_priority(
        around.words.show_recommendation(each) for each in found if each.state in _STILL_TO_DO
    )


async def _list_all(space: Space) -> list[m.Recommendation]:
    context, workspace = space
    known = await context.memory.read_health(
        await troubled_tools(context.store, workspace, MAX_TOOLS)
    )
    around = await _open_workspace(space, known)
    reviews = await _review_promotions(space, around.registry, around.now)
    return await asyncio.to_thread(queue.queue_of, around, known.items(), reviews)


async def _find_one(space: Space, recommendation_id: str) -> m.Recommendation:
    for each in await _list_all(space):
        if each.recommendation_id == recommendation_id:
            return each
    if (review := (await _read_stored(space)).get(recommendation_id)) is None:
        listed = "GET /recommendations?state=all"
        raise UnknownNameError(recommendation_id, (), "recommendation", listed)
    return queue.snapshot_of(review)


async def _open_workspace(space: Space, known: Mapping[ToolKey, KnownHealth]) -> queue.Workspace:
    context, workspace = space
    memory = context.memory
    # The parts of a split may be the names of any tools.
    is_split = any(each.split for health in known.values() for each in health.referrals)
    return queue.Workspace(
        registry=await (
            memory.read_registry(workspace)
            if is_split
            else memory.read_registry_of(workspace, list(known))
        ),
        clusters=await context.memory.axis_clusters(workspace),
        reviews=await _read_stored(space),
        words=Quotes(context.redactor),
        now=context.clock(),
        rules=context.cohesion,
    )


async def _review_promotions(
    space: Space, registry: Registry, now: datetime
) -> list[m.Recommendation]:
    context, workspace = space
    pairs = {name: pair_of(registry, name) for name in registry.promotions}
    keys = [key for pair in pairs.values() if pair for key in pair.keys]
    statistics = await context.memory.read_statistics(keys)
    reviews = (
        review_of(workspace, status_of(registry.promotions[name], pair, statistics, now=now))
        for name, pair in pairs.items()
    )
    return [each for each in reviews if each is not None]


async def _filter_by_tool(
    space: Space, name: str, found: Iterable[m.Recommendation]
) -> list[m.Recommendation]:
    context, workspace = space
    unknown: UnknownToolError | None = None
    try:
        tools = await find_called_tools(space, name)
    except UnknownToolError as error:  # perhaps a namespace, or one that is not called any more
        unknown, tools = error, list(possible_tools(workspace, name))
    names = {(each.server_name, each.tool_name) for each in tools}
    about = [
        each
        for each in found
        if (each.namespace == name if each.tool is None
            else (each.tool.server_name, each.tool.tool_name) in names)
    ]  # fmt: skip
    registry = await context.memory.read_registry(workspace)
    if unknown and not about and not registry.in_namespace(name):
        raise unknown
    return about


async def _read_stored(space: Space) -> dict[str, StoredRecommendation]:
    context, workspace = space
    rows = await context.store.events.read_state(workspace, "review")
    found = (decode_json(StoredRecommendation, row.data or b"") for row in rows)
    return {each.recommendation_id: each for each in found}
