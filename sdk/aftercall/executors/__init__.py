"""Executors: how a tool is run here: as a Python callable, a command line, or over MCP.

`McpExecutor` needs FastMCP (extra `gateway`) and stands in `aftercall.executors.mcp`.
"""

from aftercall.executors.command import CommandExecutor
from aftercall.executors.protocol import Executor, ExecutorResult, Executors, ToolRefusedError
from aftercall.executors.python import PythonExecutor
from aftercall.outcomes import ToolFailedError

__all__ = [
    "CommandExecutor", "Executor", "ExecutorResult", "Executors", "PythonExecutor",
    "ToolFailedError", "ToolRefusedError",
]  # fmt: skip
