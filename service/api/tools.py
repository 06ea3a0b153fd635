"""Registered tools: their schemas let proposals be verified before they are made.

Changes of tools and promotions are made one at a time (`Context.changing`): each looks at what
there is and writes before the next one looks. Else two puts at once could close a circle.
"""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from aftercall.background import call_aside
from aftercall.json_values import JsonObject, content_hash, exceeds_size
from aftercall.models import (
    MAX_TOOLS,
    ContractChange,
    NamedTool,
    Rejection,
    Tool,
    ToolList,
    ToolSpec,
    ToolsReceipt,
    WireModel,
)
from mongo import contents
from mongo.records import ToolKey
from retrieval.knowledge.rows.principals import key_mark
from retrieval.knowledge.rows.registry import (
    MAX_KNOWN,
    Registry,
    UnknownToolError,
    find_cycle,
    find_meant,
    names_like,
    nearest_names,
    offer_tool,
    original_of,
    possible_tools,
)
from retrieval.knowledge.tool.drift import MAX_CHANGES, contract_changes
from retrieval.knowledge.values.parameters import MAX_CHARS, MAX_VALUES
from service.context import Context, Space
from service.errors import InvalidChangeError, RefusedError
from service.requests import Admin, JsonRoute, Read, Record, ToolId

router = APIRouter(tags=["tools"], route_class=JsonRoute)
_PATH = "/tools/{toolId:tool}"
_ToolsBody = Annotated[list[NamedTool], Body(max_length=MAX_TOOLS)]


class ToolQuery(WireModel):
    """Which version of a tool is wanted."""

    use_evolved: bool = Field(
        default=False, description="The promoted version, where there is one, in its place."
    )


@router.get("/tools", summary="All registered tools, by id")
async def list_tools(space: Read) -> ToolList:
    """Return all registered tools.

    Registering is optional; a tool is learned from its calls all the same. `negativeTags` are a
    tool's own tags and those that marks gave it.
    """
    context, workspace = space
    stored = await context.memory.list_tools(workspace)
    known = await context.memory.read_statistics([each.tool_key for each in stored])
    asker = key_mark(context.caller.principal)
    shown = []
    for each in stored:
        tool, learned = each.tool, known.get(each.tool_key)
        if learned is not None and learned.negative_tags:
            tags = dict.fromkeys([*tool.negative_tags, *learned.list_negative_tags(asker)])
            tool = tool.model_copy(update={"negative_tags": list(tags)})
        shown.append(context.redactor.tool(tool))
    return ToolList(tools=shown)


@router.put("/tools", summary="Register a list of at most 1,000 tools, or replace them")
async def put_tools(space: Record, body: _ToolsBody) -> ToolsReceipt:
    """Register the tools of a list; tools that are not in it stay as they are.

    A list with a malformed tool is a 422 as a whole; a tool that makes no sense, such as a circle
    of `evolvedFrom`, is named in `rejected` and holds up no other.
    """
    unchanged, rejected = 0, list[Rejection]()
    for index, named in enumerate(body):
        begun = datetime.now(UTC)
        try:
            tool = await put_tool(space, named.tool_id, named)
        except (InvalidChangeError, RefusedError) as error:
            rejected.append(Rejection(index=index, message=str(error)))
        else:
            unchanged += tool.updated_at < begun
    registered = len(body) - unchanged - len(rejected)
    return ToolsReceipt(registered=registered, unchanged=unchanged, rejected=rejected)


@router.put(_PATH, summary="Register a tool, or replace it")
async def put_tool(space: Record, tool_id: ToolId, spec: ToolSpec) -> Tool:
    """Register a tool, or replace it.

    With its input schema, suggestions for the tool are checked against it before they are made.
    `version` is up to three numbers, as in `1.2.0`. `evolvedFrom` must not lead back to the tool.

    Raises:
        InvalidChangeError: it is larger than what is looked at.
        RefusedError: `evolvedFrom` leads back to the tool, or the tool is another key's.
    """
    context, workspace = space
    if exceeds_size(
        [spec.input_schema, spec.implementation, spec.description], MAX_VALUES, MAX_CHARS
    ):
        raise InvalidChangeError(
            "inputSchema, implementation and description hold more than "
            f"{MAX_VALUES:,} values or {MAX_CHARS:,} characters; shorten lists of values"
        )
    spec = await call_aside(context.redactor.tool, spec)
    async with context.changing:
        ids = {tool_id, spec.evolved_from or tool_id}
        registry = await context.memory.read_lineage(workspace, ids)
        if (circle := find_cycle(tool_id, spec.evolved_from, registry)) is not None:
            raise RefusedError(
                f"evolvedFrom: leads in a circle: {' -> '.join(circle)}; "
                "name the tool that this one is a newer version of"
            )
        schema, before = spec.input_schema, registry.by_id.get(tool_id)
        binds = before is not None and before.is_registered_by(context.caller.principal)
        tool = Tool(
            **{name: getattr(spec, name) for name in ToolSpec.model_fields},
            tool_id=tool_id,
            schema_hash=None if schema is None else content_hash(schema),
            updated_at=datetime.now(UTC),
            contract_changes=await _find_drift(context, before, schema) if before and binds else [],
        )
        same = before is not None and contents.is_same_tool(tool, before.tool)
        if before is not None and not same:
            _refuse_foreign(context, before)
        if before is not None and binds and same:
            named = await context.memory.find_tool(before.tool_key)
            if named is not None and named.tool.tool_id == tool_id:
                return before.tool  # executions of that name mean the same tool, too
        await _append_change(space, tool_id, before, tool)
    return tool


