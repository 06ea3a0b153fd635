"""What runs a call that stands in a stream, and the executor that runs none (seed 001)."""

import json
from dataclasses import dataclass
from typing import Protocol

from aftercall.harmony.items import HarmonyCall, HarmonyResult
from aftercall.json_values import JsonValue, make_json_value

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Ran:
    """How a call went: what it returned, or with `error_type` why it failed."""

    result: JsonValue = None
    error_type: str | None = None
    message: str = ""


class CallExecutor(Protocol):
    """Runs the calls of a stream, one after the other.

    What it raises becomes an error result; `Dispatcher` shows how to do better than that.
    """

    def run(self, call: HarmonyCall) -> Ran:
        """Run a call that has arguments, for `HarmonyToolCalls`."""

    async def run_async(self, call: HarmonyCall) -> Ran:
        """The same, for `AsyncHarmonyToolCalls`."""


class NoOpExecutor:
    """Runs nothing and says `{"ok":true}`: calls can be watched before they are run (seed 001)."""

    def run(self, call: HarmonyCall) -> Ran:
        """The canned result."""
        del call
        return Ran({"ok": True})

    async def run_async(self, call: HarmonyCall) -> Ran:
        """The canned result."""
        return self.run(call)


def result_item(call: HarmonyCall, ran: Ran) -> HarmonyResult:
    """The result as it is inserted into the stream: a text as it is, anything else as JSON.

    An error is told to the model, which may then call otherwise.
    """
    value = make_json_value(ran.result)
    if ran.error_type is not None:
        value = {"error": {"type": ran.error_type, "message": ran.message}}
    return HarmonyResult(
        tool=call.tool,
        text=value if isinstance(value, str) else _COMPACT.encode(value),
        status="ok" if ran.error_type is None else "error",
        recipient=call.recipient,
    )
