"""An executor that runs real callables, each by its name in a table."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

from aftercall.background import in_thread
from aftercall.bounded import bounded_json, bounded_text
from aftercall.executors.failures import rejected, timed_out, tool_error
from aftercall.executors.protocol import DEFAULT_TIMEOUT_S
from aftercall.harmony.items import HarmonyCall, Ran
from aftercall.json_values import JsonObject
from aftercall.outcomes import Outcome, ToolFailedError
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection.result_reader import read_exception

ToolFunction = Callable[..., Any]
"""Returns its result, or an awaitable of it."""

MAX_RESULT_CHARS = 32_000
"""Of a result that is inserted into the stream: some 8,000 tokens of the model's context."""

MAX_MESSAGE_CHARS = 1000
"""Of an error's message, for the model to read."""

_SHOWN_NAMES = 10

_CANCELLED = Ran(error_type="CancelledError", message="the tool cancelled itself")


class Dispatcher:
    """Runs the callable that stands in `functions` under the call's name, and nothing else.

    A name is only ever looked up: it is no path, no attribute and no code. The arguments become
    keyword arguments; what does not fit the signature is rejected before the callable runs. A
    typed error (`aftercall.outcomes.Outcome`) and an exception are error results, with the
    message masked and bounded.

    `run` calls in the caller's thread and waits; a coroutine gets a loop of its own, so it cannot
    be used within a running one. `run_async` awaits coroutine functions, and runs plain ones in a
    thread.

    Args:
        functions: by name: `get_weather` for `functions.get_weather`, `browser.search`, `python`.
        timeout_s: seconds that a call may take, wherever it is awaited. A plain function cannot be
            stopped: under `run` it takes as long as it takes, under `run_async` it fails with
            `Timeout` and runs on unseen.
        unpack: False passes the arguments as one object.
        redactor: masks secrets in the messages of errors.
        max_result_chars: a longer result is cut, in its texts and members.
    """

    def __init__(
        self,
        functions: Mapping[str, ToolFunction],
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        unpack: bool = True,
        redactor: Redactor = DEFAULT_REDACTOR,
        max_result_chars: int = MAX_RESULT_CHARS,
    ) -> None:
        self._functions = dict(functions)
        self._timeout_s = timeout_s
        self._unpack = unpack
        self._redactor = redactor
        self._max_result_chars = max_result_chars

    def run(self, call: HarmonyCall) -> Ran:
        """Run it here and now."""
        try:
            function, bound = self._bound(call)
            if inspect.iscoroutinefunction(function):
                _check_no_loop()
            returned = bound()
            if inspect.isawaitable(returned):
                returned = self._run_to_end(returned)
            return self._ended(returned)
        except asyncio.CancelledError:  # nobody can cancel a call that is not in a task
            return _CANCELLED
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a tool may raise anything
            return self._failed(error)

    async def run_async(self, call: HarmonyCall) -> Ran:
        """Run it beside the loop."""
        try:
            function, bound = self._bound(call)
            if inspect.iscoroutinefunction(function):
                return self._ended(await self._in_time(bound()))
            returned = await self._in_time(in_thread(partial(_in_thread, bound)))
            if inspect.isawaitable(returned):
                returned = await self._in_time(returned)
            return self._ended(returned)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this call: the tool gave up something of its own.
            return _CANCELLED
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as above
            return self._failed(error)

    def _bound(self, call: HarmonyCall) -> tuple[ToolFunction, Callable[[], Any]]:
        function = self._functions.get(call.tool or "")
        if function is None:
            raise ToolFailedError(
                tool_error("tool_not_found", self._not_found(call.tool or "")), ran=False
            )
        arguments: JsonObject = dict(call.arguments or {})
        bound = partial(function, **arguments) if self._unpack else partial(function, arguments)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some builtins tell none
            return function, bound
        try:
            signature.bind(*bound.args, **bound.keywords)
        except TypeError as error:
            raise rejected(f"the arguments do not fit the tool {call.tool!r}: {error}") from error
        return function, bound

    def _not_found(self, name: str) -> str:
        near = get_close_matches(name, self._functions, n=3)
        if near:
            cure = f"did you mean {' or '.join(map(repr, near))}?"
        else:
            shown = ", ".join(map(repr, sorted(self._functions)[:_SHOWN_NAMES]))
            cure = f"there are {shown}" if shown else "there is none"
            cure += ", ..." if len(self._functions) > _SHOWN_NAMES else ""
        return f"there is no tool {name!r}; {cure}"

    def _run_to_end(self, awaitable: Awaitable[Any]) -> Any:
        try:
            _check_no_loop()
        except ToolFailedError:
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise
        return asyncio.run(self._in_time(awaitable))

    async def _in_time(self, awaitable: Awaitable[Any]) -> Any:
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                return await awaitable
        except TimeoutError as error:
            if limit.expired():
                what = "what it has done until then is done; ask for less at once"
                raise timed_out(self._timeout_s, what) from error
            raise

    def _ended(self, returned: object) -> Ran:
        value = Outcome.coerce(returned).unwrap()
        return Ran(bounded_json(value, max_chars=self._max_result_chars))

    def _failed(self, error: BaseException) -> Ran:
        if isinstance(error, SystemExit):
            return Ran(error_type="SystemExit", message="the tool exited")
        assert isinstance(error, Exception)  # noqa: S101  # what `except` took
        read = read_exception(error)
        message = bounded_text(self._redactor.text(read.message), MAX_MESSAGE_CHARS)
        return Ran(error_type=read.type, message=message)


def _check_no_loop() -> None:
    """A loop cannot wait for another one within itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    message = "the tool is async and an event loop is running here; use AsyncHarmonyToolCalls"
    raise ToolFailedError(tool_error("AsyncTool", message), ran=False)


def _in_thread(bound: Callable[[], Any]) -> Any:
    try:
        return bound()
    except KeyboardInterrupt as error:
        # The tool's own, as keys interrupt the main thread only; it would end the event loop.
        message = "the tool raised it"
        raise ToolFailedError(tool_error("KeyboardInterrupt", message)) from error
