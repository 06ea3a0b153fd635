"""Which version of a tool is in force: asked of the service, and of the files of this machine.

Where both say something, this machine goes first: its promotions file before the service's
promotions, as the files that it names lie here; definitions of this program before registered
ones, as the registry is shared. While the service is away, definitions of this program, the
promotions file and tools that the service named before are what there is.
"""

from collections.abc import Sequence

from aftercall.errors import NotFoundError, ServiceUnreachableError
from aftercall.executors.protocol import evolved_file_of, implementation_of
from aftercall.models import BestTool, FoundTools, Promotion, RankedTool, Tool
from aftercall.toolbox.local_tools import LocalTools
from aftercall.toolbox.promoted import bare_tool, entry_for, in_place_of, original_id
from aftercall.toolbox.service_link import AWAY, ServiceLink


class Resolver:
    """Finds tools by id, namespace or scenario, in the versions that are in force here."""

    def __init__(self, link: ServiceLink, local: LocalTools) -> None:
        self._link = link
        self._local = local

    async def original(self, tool_id: str) -> Tool:
        """A tool as it is registered.

        Raises:
            NotFoundError: the service has no such tool, and this program neither.
            ServiceUnreachableError: the service is away, and the tool is not known here.
            AftercallError: what else the service said.
        """
        own = self._local.own(tool_id)
        return own if own is not None else await self._asked(tool_id, use_evolved=False)

    async def in_force(self, tool_id: str) -> Tool:
        """The promoted version of a tool, or the tool itself.

        Raises:
            PromotionsFileError: the promotions file is malformed.
            ConfigurationError: it promotes a version that is not known here.
            NotFoundError, ServiceUnreachableError, AftercallError: as `original`.
        """
        entry = self._local.promotions().get(tool_id)
        if entry is None:
            return await self.promoted_here(await self._offered(tool_id))
        return self._promoted(await self._meant_by(tool_id, entry), entry)

    async def best(self, namespace: str, scenario: str, *, use_rag: bool) -> BestTool:
        """The fittest of a namespace, and all that were compared.

        Raises:
            AftercallError: as `AsyncClient.best_tool` and `in_force`.
        """
        best = await self._link.ask(
            lambda client: client.best_tool(namespace, scenario, use_rag=use_rag)
        )
        candidates = await self._ranked_here(best.candidates)
        tool = await self.promoted_here(best.tool)
        return best.model_copy(update={"tool": tool, "candidates": candidates})

    async def find(self, scenario: str, tags: Sequence[str] | None, limit: int) -> FoundTools:
        """Tools for a scenario, best first.

        Raises:
            AftercallError: as `AsyncClient.find_tools` and `in_force`.
        """
        found = await self._link.ask(
            lambda client: client.find_tools(scenario, tags=tags, limit=limit)
        )
        return found.model_copy(update={"candidates": await self._ranked_here(found.candidates)})

    async def promoted_here(self, tool: Tool) -> Tool:
        """A tool as the service offers it, or what this machine's promotions file has instead.

        Raises:
            PromotionsFileError, ConfigurationError: as `in_force`.
        """
        tool = self._ours(tool)
        promotions = self._local.promotions()
        if not promotions:
            return tool
        if not tool.is_evolved:
            entry = entry_for(tool, promotions)
            return tool if entry is None else self._promoted(tool, entry)
        try:
            original = await self.original(original_id(tool))
        except (NotFoundError, *AWAY):
            return tool
        entry = entry_for(original, promotions)
        return tool if entry is None else self._promoted(original, entry)

    def version_here(self, tool_id: str) -> str | None:
        """The version that this machine's promotions file lets run for a tool, if it does."""
        entry = self._local.promotions().get(tool_id)
        return None if entry is None or entry.evolved_file is None else entry.evolved_version

    async def _meant_by(self, name: str, entry: Promotion) -> Tool:
        """The tool that the entry of this name stands in for."""
        try:
            return await self.original(name)
        except (NotFoundError, *AWAY):
            pass  # it may be the name of a namespace
        known = self._local.all()
        try:
            offered = await self._asked(name, use_evolved=True)
            known.append(await self.original(original_id(offered)))
        except (NotFoundError, *AWAY):
            pass
        meant = (tool for tool in known if entry_for(tool, {name: entry}) is not None)
        # Seed 002: the promotions file alone makes a tool.
        return next(meant, None) or bare_tool(name, entry.original_version)

    async def _ranked_here(self, ranked: Sequence[RankedTool]) -> list[RankedTool]:
        self._local.remember(each.tool for each in ranked)
        return [
            each.model_copy(update={"tool": await self.promoted_here(each.tool)}) for each in ranked
        ]

    async def _offered(self, tool_id: str) -> Tool:
        own = self._local.own(tool_id)
        try:
            return await self._asked(tool_id, use_evolved=True)
        except (NotFoundError, *AWAY):
            if own is None:
                raise
            return own

    def _ours(self, offered: Tool) -> Tool:
        """A tool of the service by this program's definition, where there is one.

        Of a promoted version that is no tool of its own, version and file are the service's.
        """
        own = self._local.own(offered.tool_id)
        if own is None:
            # Another id for a tool of this program: its claims about itself are the program's.
            named = self._local.own_named(offered.server_name, offered.name)
            if named is None:
                return offered
            return offered.model_copy(update={"annotations": named.annotations})
        if not offered.is_evolved:
            return own
        implementation = {**implementation_of(own), "evolved_file": evolved_file_of(offered)}
        changes = {
            "version": offered.version, "is_evolved": True, "implementation": implementation,
        }  # fmt: skip
        return own.model_copy(update=changes) if evolved_file_of(offered) else offered

    async def _asked(self, tool_id: str, *, use_evolved: bool) -> Tool:
        try:
            tool = await self._link.ask(
                lambda client: client.get_tool(tool_id, use_evolved=use_evolved)
            )
        except AWAY as error:
            known = self._local.offered(tool_id) if use_evolved else self._local.known(tool_id)
            if known is not None:
                return known
            raise ServiceUnreachableError(
                f"the tool {tool_id!r} is not known here, and the service cannot be asked: {error}"
            ) from error
        self._local.remember([tool], asked=tool_id if use_evolved else None)
        return tool

    def _promoted(self, original: Tool, entry: Promotion) -> Tool:
        return in_place_of(original, entry, self._local.all())