@router.get(_PATH, summary="A registered tool")
async def read_tool(space: Read, tool_id: ToolId, query: Annotated[ToolQuery, Query()]) -> Tool:
    """Return a tool as it was last put; with `useEvolved`, its promoted version.

    Then the name of a namespace will do as well as an id.

    Raises:
        UnknownToolError: there is no such tool; the error has the nearest names.
    """
    context, workspace = space
    registry = await context.memory.read_registry(workspace)
    stored = registry.by_id.get(tool_id)
    if query.use_evolved:  # the name of a capability will do too (seed 002)
        stored = stored or original_of(registry, tool_id)
    if stored is None:
        raise UnknownToolError(tool_id, names_like(tool_id, registry.by_id))
    return context.redactor.tool(
        offer_tool(registry, stored).tool if query.use_evolved else stored.tool
    )


@router.delete(
    _PATH, summary="Forget that a tool is registered", status_code=204, response_class=Response
)
async def delete_tool(space: Admin, tool_id: ToolId) -> None:
    """Forget that a tool is registered; the knowledge from its calls stays.

    Raises:
        UnknownToolError: there is no such tool.
        RefusedError: another key registered it.
    """
    context, workspace = space
    async with context.changing:
        before = find_registered(await context.memory.read_registry(workspace), tool_id)
        _refuse_foreign(context, before)
        await _append_change(space, tool_id, before, None)


async def find_called_tools(space: Space, name: str) -> list[ToolKey]:
    """Return the tools of a registered id, else those whose calls are recorded under the name.

    There are several if servers have tools of one name.

    Raises:
        UnknownToolError: there is no such tool; the error has the nearest names.
    """
    context, workspace = space
    registry = await context.memory.read_registry(workspace)
    if name in registry.by_id:
        return [registry.by_id[name].tool_key]
    if found := await context.memory.read_health(list(possible_tools(workspace, name))):
        return list(found)
    recorded = await context.memory.list_called(workspace, MAX_KNOWN)
    if named := find_meant(name, recorded):
        return named
    raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))


def find_registered(registry: Registry, tool_id: str) -> contents.StoredTool:
    """Return a registered tool.

    Raises:
        UnknownToolError: there is no such tool; the error has the nearest ids.
    """
    if tool_id not in registry.by_id:
        raise UnknownToolError(tool_id, names_like(tool_id, registry.by_id))
    return registry.by_id[tool_id]


def _refuse_foreign(context: Context, before: contents.StoredTool) -> None:
    """Refuse a change of another key's tool: a registration binds its own key alone.

    Raises:
        RefusedError: the tool is another key's.
    """
    caller = context.caller
    if not before.is_registered_by(caller.principal) and "admin" not in caller.scopes:
        raise RefusedError(
            f"the tool {before.tool.tool_id!r} was registered by another key: register yours "
            "under an id of its own, or ask a key with the scope admin"
        )


async def _find_drift(
    context: Context, before: contents.StoredTool, schema: JsonObject | None
) -> list[ContractChange]:
    """Return the changes of a tool's contract: those known before, and those by this schema."""
    known, old = before.tool.contract_changes, before.tool.input_schema
    if schema is None or old is None or content_hash(schema) == before.tool.schema_hash:
        return known
    knowledge = await context.memory.read_knowledge(before.tool_key)
    profile = knowledge.find_profile(before.tool.schema_hash) if knowledge else None
    return [*known, *contract_changes(old, schema, profile, datetime.now(UTC))][-MAX_CHANGES:]


async def _append_change(
    space: Space, tool_id: str, before: contents.StoredTool | None, after: Tool | None
) -> None:
    context, workspace = space
    event, state = contents.tool_command(
        workspace, tool_id, before, after, context.caller.principal
    )
    log = context.store.events
    try:
        await log.append(workspace, [event], [state])
        rows = await log.read_state(workspace, "tool", [tool_id])
    except BaseException:
        # The change may have been stored: the next question reads the state.
        context.memory.forget_state(workspace)
        raise
    context.memory.tool_changed(
        workspace, tool_id, contents.tool_of(workspace, rows[0]) if rows else None
    )
    context.indexer.wake_learner()
    await context.note_action(workspace, "tool.put" if after else "tool.delete", tool_id)
