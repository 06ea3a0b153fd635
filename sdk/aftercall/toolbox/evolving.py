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
from aftercall.redaction import DEFAULT_REDACTOR
from aftercall.toolbox.parts import Parts
from aftercall.wire import Tool

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
    client = toolbox.link.client
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
        service=client,
        redactor=DEFAULT_REDACTOR if client is None else client.redactor,
    )


async def _promoted_in(toolbox: Parts, tool: Tool) -> str:
    """The namespace that a tool is the only original of; else its own id, which is one too."""
    if tool.namespace is None or tool.namespace == tool.tool_id:
        return tool.tool_id
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
