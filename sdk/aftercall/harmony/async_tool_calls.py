"""The driver of Harmony streams: their calls run, and told to sinks.

The source of the synchronous driver too, which `make generate` writes.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable

from aftercall.background import each
from aftercall.events import PlannedCall, ToolCalls
from aftercall.harmony.calls import (
    CallExecutor,
    HarmonyCall,
    HarmonyItem,
    NoOpExecutor,
    Ran,
    failed,
    result_item,
)
from aftercall.harmony.parser import MAX_PAYLOAD_BYTES, HarmonyParser

DOUBTFUL = "tool_call_doubtful"
"""`error_type` of a call that was not run, for it may be text of another call's arguments."""

_WHY_DOUBTFUL = (
    "the call was not run, for it may be text of an earlier call whose arguments broke off; "
    "make the call again in a message of its own"
)


class AsyncHarmonyToolCalls:
    """Reads a stream, runs its calls one after the other, and tells of them.

        tool_calls = HarmonyToolCalls(ToolCalls("request-1", [sink]), Dispatcher({"add": add}))
        for item in tool_calls.stream(chunks): ...

    For each call: `ToolCallPlanned` as soon as it is whole, then it is run, then `ToolCallResult`,
    and its result is inserted behind it as a `HarmonyResult`. A call whose payload cannot be read
    is told and answered with an error, and so is one that may be text of another call's arguments
    (`tool_call_doubtful`). The parser's items are passed on as they are.

    Where `feed` is interrupted while a call runs (a cancelled task, Ctrl-C), that call ends as
    `cancelled`.

    Not safe for several threads at once: a stream has an order.

    Args:
        calls: gives the calls of the request their numbers, and tells the sinks.
        executor: runs them; by default nothing is run and `{"ok":true}` is the result (seed 001).
        max_payload_bytes: see `HarmonyParser`.
    """

    def __init__(
        self,
        calls: ToolCalls,
        executor: CallExecutor = NoOpExecutor(),  # noqa: B008  # it has no state
        *,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
    ) -> None:
        self._calls = calls
        self._executor = executor
        self._parser = HarmonyParser(max_payload_bytes)

    async def feed(self, chunk: str) -> list[HarmonyItem]:
        """What `chunk` completes, with the results of the calls in it."""
        return await self._run_all(self._parser.feed(chunk))

    async def close(self) -> list[HarmonyItem]:
        """What the end of the stream completes. Another stream may follow."""
        return await self._run_all(self._parser.close())

    async def stream(
        self, chunks: AsyncIterable[str] | Iterable[str]
    ) -> AsyncIterator[HarmonyItem]:
        """All items of a stream, which is then closed."""
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
                planned, ran = self._plan(item)
                if planned is not None:
                    ran = await self._run(self._executor, item, planned)
                made.append(result_item(item, ran))
        return made

    @staticmethod
    async def _run(executor: CallExecutor, call: HarmonyCall, planned: PlannedCall) -> Ran:
        try:
            ran = await executor.run_async(call)
        except Exception as error:  # noqa: BLE001  # an executor of somebody else
            ran = failed(error)
        except BaseException:
            planned.abandon()
            raise
        if ran.error_type is None:
            planned.ok(ran.result)
        else:
            planned.error(ran.error_type, ran.message)
        return ran

    def _plan(self, call: HarmonyCall) -> tuple[PlannedCall | None, Ran]:
        """A call that is to be run; if there is none, how it went."""
        if call.arguments is None:
            error_type, message = call.error_type or "Error", call.message or ""
            self._calls.unreadable(call.tool, call.payload, error_type=error_type, message=message)
            return None, Ran(error_type=error_type, message=message)
        planned = self._calls.planned(call.tool or "unknown", call.arguments)
        if call.doubtful:
            planned.refused(DOUBTFUL, _WHY_DOUBTFUL)
            return None, Ran(error_type=DOUBTFUL, message=_WHY_DOUBTFUL)
        return planned, Ran()
