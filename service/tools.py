"""Registered tools, and failures of theirs that someone marks: checked, then an event of the log.

Changes of tools and promotions are made one at a time (`Context.changing`): each looks at what
there is and writes before the next one looks. Else two puts at once could close a circle.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from aftercall.background import call_aside
from aftercall.json_values import JsonObject, content_hash, exceeds_size
from aftercall.models import (
    ContractChange,
    FailureMark,
    MarkedFailure,
    NamedTool,
    Rejection,
    Tool,
    ToolList,
    ToolSpec,
    ToolsReceipt,
)
from mongo import contents
from mongo.records import ToolKey
from retrieval.answers.fitness.history import statistics_with_marks
from retrieval.answers.fitness.score import quality_of, trials_of
from retrieval.knowledge.rows.log import read_executions
from retrieval.knowledge.rows.principals import key_mark
from retrieval.knowledge.rows.registry import (
    MAX_KNOWN,
    Registry,
    ToolCandidate,
    UnknownToolError,
    find_cycle,
    find_meant,
    names_like,
    nearest_names,
    offer_tool,
    original_of,
    plain_candidate,
    possible_tools,
)
from retrieval.knowledge.rows.statistics import NO_VERSION
from retrieval.knowledge.tool.drift import MAX_CHANGES, contract_changes
from retrieval.knowledge.values.parameters import MAX_CHARS, MAX_VALUES
from service.context import Context

_MAX_MESSAGE = 10_000
"""Characters kept of an error message, as many as of a scenario: marks are read by the dozen."""


class InvalidChangeError(ValueError):
    """The change is wrong by itself, such as a path that leaves its folder."""


class RefusedError(ValueError):
    """The change makes no sense here, such as a circle of `evolvedFrom`; the message states why."""


async def put_tool(context: Context, workspace: str, tool_id: str, spec: ToolSpec) -> Tool:
    """Register a tool or replace it; one that is there as it is stays, with its time.

    An `InvalidChangeError` where it is larger than what is looked at, a `RefusedError` where
    `evolvedFrom` leads back to the tool.
    """
    if exceeds_size(
        [spec.input_schema, spec.implementation, spec.description], MAX_VALUES, MAX_CHARS
    ):
        raise InvalidChangeError(
            "inputSchema, implementation and description hold more than "
            f"{MAX_VALUES:,} values or {MAX_CHARS:,} characters; shorten lists of values"
        )
    spec = await call_aside(context.redactor.tool, spec)
    async with context.changing:
        registry = await context.memory.read_registry(workspace)
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
            contract_changes=await _drift(context, before, schema) if before and binds else [],
        )
        same = before is not None and contents.is_same_tool(tool, before.tool)
        if before is not None and not same:
            _refuse_foreign(context, before)
        if before is not None and binds and same:
            named = await context.memory.find_tool(before.tool_key)
            if named is not None and named.tool.tool_id == tool_id:
                return before.tool  # executions of that name mean the same tool, too
        await _change(context, workspace, tool_id, before, tool)
    return tool


async def put_tools(
    context: Context, workspace: str, named_tools: Sequence[NamedTool]
) -> ToolsReceipt:
    """Register tools one after another; one that is refused is named and holds up no other."""
    unchanged, rejected = 0, list[Rejection]()
    for index, named in enumerate(named_tools):
        begun = datetime.now(UTC)
        try:
            tool = await put_tool(context, workspace, named.tool_id, named)
        except (InvalidChangeError, RefusedError) as error:
            rejected.append(Rejection(index=index, message=str(error)))
        else:
            unchanged += tool.updated_at < begun
    registered = len(named_tools) - unchanged - len(rejected)
    return ToolsReceipt(registered=registered, unchanged=unchanged, rejected=rejected)


def _refuse_foreign(context: Context, before: contents.StoredTool) -> None:
    """A `RefusedError` where the tool is another key's: a registration binds its own key alone."""
    caller = context.caller
    if not before.is_registered_by(caller.principal) and "admin" not in caller.scopes:
        raise RefusedError(
            f"the tool {before.tool.tool_id!r} was registered by another key: register yours "
            "under an id of its own, or ask a key with the scope admin"
        )


async def _drift(
    context: Context, before: contents.StoredTool, schema: JsonObject | None
) -> list[ContractChange]:
    """Return what has changed of a tool's contract, as known before and by this schema."""
    known, old = before.tool.contract_changes, before.tool.input_schema
    if schema is None or old is None or content_hash(schema) == before.tool.schema_hash:
        return known
    knowledge = await context.memory.read_knowledge(before.tool_key)
    profile = knowledge.find_profile(before.tool.schema_hash) if knowledge else None
    return [*known, *contract_changes(old, schema, profile, datetime.now(UTC))][-MAX_CHANGES:]


async def list_tools(context: Context, workspace: str) -> ToolList:
    """All registered tools, with the negative tags that marks gave them next to their own."""
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


