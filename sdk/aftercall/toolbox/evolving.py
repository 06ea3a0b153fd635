"""Evolving a tool of a toolbox: what it is on this machine, and where it is promoted."""

from collections.abc import Callable, Sequence
from pathlib import Path

from aftercall.errors import AftercallError, ConfigurationError
from aftercall.evolution import (
    Checks,
    EvolutionResult,
    Evolver,
    EvolvingTool,
    PastFailure,
    evolve,
)
from aftercall.executors.protocol import Scripted, titled
from aftercall.models import (
    Evolution,
    Promotion,
    PromotionHistory,
    PromotionStatus,
    SimilarFailure,
    Tool,
)
from aftercall.toolbox.parts import Parts
from aftercall.toolbox.resolver import ServiceLink, entry_for

FIRST_VERSION = "1.0.0"
"""Of a tool that was registered without one (seed 002)."""


async def evolve_here(
    toolbox: Parts,
    tool: Tool,
    evolver: Evolver,
    *,
    promotions_file: Path,
    checks: Callable[[Path], Checks | None],
    reason: str,
    mutation_hint: str,
    scenario: str | None,
    failures: Sequence[PastFailure],
) -> EvolutionResult:
    """Evolve a tool as it is registered.

    Raises:
        ConfigurationError: it is no script of this machine.
    """
    executors = toolbox.executors
    script = executors.script_of(tool) if isinstance(executors, Scripted) else None
    if script is None:
        raise ConfigurationError(
            f"the tool {titled(tool)} is no script of this machine, so it cannot be evolved; its "
            "implementation must name one as {tool_dir}/name.py, for a CommandExecutor"
        )
    return await evolve(
        EvolvingTool(
            tool_id=tool.tool_id,
            namespace=await _promoted_in(toolbox, tool),
            script=script,
            version=tool.version or FIRST_VERSION,
            description=tool.description,
            input_schema=tool.input_schema,
            checks=checks(script),
        ),
        evolver,
        promotions_file=promotions_file,
        reason=reason,
        mutation_hint=mutation_hint,
        scenario=scenario,
        failures=failures,
        service=None if toolbox.link.client is None else _Asked(toolbox.link),
        redactor=toolbox.link.redactor,
    )


class _Asked:
    """The service as the evolution asks it: through the toolbox's link, so in bounded time."""

    def __init__(self, link: ServiceLink) -> None:
        self._link = link

    async def tool_failures(
        self, tool_id: str, *, scenario: str | None = None, limit: int | None = None
    ) -> list[SimilarFailure]:
        return await self._link.ask(
            lambda client: client.tool_failures(tool_id, scenario=scenario, limit=limit)
        )

    async def find_evolutions(self, scenario: str, *, limit: int = 5) -> list[Evolution]:
        return await self._link.ask(lambda client: client.find_evolutions(scenario, limit=limit))

    async def promotion_history(self, namespace: str) -> PromotionHistory:
        return await self._link.ask(lambda client: client.promotion_history(namespace))

    async def promote(self, namespace: str, promotion: Promotion) -> PromotionStatus:
        return await self._link.ask(lambda client: client.promote(namespace, promotion))


async def _promoted_in(toolbox: Parts, tool: Tool) -> str:
    """Where it is promoted already; else the namespace that it is the only original of, or its id.

    The id of a tool is a namespace too.
    """
    promotions = toolbox.local.promotions()
    if tool.namespace is None or tool.namespace == tool.tool_id or tool.tool_id in promotions:
        return tool.tool_id
    if entry_for(tool, promotions) is not None:
        return tool.namespace
    try:
        tools = await toolbox.link.ask(lambda client: client.list_tools())
    except AftercallError:
        tools = toolbox.local.all()
    others = (
        each
        for each in tools
        if each.tool_id != tool.tool_id
        and tool.namespace in (each.namespace, each.tool_id)
        and each.evolved_from is None
    )
    return tool.tool_id if any(others) else tool.namespace
