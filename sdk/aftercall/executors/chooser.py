"""Which executor runs which tool."""

from pathlib import Path

from aftercall.executors.failures import ToolRefusedError
from aftercall.executors.protocol import (
    DEFAULT_TIMEOUT_S,
    Executor,
    ExecutorResult,
    Scripted,
    titled,
)
from aftercall.json_values import JsonValue
from aftercall.models.tools import Tool


class Executors:
    """Several executors as one: the first that fits a tool runs it.

    The order matters where two fit: put `PythonExecutor` first, so that a callable registered in
    this process goes before what the registry says.

    Args:
        executors: in the order in which they are asked.
    """

    def __init__(self, *executors: Executor) -> None:
        self._executors = executors

    def fits(self, tool: Tool) -> bool:
        """Whether any of them fits."""
        return any(executor.fits(tool) for executor in self._executors)

    def script_of(self, tool: Tool) -> Path | None:
        """The script of a tool as registered, when the executor that fits runs one."""
        for executor in self._executors:
            if executor.fits(tool):
                return executor.script_of(tool) if isinstance(executor, Scripted) else None
        return None

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run the tool by the first that fits.

        Raises:
            ToolFailedError: as that executor's.
            ToolRefusedError: also when none fits.
        """
        for executor in self._executors:
            if executor.fits(tool):
                return await executor.execute(tool, input_data, timeout_s=timeout_s)
        raise ToolRefusedError(
            f"nothing here runs the tool {titled(tool)}: register a callable for it, allow the "
            "command of its implementation, or name its MCP server"
        )
