"""Tools that are Python callables of this process."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from aftercall.background import in_thread
from aftercall.executors import protocol
from aftercall.json_values import JsonValue
from aftercall.models.tools import Tool, same_version

ToolFunction = Callable[..., Any]
"""Returns its result, or an awaitable of it."""


class PythonExecutor:
    """Runs callables that were registered under a tool's id or name.

    They return their result, or an `aftercall.outcomes.Outcome` to say more about it.

    An object as input becomes keyword arguments, any other value the only argument, None no
    argument. Anything that does not fit the signature is rejected before the callable runs. Plain
    functions run in a thread of their own, `async` ones on the loop. A thread cannot be stopped: a
    function that takes too long fails with `Timeout` and runs on unseen.

    `functions` are by tool id or name; more can be added by `register`.
    """

    def __init__(self, functions: Mapping[str, ToolFunction] | None = None) -> None:
        self._functions: dict[str, dict[str | None, ToolFunction]] = {}
        for tool, function in (functions or {}).items():
            self.register(tool, function)

    def register(self, tool: str, function: ToolFunction, *, version: str | None = None) -> None:
        """Add a callable for a tool's id or name; one for the same version is replaced.

        One without a version stands for any as registered, never for a promoted one: other code.
        """
        self._functions.setdefault(tool, {})[version] = function

    def fits(self, tool: Tool) -> bool:
        """Return whether a callable for this very version is registered."""
        return self._find_function(tool) is not None

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = protocol.DEFAULT_TIMEOUT_S
    ) -> protocol.ExecutorResult:
        """Call it; the result is made plain JSON; raises as `Executor.execute`."""
        if (function := self._find_function(tool)) is None:
            raise protocol.ToolRefusedError(
                f"no Python callable is registered for the tool {protocol.tool_title(tool)}; "
                "add it with PythonExecutor.register"
            )
        return protocol.result_of(
            await call_function(
                bind_call(function, input_data, protocol.tool_title(tool)), timeout_s
            )
        )

    def _find_function(self, tool: Tool) -> ToolFunction | None:
        is_promoted = tool.is_evolved or protocol.evolved_file_of(tool) is not None
        for key in (tool.tool_id, tool.name):
            versions = self._functions.get(key, {})
            for version, function in versions.items():
                if version and tool.version and same_version(version, tool.version):
                    return function
            if None in versions and not is_promoted:
                return versions[None]
        return None


def bind_call(function: ToolFunction, input_data: JsonValue, tool: str) -> partial[Any]:
    """Return the call of a function with an input.

    ToolFailedError where that does not fit the signature.

    An object becomes keyword arguments, any other value the only argument, None none.
    """
    if isinstance(input_data, dict):
        call = partial(function, **input_data)
    else:
        call = partial(function, *([] if input_data is None else [input_data]))
    with suppress(ValueError):  # some builtins show no signature
        signature = inspect.signature(function)
        try:
            signature.bind(*call.args, **call.keywords)
        except TypeError as error:
            raise protocol.rejected_input(
                f"the input does not fit the tool {tool}: {error}"
            ) from error
    return call


async def call_function(call: partial[Any], timeout_s: float) -> Any:
    """Return what a coroutine function returns on this loop, any other in a daemon thread."""
    async with protocol.failing_as_tool(
        timeout_s, "what it has done is done, and a thread runs on"
    ):
        if inspect.iscoroutinefunction(call.func):
            return await call()
        returned = await in_thread(call)
        return await returned if inspect.isawaitable(returned) else returned
