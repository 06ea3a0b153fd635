"""What a Harmony stream holds: text, calls, and results of calls, and what runs the calls."""

import json
import re
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from aftercall.harmony.markup import MAX_NAME_CHARS
from aftercall.json_values import JsonObject, JsonValue, clean_text, make_json_value


@dataclass(frozen=True, slots=True)
class HarmonyText:
    """A piece of a message's text, as it came. The pieces of one message share its number."""

    channel: str | None
    """`analysis`, `commentary`, `final` or what else was said; None where none was said, as for
    system and user messages, and for text outside of any message (a refusal may come so)."""

    text: str
    role: str = "assistant"
    message: int = 0
    """Number of the message in its stream, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonyCall:
    """A call that the model makes: one to be run has `arguments`, any other an `error_type`."""

    tool: str | None
    """Its name; None where none can be read. Of `functions.NAME` it is NAME, any other recipient
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

    doubtful: bool = False
    """It may be text inside a string of an earlier payload, and no call at all: that payload was
    cut, at a marker in an open string, because it could not be read to its end. What is doubtful
    should not be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonyResult:
    """What a tool answered: told in the stream, or run here and inserted into it."""

    tool: str | None
    text: str
    status: Literal["ok", "error"] = "ok"
    """A result that stands in the stream is always `ok`: its text is not read for failures."""

    truncated: bool = False
    """Whether `text` is only the beginning, up to the limit of a payload."""

    recipient: str | None = None
    """The tool as the header has it, or as it was called; see `render_tool_result`."""

    channel: str = "commentary"
    """What it is outwardly (seed 001)."""

    type: Literal["tool_result"] = "tool_result"
    """What it is here (seed 001)."""


HarmonyItem: TypeAlias = HarmonyText | HarmonyCall | HarmonyResult


def outward(item: HarmonyItem) -> HarmonyText | None:
    """What a reader of the stream is shown: text, results as commentary, calls not at all."""
    if isinstance(item, HarmonyResult):
        return HarmonyText(item.channel, item.text, "tool")
    return item if isinstance(item, HarmonyText) else None


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


_FORBIDDEN = re.compile(r"[^A-Za-z0-9_.:/-]")


def render_tool_result(result: HarmonyResult) -> str:
    """`<|start|>functions.NAME to=assistant<|channel|>commentary<|message|>...<|end|>`.

    The tool's name is that of the call's header; in names, other characters than letters, digits
    and `_ . : / -` become `_`.
    """
    name = result.recipient or f"functions.{result.tool or 'unknown'}"
    role = _FORBIDDEN.sub("_", name[:MAX_NAME_CHARS])
    channel = _FORBIDDEN.sub("_", result.channel[:MAX_NAME_CHARS])
    header = f"<|start|>{role} to=assistant<|channel|>{channel}<|message|>"
    return f"{header}{neutralised(result.text)}<|end|>"


def neutralised(text: str) -> str:
    """The text with every `<|` broken up; JSON stays the same JSON."""
    cleaned = clean_text(text)
    if "<|" not in cleaned:
        return cleaned
    return cleaned.replace("<|", "\\u003c|" if is_json(cleaned) else "< |")


def is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
