"""What a Harmony stream holds: text, calls, and results of calls; and what runs the calls."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from aftercall.background import within_sync
from aftercall.executors.protocol import DEFAULT_TIMEOUT_S, failure_of
from aftercall.executors.python import ToolFunction, bind_call, call_function
from aftercall.explain import nearest_name
from aftercall.json_values import JsonObject, JsonValue, bounded_json, bounded_text, make_json_value
from aftercall.outcomes import Outcome, ToolFailedError, make_error
from aftercall.redaction import DEFAULT_REDACTOR


@dataclass(frozen=True, slots=True)
class HarmonyText:
    """A piece of a message's text, as it came. The pieces of one message share its number."""

    channel: str | None
    """`analysis`, `commentary`, `final` or what else was stated; None where none was stated, as for
    system and user messages, and for text outside of any message (a refusal may come so)."""
    text: str
    role: str = "assistant"
    message: int = 0
    """Number of the message in its stream, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonyCall:
    """A call that the model makes: one to be run has `arguments`, any other an `error_type`."""

    tool: str | None
    """Its name; None where none can be read. For `functions.NAME` it is NAME, any other recipient
    (`python`, `browser.search`) is the name as it is."""
    recipient: str | None = None
    """As the header has it; None in the pseudo-marker form."""
    channel: str | None = None
    arguments: JsonObject | None = None
    error_type: str | None = None
    message: str | None = None
    """What is wrong with the payload, in a sentence."""
    payload: str = ""
    """The first 200 characters of the payload, as they came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonyResult:
    """What a tool answered: shown in the stream, or run here and inserted into it."""

    tool: str | None
    text: str
    status: Literal["ok", "error"] = "ok"
    """A result that stands in the stream is always `ok`: its text is not read for failures."""
    truncated: bool = False
    """Whether `text` is only the beginning, up to the limit of a payload."""
    channel: str = "commentary"
    """What it is outwardly (seed 001)."""
    type: Literal["tool_result"] = "tool_result"
    """What it is here (seed 001)."""


HarmonyItem: TypeAlias = HarmonyText | HarmonyCall | HarmonyResult
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
        """Return the same, for `AsyncHarmonyToolCalls`."""


class NoOpExecutor:
    """Runs nothing and answers `{"ok":true}`: calls can be watched before they run (seed 001)."""

    def run(self, call: HarmonyCall) -> Ran:
        """Return the canned result."""
        del call
        return Ran({"ok": True})

    async def run_async(self, call: HarmonyCall) -> Ran:
        """Return the canned result."""
        return self.run(call)


def result_item(call: HarmonyCall, ran: Ran) -> HarmonyResult:
    """Return the result as it is inserted into the stream: a text as it is, anything else as JSON.

    An error is shown to the model, which may then call otherwise.
    """
    told: JsonValue = {"error": {"type": ran.error_type, "message": ran.message}}
    value = make_json_value(ran.result) if ran.error_type is None else told
    return HarmonyResult(
        tool=call.tool,
        text=value if isinstance(value, str) else _COMPACT.encode(value),
        status="ok" if ran.error_type is None else "error",
    )


def is_json(text: str) -> bool:
    """Return whether a text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


MAX_RESULT_CHARS = 32_000
"""Of a result that is inserted into the stream: some 8,000 tokens of the model's context."""
MAX_MESSAGE_CHARS = 1000
"""Of an error's message, for the model to read."""
_SHOWN_NAMES = 10


class Dispatcher:
    """Runs the callable that stands in `functions` under the call's name, and nothing else.

    A name is only ever looked up: it is no path, no attribute and no code. The arguments become
    keyword arguments; what does not fit the signature is rejected before the callable runs. A
    typed error (`aftercall.outcomes.Outcome`) and an exception are error results, with the
    message masked and bounded.

    `run` calls in the caller's thread and waits; a coroutine gets a loop and a thread of its own.
    `run_async` awaits coroutine functions, and runs plain ones in a thread.

    Args:
        functions: by name: `get_weather` for `functions.get_weather`, `browser.search`, `python`.
        timeout_s: seconds that a call may take, wherever it is awaited. A plain function cannot be
            stopped: under `run` it takes as long as it takes, under `run_async` it fails with
            `Timeout` and runs on unseen.
    """

    def __init__(
        self, functions: Mapping[str, ToolFunction], *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._functions = dict(functions)
        self._timeout_s = timeout_s

    def run(self, call: HarmonyCall) -> Ran:
        """Run it here and now."""
        try:
            bound_call = self._bind_call(call)
            is_async = inspect.iscoroutinefunction(bound_call.func)
            returned: Any = None if is_async else bound_call()
            if is_async or inspect.isawaitable(returned):
                call_later = bound_call if is_async else partial(_await_value, returned)
                ended = call_function(call_later, self._timeout_s)
                returned = within_sync(None, asyncio.run, ended)
            return _ended_run(returned)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a tool's
            return failed_run(error)

    async def run_async(self, call: HarmonyCall) -> Ran:
        """Run it next to the loop."""
        try:
            return _ended_run(await call_function(self._bind_call(call), self._timeout_s))
        except ToolFailedError as error:
            return failed_run(error)

    def _bind_call(self, call: HarmonyCall) -> partial[Any]:
        name = call.tool or ""
        if (function := self._functions.get(name)) is None:
            raise ToolFailedError(make_error("tool_not_found", self._not_found(name)), ran=False)
        return bind_call(function, call.arguments or {}, repr(name))

    def _not_found(self, name: str) -> str:
        if (near := nearest_name(name, self._functions)) is not None:
            return f"there is no tool {name!r}; did you mean {near!r}?"
        shown = ", ".join(map(repr, sorted(self._functions)[:_SHOWN_NAMES])) or "none"
        more = ", ..." if len(self._functions) > _SHOWN_NAMES else ""
        return f"there is no tool {name!r}; there are {shown}{more}"


def failed_run(error: BaseException) -> Ran:
    """Return a failure for the model to read, its message masked and bounded."""
    read = failure_of(error).error
    return Ran(
        error_type=read.type,
        message=bounded_text(DEFAULT_REDACTOR.text(read.message), MAX_MESSAGE_CHARS),
    )


def _ended_run(returned: object) -> Ran:
    return Ran(bounded_json(Outcome.coerce(returned).unwrap(), max_chars=MAX_RESULT_CHARS))


async def _await_value(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
