"""Which version of a tool is in force: asked of the service, and of the files of this machine.

This machine goes first: its promotions file before the service's promotions, definitions of this
program before registered ones. While the service is away, these are what there is.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from aftercall import errors
from aftercall.client import AsyncClient, Client
from aftercall.executors.protocol import evolved_file_of, implementation_of
from aftercall.json_values import content_hash
from aftercall.models import BestTool, FoundTools, Promotion, RankedTool, Tool, ToolSpec
from aftercall.models.tools import same_version
from aftercall.promotions_file import promoted_tool, read_promotions

_AWAY = (
    errors.ServiceUnreachableError,
    errors.ServiceFailedError,
    errors.RateLimitedError,
    errors.ProtocolError,
)
"""What means that the service cannot be asked now."""
_INDEXED_S = 3.0
_LOOK_EVERY_S = 0.05


class Resolver:
    """Finds tools by id, namespace or scenario, in the versions that are in force here.

    `tools` are definitions of this program, by tool id; the promotions file need not be there yet.
    """

    def __init__(
        self,
        client: AsyncClient | None,
        tools: Mapping[str, ToolSpec],
        promotions_file: Path | None,
    ) -> None:
        if isinstance(client, Client):
            raise errors.ConfigurationError(
                "a toolbox asks through an AsyncClient, the synchronous Toolbox too; pass one that "
                "nothing else uses"
            )
        self._client = client
        self._own = {tool_id: as_tool(tool_id, spec) for tool_id, spec in tools.items()}
        self._promotions_file = promotions_file
        self._is_new = False

    @property
    def service(self) -> AsyncClient:
        """Client; a `ServiceUnreachableError` without one."""
        if self._client is None:
            raise errors.ServiceUnreachableError("this toolbox has no service; give it a client")
        return self._client

    async def add(self, tool_id: str, spec: ToolSpec) -> Tool:
        """Define a tool in this program, and register it, which may fail by itself."""
        self._own[tool_id] = as_tool(tool_id, spec)
        self._is_new = True
        return await self.service.put_tool(tool_id, spec)

    async def known_tools(self) -> list[Tool]:
        """Return this program's tools, and those that the service has registered."""
        registered: list[Tool] = []
        with suppress(*_AWAY):
            registered = await self.service.list_tools()
        others = [tool for tool in registered if tool.tool_id not in self._own]
        return [*self._own.values(), *others]

    def current_promotions(self) -> Mapping[str, Promotion]:
        """Return what the promotions file holds now; nothing without one."""
        if self._promotions_file is None:
            return {}
        return read_promotions(self._promotions_file, missing_ok=True)

    async def find_original(self, tool_id: str) -> Tool:
        """Return a tool as it is registered."""
        return self._own.get(tool_id) or await self.service.get_tool(tool_id)

    async def in_force(self, tool_id: str) -> Tool:
        """Return the promoted version of a tool, or the tool itself."""
        promotions = self.current_promotions()
        if (entry := promotions.get(tool_id)) is not None:
            return await self._in_place_of(await self._meant_by(tool_id, entry), entry)
        try:
            offered = await self.service.get_tool(tool_id, use_evolved=True)
        except (errors.NotFoundError, *_AWAY):
            if tool_id not in self._own:
                raise
            offered = self._own[tool_id]
        return await self._local_tool(offered, promotions)

    async def find_best(self, namespace: str, scenario: str, *, use_rag: bool) -> BestTool:
        """Return the fittest of a namespace, and all that were compared."""
        best = await self.service.best_tool(namespace, scenario, use_rag=use_rag)
        ranked = await self._local_ranked(best.candidates)
        return best.model_copy(update={"tool": ranked[0].tool, "candidates": ranked})

    async def find_tools(self, scenario: str, tags: Sequence[str] | None, limit: int) -> FoundTools:
        """Tools for a scenario, best first, those that were registered just now among them."""
        if self._is_new:
            self._is_new = False
            await self._wait_indexed()
        found = await self.service.find_tools(scenario, tags=tags, limit=limit)
        return found.model_copy(update={"candidates": await self._local_ranked(found.candidates)})

    async def _wait_indexed(self) -> None:
        """Wait until the service finds all that it was given, 3 s at most; a look, no promise."""
        with suppress(errors.AftercallError):
            for _ in range(round(_INDEXED_S / _LOOK_EVERY_S)):
                if not (await self.service.status()).pending_indexing:
                    return
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _local_ranked(self, ranked: Sequence[RankedTool]) -> list[RankedTool]:
        promotions = self.current_promotions()
        return [
            each.model_copy(update={"tool": await self._local_tool(each.tool, promotions)})
            for each in ranked
        ]

    async def _local_tool(self, offered: Tool, promotions: Mapping[str, Promotion]) -> Tool:
        """Return a tool as the service offers it, or what this machine has instead."""
        tool = self._own_definition(offered)
        if not promotions:
            return tool
        try:
            original = await self.find_original(original_id(tool)) if tool.is_evolved else tool
        except (errors.NotFoundError, *_AWAY):
            return tool
        entry = entry_for(original, promotions)
        return tool if entry is None else await self._in_place_of(original, entry)

    async def _in_place_of(self, original: Tool, entry: Promotion) -> Tool:
        known = [] if entry.evolved_file is not None else await self.known_tools()
        return in_place_of(original, entry, known)

    def _own_definition(self, offered: Tool) -> Tool:
        """Return a tool of the service by this program's definition, where there is one.

        Of a promoted version that is no tool of its own, version and file are the service's.
        """
        if (own := self._own.get(offered.tool_id)) is None:
            # Another id for a tool of this program: its claims about itself are the program's.
            names = (offered.server_name, offered.name)
            for each in self._own.values():
                if (each.server_name, each.name) == names:
                    return offered.model_copy(update={"annotations": each.annotations})
            return offered
        if not offered.is_evolved:
            return own
        file = evolved_file_of(offered)
        implementation = {**implementation_of(own), "evolved_file": file}
        changes = {"version": offered.version, "is_evolved": True, "implementation": implementation}
        return own.model_copy(update=changes) if file else offered

    async def _meant_by(self, name: str, entry: Promotion) -> Tool:
        with suppress(errors.NotFoundError, *_AWAY):
            return await self.find_original(name)
        known = [*self._own.values()]
        with suppress(errors.NotFoundError, *_AWAY):
            offered = await self.service.get_tool(name, use_evolved=True)
            known.append(await self.find_original(original_id(offered)))
        meant = (tool for tool in known if entry_for(tool, {name: entry}) is not None)
        # Seed 002: the promotions file alone makes a tool.
        return next(meant, as_tool(name, ToolSpec(name=name, version=entry.original_version)))