async def get_tool(
    context: Context, workspace: str, tool_id: str, *, use_evolved: bool = False
) -> Tool:
    """A tool as it was put; with `use_evolved` the version that was promoted in its place."""
    registry = await context.memory.read_registry(workspace)
    stored = registry.by_id.get(tool_id)
    if use_evolved:  # the name of a capability will do too (seed 002)
        stored = stored or original_of(registry, tool_id)
    if stored is None:
        raise UnknownToolError(tool_id, names_like(tool_id, registry.by_id))
    return context.redactor.tool(offer_tool(registry, stored).tool if use_evolved else stored.tool)


async def tools_called(context: Context, workspace: str, name: str) -> list[ToolKey]:
    """Return the tools of a registered id; else those whose calls are recorded under the name.

    Several where servers have tools of one name; an `UnknownToolError`, with the nearest names,
    where there is none.
    """
    registry = await context.memory.read_registry(workspace)
    if name in registry.by_id:
        return [registry.by_id[name].tool_key]
    if found := await context.memory.read_health(list(possible_tools(workspace, name))):
        return list(found)
    recorded = await context.memory.list_called(workspace, MAX_KNOWN)
    if named := find_meant(name, recorded):
        return named
    raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))


async def delete_tool(context: Context, workspace: str, tool_id: str) -> None:
    """Forget that a tool is registered; what was learned from its calls stays."""
    async with context.changing:
        before = _registered(await context.memory.read_registry(workspace), tool_id)
        _refuse_foreign(context, before)
        await _change(context, workspace, tool_id, before, None)


async def _change(
    context: Context,
    workspace: str,
    tool_id: str,
    before: contents.StoredTool | None,
    after: Tool | None,
) -> None:
    event, state = contents.tool_command(
        workspace, tool_id, before, after, context.caller.principal
    )
    log = context.store.events
    try:
        await log.append(workspace, [event], [state])
        rows = await log.read_state(workspace, "tool", [tool_id])
    except BaseException:
        # Whether it was stored is not sure: the next question reads it.
        context.memory.forget_state(workspace)
        raise
    context.memory.tool_changed(
        workspace, tool_id, contents.tool_of(workspace, rows[0]) if rows else None
    )
    context.indexer.wake_learner()
    await context.note(workspace, "tool.put" if after else "tool.delete", tool_id)


def _registered(registry: Registry, tool_id: str) -> contents.StoredTool:
    if tool_id not in registry.by_id:
        raise UnknownToolError(tool_id, names_like(tool_id, registry.by_id))
    return registry.by_id[tool_id]


async def mark_failure(
    context: Context, workspace: str, tool_id: str, mark: FailureMark
) -> MarkedFailure:
    """Keep a marked failure; durable when this returns. The same id twice counts once.

    The version is the mark's; else that of the recorded call that it names; else the one in force.
    """
    log, redactor, now = context.store.events, context.redactor, context.clock()
    registry = await context.memory.read_registry(workspace)
    named = [] if mark.execution_id is None else [mark.execution_id]
    call = next(iter(await read_executions(log, workspace, named)), None)  # if it is stored yet
    failed, version = _failed(registry, tool_id, mark.version, call)
    record = contents.FailureRecord(
        tool=failed.key,
        mark_id=mark.mark_id or str(uuid4()),
        version=version,
        scenario=redactor.text(mark.scenario),
        error_message=redactor.text(mark.error_message)[:_MAX_MESSAGE],
        severity=mark.severity,
        marked_at=now,
        # Masked, a tag with a secret would be in every scenario that holds a secret.
        negative_tags=tuple(tag for tag in mark.negative_tags if redactor.text(tag) == tag),
        execution_id=mark.execution_id,
        called=None if call is None else contents.Called.from_execution(call),
    )
    event = contents.mark_event(record, context.caller.principal)
    is_new = await log.append(workspace, [event]) == ["accepted"]
    if is_new:
        context.indexer.wake_learner()
    # With all marks that are stored, whether or not they were learned from yet.
    statistics = await statistics_with_marks([failed.key], memory=context.memory, log=log)
    trials = trials_of(failed, statistics[failed.key])
    return MarkedFailure(
        mark_id=record.mark_id,
        tool_id=tool_id,
        version=version,
        severity=mark.severity,
        duplicate=not is_new,
        quality=quality_of(trials, now=now, start=failed.start, since=failed.since),
    )


def _failed(
    registry: Registry, tool_id: str, version: str | None, call: contents.StoredExecution | None
) -> tuple[ToolCandidate, str | None]:
    """Return what failed, and in which version.

    That of the call, of this tool, or what is in force.
    """
    stored = _registered(registry, tool_id)
    in_force, plain = offer_tool(registry, stored), plain_candidate(registry, stored, "original")
    possible = [in_force, plain]
    if call and (called := [each for each in possible if each.key == call.tool_key]):
        possible = called
        version = version or call.execution.tool_version or NO_VERSION
    if version is None:
        return in_force, in_force.tool.version
    for each in possible:
        if each.counts_version(version):
            return each, version or None
    return replace(possible[-1], versions=(version,), start=1.0, since=None), version or None
