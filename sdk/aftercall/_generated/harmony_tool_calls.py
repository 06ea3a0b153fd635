"""The driver of Harmony streams: their calls run, and shown to sinks."""

# Made by `make generate` from harmony/async_tool_calls.py; edit that.

from collections.abc import Iterable, Iterator

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


class HarmonyToolCalls:
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

    def feed(self, chunk: str) -> list[HarmonyItem]:
        """Return what `chunk` completes, with the results of the calls in it."""
        return self._run_all(self._parser.feed(chunk))

    def close(self) -> list[HarmonyItem]:
        """Return what the end of the stream completes. Another stream may follow."""
        return self._run_all(self._parser.close())

    def stream(self, chunks: Iterable[str]) -> Iterator[HarmonyItem]:
        """Yield all items of a stream, which is then closed."""
        for chunk in chunks:
            for item in self.feed(chunk):
                yield item
        for item in self.close():
            yield item

    def _run_all(self, items: list[HarmonyItem]) -> list[HarmonyItem]:
        made: list[HarmonyItem] = []
        for item in items:
            made.append(item)
            if isinstance(item, HarmonyCall):
                made.append(result_item(item, self._run_call(item)))
        return made

    def _run_call(self, call: HarmonyCall) -> Ran:
        if call.arguments is None:
            error_type, message = call.error_type or "Error", call.message or ""
            self._calls.unreadable(call.tool, call.payload, error_type=error_type, message=message)
            return Ran(error_type=error_type, message=message)
        planned = self._calls.planned(call.tool or "unknown", call.arguments)
        try:
            ran = self._executor.run(call)
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
