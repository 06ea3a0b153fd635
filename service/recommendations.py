"""Recommendations: made from the evidence when someone asks, kept when someone acts on them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Name
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
from service.context import Context
from service.tools import InvalidChangeError, tools_called

MAX_TOOLS = 500
"""Tools that are looked at, the latest troubled first: 20 MB, for a row is 40 kB at most. One of
which as much is remembered as there is room for takes some 2 ms."""
RecommendationStates = Literal["open", "taken", "done", "dismissed", "all"]
_STILL_TO_DO: frozenset[m.RecommendationState] = frozenset({"open", "taken"})


class RecommendationQuery(m.WireModel):
    """Which recommendations are asked for."""

    state: RecommendationStates | None = Field(
        default=None, description="Only those in that state; open and taken ones when left out."
    )
    tool_id: Name | None = Field(
        default=None,
        description="Only those about a tool (its id, or the name of its calls) or a namespace.",
    )
    kind: m.RecommendationKind | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)


async def recommendations(
    context: Context, workspace: str, asked: RecommendationQuery
) -> m.RecommendationList:
    """Return those that are asked for, greatest priority first."""
    found = await _all(context, workspace)
    if asked.tool_id is not None:
        found = await _about(context, workspace, asked.tool_id, found)
    states = _STILL_TO_DO if asked.state is None else {asked.state}
    wanted = [
        each
        for each in found
        if asked.kind in (None, each.kind) and (asked.state == "all" or each.state in states)
    ]
    words = Quotes(context.redactor)
    return m.RecommendationList(
        recommendations=[words.show_recommendation(each) for each in wanted[: asked.limit]]
    )


async def change_recommendation(
    context: Context, workspace: str, recommendation_id: str, change: m.RecommendationChange
) -> m.Recommendation:
    """Say what is done about a recommendation; durable when this returns, the last word counts.

    It is kept as it is now, for it stays listed when its evidence has faded. An
    `InvalidChangeError` where it is dismissed without a reason, an `UnknownNameError` where nothing
    is suggested under the id, and no one ever acted on it.
    """
    reason = (change.reason or "").strip() or None
    if change.state == "dismissed" and reason is None:
        raise InvalidChangeError(
            "say in `reason` why it is dismissed; it stays dismissed, and the next one who "
            "looks wants to know"
        )
    found, now = await _one(context, workspace, recommendation_id), context.clock()
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
    await context.note(workspace, f"recommendation.{change.state}", recommendation_id)
    return changed


async def recommendations_about(
    context: Context, workspace: str, tools: Sequence[ToolKey]
) -> list[m.Recommendation]:
    """Open and taken ones about these tools, greatest priority first."""
    if not (known := await context.memory.read_health(tools)):
        return []
    around = await _workspace(context, workspace, known)
    found = await asyncio.to_thread(queue.about_tools, around, known.items())
    return queue.by_priority(
        around.words.show_recommendation(each) for each in found if each.state in _STILL_TO_DO
    )


async def _all(context: Context, workspace: str) -> list[m.Recommendation]:
    known = await context.memory.read_health(
        await troubled_tools(context.store, workspace, MAX_TOOLS)
    )
    around = await _workspace(context, workspace, known)
    reviews = await _reviews(context, workspace, around.registry, around.now)
    return await asyncio.to_thread(queue.queue_of, around, known.items(), reviews)


async def _one(context: Context, workspace: str, recommendation_id: str) -> m.Recommendation:
    for each in await _all(context, workspace):
        if each.recommendation_id == recommendation_id:
            return each
    if (review := (await _stored(context, workspace)).get(recommendation_id)) is None:
        listed = "GET /recommendations?state=all"
        raise UnknownNameError(recommendation_id, (), "recommendation", listed)
    return queue.snapshot_of(review)


async def _workspace(
    context: Context, workspace: str, known: Mapping[ToolKey, KnownHealth]
) -> queue.Workspace:
    memory = context.memory
    # The parts of a split may be the names of any tools.
    is_split = any(each.split for health in known.values() for each in health.referrals)
    return queue.Workspace(
        registry=await (
            memory.read_registry(workspace)
            if is_split
            else memory.registry_of(workspace, list(known))
        ),
        clusters=await context.memory.axis_clusters(workspace),
        reviews=await _stored(context, workspace),
        words=Quotes(context.redactor),
        now=context.clock(),
        rules=context.cohesion,
    )


async def _reviews(
    context: Context, workspace: str, registry: Registry, now: datetime
) -> list[m.Recommendation]:
    pairs = {name: pair_of(registry, name) for name in registry.promotions}
    keys = [key for pair in pairs.values() if pair for key in pair.keys]
    statistics = await context.memory.read_statistics(keys)
    reviews = (
        review_of(workspace, status_of(registry.promotions[name], pair, statistics, now=now))
        for name, pair in pairs.items()
    )
    return [each for each in reviews if each is not None]


async def _about(
    context: Context, workspace: str, name: str, found: Iterable[m.Recommendation]
) -> list[m.Recommendation]:
    unknown: UnknownToolError | None = None
    try:
        tools = await tools_called(context, workspace, name)
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


async def _stored(context: Context, workspace: str) -> dict[str, StoredRecommendation]:
    rows = await context.store.events.read_state(workspace, "review")
    found = (decode_json(StoredRecommendation, row.data or b"") for row in rows)
    return {each.recommendation_id: each for each in found}
