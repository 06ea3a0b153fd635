"""What became of a tool call of the OpenAI Agents SDK, where the SDK shows it as a text."""

import inspect
from collections.abc import Callable
from typing import Any

from agents import (
    AgentsException,
    FunctionTool,
    ModelBehaviorError,
    ToolTimeoutError,
    default_tool_error_function,
)
from agents.tool import (
    default_tool_timeout_error_message,
    resolve_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext

from aftercall.adapters.hooks_results import HookResultReader
from aftercall.models.calls import ExecutionError

_REFUSED = "Invalid JSON input for tool "
"""The SDK begins so where it refuses arguments, before it calls the function."""

_INVALID_PARAMS = "-32602"
"""JSON-RPC: refused before it ran. The SDK's words say so, and no details by default."""


class AgentsReader(HookResultReader):
    """Exceptions as the SDK raises them; results as for any hook. One for each call."""

    def __init__(self) -> None:
        self._has_run = False

    def has_run(self) -> bool:
        """Whether the exception read last is the function's own, and none of the SDK's."""
        return self._has_run

    def read_exception(self, error: Exception) -> ExecutionError:
        """The tool's exception, or the framework's refusal of the arguments."""
        self._has_run = not isinstance(error, AgentsException)
        # The SDK wraps a tool's own cancellation, for failure functions take exceptions only.
        cancelled = getattr(error, "cancelled_error", None)
        if isinstance(cancelled, BaseException):
            return ExecutionError(type=type(cancelled).__name__, message=str(error)[:8000])
        read = super().read_exception(error)
        if _is_refusal(error, read.message):
            return read.model_copy(update={"code": _INVALID_PARAMS})
        return read


def _is_refusal(error: Exception, message: str) -> bool:
    """Whether the SDK refused the arguments; a tool that runs an agent may raise the same."""
    if type(error) is not ModelBehaviorError or not message.startswith(_REFUSED):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_globals.get("__name__") == FunctionTool.__module__


class FailurePolicy:
    """What a tool does about a failure.

    Args:
        tool: the tool.
        context: of one of its calls.
        ours: the failure function that records what it is given.
    """

    def __init__(
        self, tool: FunctionTool, context: ToolContext[Any], *, ours: Callable[..., object]
    ) -> None:
        self._tool = tool
        self._context = context
        self._function = resolve_function_tool_failure_error_function(tool, context)

        self._is_default = self._function is default_tool_error_function
        self._is_ours = self._function == ours

    @property
    def hides_failures(self) -> bool:
        """Whether a failure of the tool ends as a result that nobody can tell from others."""
        has_own_function = not (self._function is None or self._is_ours or self._is_default)
        return has_own_function or self._tool.timeout_error_function is not None

    def framework_error(self, result: object) -> ExecutionError | None:
        """The failure in what the SDK itself says in a tool's place, word for word; else None."""
        seconds = self._tool.timeout_seconds
        if seconds is not None and result == default_tool_timeout_error_message(
            tool_name=self._tool.name, timeout_seconds=seconds
        ):
            return ExecutionError(type="ToolTimeoutError", message=str(result))
        if self._is_default and result == default_tool_error_function(self._context, Exception()):
            return ExecutionError(type="ToolError", message=str(result))
        return None

    async def text_for(self, error: Exception) -> str | None:
        """What the tool itself has the model read; None where it leaves that to others."""
        if isinstance(error, ToolTimeoutError):
            return await self._text_for_timeout(error)
        if self._function is None or self._is_default or self._is_ours:
            return None
        return await _text(self._function(self._context, error))

    def raises(self, error: Exception) -> bool:
        """Whether the run ends with the error."""
        if isinstance(error, ToolTimeoutError):
            return self._tool.timeout_behavior == "raise_exception"
        return self._function is None

    async def _text_for_timeout(self, error: ToolTimeoutError) -> str | None:
        function = self._tool.timeout_error_function
        if function is not None:
            return await _text(function(self._context, error))
        return default_tool_timeout_error_message(
            tool_name=self._tool.name, timeout_seconds=self._tool.timeout_seconds or 0.0
        )


async def _text(said: Any) -> str:
    return str(await said if inspect.isawaitable(said) else said)
