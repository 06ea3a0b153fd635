"""Registering tools: what is checked before one is stored."""

from collections.abc import Callable
from datetime import UTC, datetime

from aftercall.json_values import content_hash
from aftercall.models import Tool, ToolSpec
from aftercall.redaction import Redactor
from mongo.contents import StoredTool, tool_command, tool_of
from mongo.protocol import EventLog
from retrieval.fitness.registry import UnknownToolError, find_cycle, offered, original_of
from retrieval.memory import Memory
from service.changes import Changes, RefusedError


class ToolRegister:
    """Puts and removes tools; tells the memory and the indexer what changed.

    Args:
        log: where tools are kept.
        memory: told which have changed.
        redactor: masks secrets before anything is stored.
        changes: shared with whatever else changes tools and promotions.
        on_change: called when something is to be learned.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        memory: Memory,
        redactor: Redactor,
        changes: Changes,
        on_change: Callable[[], None],
    ) -> None:
        self._log = log
        self._memory = memory
        self._redactor = redactor
        self._changes = changes
        self._on_change = on_change

    async def put(self, workspace: str, tool_id: str, spec: ToolSpec) -> Tool:
        """Register a tool or replace it; one that is there as it is stays, with its time.

        Raises:
            RefusedError: `evolvedFrom` leads back to the tool.
            StoreError: when it cannot be stored.
        """
        spec = self._redactor.tool(spec)
        async with self._changes.one_at_a_time():
            registry = await self._memory.registry(workspace)
            circle = find_cycle(tool_id, spec.evolved_from, registry)
            if circle is not None:
                raise RefusedError(
                    f"evolvedFrom: leads in a circle: {_chain(circle)}; "
                    "name the tool that this one is a newer version of"
                )
            before = registry.by_id.get(tool_id)
            stored = StoredTool(workspace, _tool(tool_id, spec))
            if before is not None and await self._is_as_before(before, stored):
                return before.tool
            await self._change(workspace, tool_id, before, stored.tool)
        self._on_change()
        return stored.tool

    async def get(self, workspace: str, tool_id: str, *, use_evolved: bool = False) -> Tool:
        """A tool as it was put; with `use_evolved` the version that was promoted in its place.

        Raises:
            UnknownToolError: there is none of that id.
            StoreError: when the store cannot say.
        """
        registry = await self._memory.registry(workspace)
        stored = registry.by_id.get(tool_id)
        if stored is not None and not use_evolved:
            return self._redactor.tool(stored.tool)
        if use_evolved:  # the name of a capability will do too (seed 002)
            stored = registry.by_id.get(tool_id) or original_of(registry, tool_id)
        if stored is None:
            raise UnknownToolError(tool_id, registry.nearest_tool_ids(tool_id))
        return self._redactor.tool(offered(registry, stored).tool)

    async def delete(self, workspace: str, tool_id: str) -> None:
        """Forget that a tool is registered; what was learned from its calls stays.

        Raises:
            UnknownToolError: there is none of that id.
            StoreError: when it cannot be done.
        """
        async with self._changes.one_at_a_time():
            registry = await self._memory.registry(workspace)
            before = registry.by_id.get(tool_id)
            if before is None:
                raise UnknownToolError(tool_id, registry.nearest_tool_ids(tool_id))
            await self._change(workspace, tool_id, before, None)
        self._on_change()

    async def _change(
        self, workspace: str, tool_id: str, before: StoredTool | None, after: Tool | None
    ) -> None:
        """Store a change; the memory is told of it before anybody else can ask."""
        event, state = tool_command(workspace, tool_id, before, after)
        try:
            await self._log.append(workspace, [event], [state])
            rows = await self._log.state(workspace, "tool", [tool_id])
        except BaseException:
            # Whether it was stored is not sure: the next question reads it.
            self._memory.forget_state(workspace)
            raise
        stored = tool_of(workspace, rows[0]) if rows else None
        self._memory.tool_changed(workspace, tool_id, stored)

    async def _is_as_before(self, before: StoredTool, stored: StoredTool) -> bool:
        """Whether nothing would change, not even which tool executions of that name mean."""
        at = {"updated_at": before.tool.updated_at}
        # By their JSON: to Python, `1 == True`.
        if stored.tool.model_copy(update=at).model_dump_json() != before.tool.model_dump_json():
            return False
        named = await self._memory.tool(stored.tool_key)
        return named is not None and named.tool.tool_id == stored.tool.tool_id


def _tool(tool_id: str, spec: ToolSpec) -> Tool:
    schema = spec.input_schema
    return Tool(
        **{name: getattr(spec, name) for name in ToolSpec.model_fields},
        tool_id=tool_id,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=datetime.now(UTC),
    )


def _chain(circle: list[str]) -> str:
    return " -> ".join(circle)
