"""Operations of an admin on a workspace: look at what was learned, forget, export.

A workspace is made by its first key (`POST /keys`), and emptied by forgetting everything.
"""

import zlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from aftercall import models as m
from aftercall.background import call_aside
from mongo.contents import RuleChange
from service import rules
from service.archive import GZIP_LEVEL, ArchiveWriter
from service.context import Space
from service.errors import NotFoundProblemError
from service.forget import Forgotten, forget_events
from service.requests import GZIP, NO_QUERY, Admin, JsonRoute, Read, ToolFilter

router = APIRouter(tags=["workspaces"], route_class=JsonRoute)
RuleId = Annotated[
    str, Path(alias="ruleId", min_length=1, max_length=64, description="From `GET /rules`.")
]


class RulesQuery(ToolFilter):
    """Which learned repairs are wanted."""

    suspicious: bool = Field(default=False, description="Only what one key alone taught.")
    limit: int = Field(default=100, ge=1, le=1000)


@router.get("/workspaces", summary="Workspaces with how much they hold", dependencies=[NO_QUERY])
async def list_workspaces(space: Admin) -> m.WorkspaceList:
    """Return the caller's own workspace; an operator gets all."""
    context, access = space.context, space.context.caller
    now = context.clock()
    held = Counter(
        key.workspace
        for key in await context.keys.store.list_keys()
        if key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
    )
    heads = await context.store.events.read_heads()
    known = []
    for name in sorted(filter(access.sees_workspace, heads.keys() | held.keys())):
        events = sum(heads[name].counts.values()) if name in heads else 0
        known.append(m.KnownWorkspace(name=name, events=events, keys=held[name]))
    return m.WorkspaceList(workspaces=known)


@router.post("/forget", summary="Erase what an agent, a session, a key or a time has said")
async def forget_words(space: Admin, whose: m.ForgetRequest) -> m.ForgetReceipt:
    """Delete the words from the log at once, with what quotes them; then learn all again.

    Until that is done, answers may still rest on them. `everything` empties the workspace. Calls
    that a recorder has not sent yet are with its user: run `aftercall forget` there, or delete its
    spool.
    """
    context, workspace = space
    forgotten = Forgotten(workspace=workspace, **dict(whose))
    await context.note_action(workspace, "forget", forgotten.subject)
    erased = await forget_events(context.store, forgotten)
    context.relearning.begin_learning()
    generation = context.store.knowledge.generation + 1 if erased else None
    return m.ForgetReceipt(erased=erased, generation=generation)


@router.get(
    "/export",
    summary="All that a workspace holds",
    response_class=Response,
    name="export",
    dependencies=[NO_QUERY],
)
async def export_workspace(space: Admin) -> Response:
    """Return an archive packed by gzip, which `aftercall import FILE` puts into an empty store.

    It holds the calls of agents; secrets were masked before they were stored.
    """
    context, workspace = space
    writer = ArchiveWriter(context.store, workspace=workspace)
    await context.note_action(workspace, "workspace.export", writer.header.id)
    named = f'attachment; filename="aftercall-{workspace}.jsonl.gz"'
    headers = {"content-disposition": named, "cache-control": "no-store"}
    return StreamingResponse(_pack_lines(writer.write_lines()), 200, headers, "application/gzip")


async def _pack_lines(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer, waiting, size = zlib.compressobj(GZIP_LEVEL, wbits=GZIP), list[bytes](), 0
    async for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= 256 * 1024:
            yield await call_aside(packer.compress, b"".join(waiting))
            waiting, size = [], 0
    yield packer.compress(b"".join(waiting)) + packer.flush()


@router.get("/rules", summary="Learned repairs, and what is suspicious of them")
async def list_rules(space: Read, query: Annotated[RulesQuery, Query()]) -> m.RuleList:
    """Return learned repairs with the keys that taught them, and bursts of marks by one key."""
    store, tool = space.context.store, query.find_tool(space.workspace)
    found: list[m.LearnedRule] = []
    async for each in rules.find_rules(store, space.workspace, tool):
        if len(found) >= query.limit:
            break
        if each.told.suspicious or not query.suspicious:
            found.append(_show_rule(space, each))
    return m.RuleList(
        rules=found, bursts=[each async for each in rules.find_bursts(store, space.workspace, tool)]
    )


@router.get("/rules/{ruleId}", summary="What one learned repair rests on")
async def explain_rule(space: Read, rule_id: RuleId) -> m.LearnedRule:
    """Return the error that it repairs, the keys that taught it, and executions that show it."""
    return _show_rule(space, await _find_rule(space, rule_id))


@router.put("/rules/{ruleId}", summary="Switch a learned repair off, or on again")
async def switch_rule(space: Admin, rule_id: RuleId, change: m.RuleSwitch) -> m.LearnedRule:
    """Switch a repair off or on; one that is off is neither proposed nor applied."""
    rule = await _find_rule(space, rule_id)
    await _change_rule(space, rule, "off" if change.off else "on")
    return _show_rule(space, rule).model_copy(update={"off": change.off})


@router.delete(
    "/rules/{ruleId}", summary="Strike a learned repair out", status_code=204,
    response_class=Response,
)  # fmt: skip
async def remove_rule(space: Admin, rule_id: RuleId) -> None:
    """Remove a repair for good, with what taught it.

    Later executions may teach it again.
    """
    await _change_rule(space, await _find_rule(space, rule_id), "remove")


async def _change_rule(space: Space, rule: rules.KnownRule, change: RuleChange) -> None:
    await rules.change_rule(space.context.store, rule, change)
    space.context.indexer.wake_learner()
    await space.context.note_action(space.workspace, f"rule.{change}", rule.told.rule_id)


async def _find_rule(space: Space, rule_id: str) -> rules.KnownRule:
    async for each in rules.find_rules(space.context.store, space.workspace):
        if each.told.rule_id == rule_id:
            return each
    raise NotFoundProblemError("there is no such rule; GET /rules shows those there are")


def _show_rule(space: Space, rule: rules.KnownRule) -> m.LearnedRule:
    """Return a rule as others see it: secrets are masked again."""
    said, told = space.context.redactor.text, rule.told
    return told.model_copy(update={"signature": said(told.signature), "lesson": said(told.lesson)})
