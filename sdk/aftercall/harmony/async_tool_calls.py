"""The driver of Harmony streams: their calls run, and shown to sinks.

The source of the synchronous driver too, which `make generate` writes.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable

from aftercall.background import each
from aftercall.events import ToolCalls
from aftercall.harmony.calls import (
    CallExecutor,
    HarmonyCall,
    HarmonyItem,
    NoOpExecutor,
    Ran,
    failed_run,
    result_item,
)
from aftercall.harmony.parser import HarmonyParser


class AsyncHarmonyToolCalls:
    """Reads a stream, runs its calls one after the other, and shows them.

        tool_calls = HarmonyToolCalls(ToolCalls("request-1", [sink]), Dispatcher({"add": add}))
        for item in tool_calls.stream(chunks): ...

    For each call: `ToolCallPlanned` as soon as it is whole, then it is run, then `ToolCallResult`,
    and its result is inserted behind it as a `HarmonyResult`. A call whose payload cannot be read
    is shown and answered with an error. The parser's items are passed on as they are.

    A call during which `feed` is interrupted (a cancelled task, Ctrl-C) ends as `cancelled`.

    Not safe for several threads at once: a stream has an order.

    Without an `executor` nothing is run, and `{"ok":true}` is the result (seed 001).
    """

    def __init__(
        self,
        calls: ToolCalls,
        executor: CallExecutor = NoOpExecutor(),  # noqa: B008  # it has no state
    ) -> None:
        self._calls = calls
        self._executor = executor
        self._parser = HarmonyParser()

    async def feed(self, chunk: str) -> list[HarmonyItem]:
        """Return what `chunk` completes, with the results of the calls in it."""
        return await self._run_all(self._parser.feed(chunk))

    async def close(self) -> list[HarmonyItem]:
        """Return what the end of the stream completes. Another stream may follow."""
        return await self._run_all(self._parser.close())

    async def stream(
        self, chunks: AsyncIterable[str] | Iterable[str]
    ) -> AsyncIterator[HarmonyItem]:
        """Yield all items of a stream, which is then closed."""
        async for chunk in each(chunks):
            for item in await self.feed(chunk):
                yield item
        for item in await self.close():
            yield item

    async def _run_all(self, items: list[HarmonyItem]) -> list[HarmonyItem]:
        made: list[HarmonyItem] = []
        for item in items:
            made.append(item)
            if isinstance(item, HarmonyCall):
                made.append(result_item(item, await self._run_call(item)))
        return made

    async def _run_call(self, call: HarmonyCall) -> Ran:
        if call.arguments is None:
            error_type, message = call.error_type or "Error", call.message or ""
            self._calls.unreadable(call.tool, call.payload, error_type=error_type, message=message)
            return Ran(error_type=error_type, message=message)
        planned = self._calls.planned(call.tool or "unknown", call.arguments)
        try:
            ran = await self._executor.run_async(call)
        except Exception as error:  # noqa: BLE001  # an executor of somebody else
            ran = failed_run(error)
        except BaseException:
            planned.abandon()
            raise
        if ran.error_type is None:
            planned.ok(ran.result)
        else:
            planned.error(ran.error_type, ran.message)
        return ran