def as_tool(tool_id: str, spec: ToolSpec) -> Tool:
    """Return a definition as a tool."""
    schema = spec.input_schema
    return Tool(
        **{name: getattr(spec, name) for name in ToolSpec.model_fields},
        tool_id=tool_id,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=datetime.now(UTC),
    )


def entry_for(tool: Tool, promotions: Mapping[str, Promotion]) -> Promotion | None:
    """Return the entry that stands in for a tool: under its id, else under its namespace.

    Of the tools in a namespace it is an original, of the original version that the entry names.
    """
    if tool.tool_id in promotions:
        return promotions[tool.tool_id]
    if (entry := promotions.get(tool.namespace or "")) is None or tool.evolved_from is not None:
        return None
    is_meant = tool.version is None or same_version(tool.version, entry.original_version)
    return entry if is_meant else None


def in_place_of(original: Tool, entry: Promotion, known: Iterable[Tool] = ()) -> Tool:
    """Return the version that an entry puts instead of a tool.

    For an entry without a file it is the tool among `known` that evolved from the original.
    """
    if entry.evolved_file is not None:
        return promoted_tool(original, entry)
    for tool in known:
        is_its = same_version(tool.version or "", entry.evolved_version)
        if is_its and tool.evolved_from == original.tool_id:
            return tool.model_copy(update={"is_evolved": True})
    raise errors.ConfigurationError(
        f"{original.tool_id!r} is promoted to {entry.evolved_version} without a file, and no tool "
        "of that version is known here; register it with evolvedFrom, or name a file"
    )


def original_id(tool: Tool) -> str:
    """Return the id of the tool that a promoted version stands in for; an original's own."""
    is_registered = tool.is_evolved and evolved_file_of(tool) is None
    return (tool.evolved_from if is_registered else None) or tool.tool_id
