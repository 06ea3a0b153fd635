"""Executors: how a tool is run here: as a Python callable, a command line, or over MCP.

`McpExecutor` needs FastMCP (extra `gateway`) and stands in `aftercall.executors.mcp`.
"""

from aftercall.executors.command import Command, CommandExecutor
from aftercall.executors.failures import ToolFailedError, ToolRefusedError
from aftercall.executors.protocol import Executor, ExecutorResult, Executors
from aftercall.executors.python import PythonExecutor

__all__ = [
    "Command",
    "CommandExecutor",
    "Executor",
    "ExecutorResult",
    "Executors",
    "PythonExecutor",
    "ToolFailedError",
    "ToolRefusedError",
]
