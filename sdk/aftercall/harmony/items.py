"""What a Harmony stream holds: text, calls, and results of calls."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from aftercall.json_values import JsonObject


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
