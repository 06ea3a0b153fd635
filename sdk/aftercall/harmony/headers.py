"""Headers: who speaks, in which channel, to whom.

    <|start|>ROLE to=RECIPIENT<|channel|>CHANNEL to=RECIPIENT <|constrain|>TYPE<|message|>

Every part may be missing, the recipient stands in either place, the type with or without its
marker. What models really write is laxer still: https://github.com/openai/harmony/issues/80 and
https://github.com/ggml-org/llama.cpp/issues/27720 show headers that never come to `<|message|>`.
"""

import re
from dataclasses import dataclass
from typing import Literal

from aftercall.bounded import bounded_text

MAX_HEADER_CHARS = 512
"""Markers included. A real header has some 80; what is longer is text whose marker is missing."""

MAX_NAME_CHARS = 256
"""Of a tool's name, as the wire models have it."""

PSEUDO_CHANNEL = "tool"
"""The channel whose payload names the tool and its arguments (seed 001)."""

_FUNCTIONS = "functions."
_ROLES = frozenset({"assistant", "user", "system", "developer", "tool"})
_CHANNELS = frozenset({"analysis", "commentary", "final", PSEUDO_CHANNEL})
_TYPES = frozenset({"json", "code"})
_SELVES = frozenset({"assistant", "user", "system", "developer", "all"})
"""Recipients that are no tools."""

_SECTION = re.compile(r"<\|(channel|constrain)\|>")
_WORD = re.compile(r"\S+")

MAX_SECTIONS = 3
"""Markers within a header; real ones have two. It bounds what a header without an end makes anew:
no character is read more than this often."""

OPENING = re.compile(r"\s*(?:t|to|to=\S*\s*)?")
"""What a stream may begin with when the `<|start|>assistant` before it was part of the prompt.
Any beginning of a match is a match, so that it can be asked of text that is still coming."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header, read. `complete` is False when its `<|message|>` never came."""

    role: str = "assistant"
    channel: str | None = None
    recipient: str | None = None
    complete: bool = True

    @property
    def kind(self) -> Literal["text", "call", "result"]:
        """Only the assistant calls; only who is none of the five roles is a tool that answers."""
        if self.role == "assistant":
            to_tool = self.recipient is not None and self.recipient not in _SELVES
            return "call" if to_tool or self.channel == PSEUDO_CHANNEL else "text"
        if self.role in _ROLES - {"tool"}:
            return "text"
        answers = self.recipient == "assistant" or "." in self.role or self.role == "tool"
        return "result" if answers else "text"


def tool_name(recipient: str) -> str | None:
    """The name of the tool behind a recipient; None when nothing is left of it."""
    return bounded_text(recipient.strip().removeprefix(_FUNCTIONS), MAX_NAME_CHARS) or None


def read_header(raw: str, *, complete: bool = True) -> tuple[Header, str]:
    """The header, and the rest of `raw` from the first word on that does not belong to one.

    Args:
        raw: what stands between `<|start|>` and `<|message|>`, with the markers between.
        complete: whether `<|message|>` came. Only then is an unknown first word a role or a
            channel, and the rest of no interest.
    """
    role, channel, recipient, begin, section = "", None, None, 0, "role"
    while True:
        marker = _SECTION.search(raw, begin)
        end = marker.start() if marker else len(raw)
        for number, found in enumerate(_WORD.finditer(raw, begin, end)):
            word = found[0]
            if word.startswith("to="):
                recipient = recipient or bounded_text(word[3:], MAX_HEADER_CHARS) or None
            elif number == 0 and section == "role" and (complete or word in _ROLES):
                role = bounded_text(word, MAX_NAME_CHARS)
            elif number == 0 and section == "channel" and (complete or word in _CHANNELS):
                channel = channel if channel in _CHANNELS else bounded_text(word, MAX_NAME_CHARS)
            elif complete or (word in _TYPES and (recipient or section == "constrain")):
                continue
            else:
                return Header(role or "assistant", channel, recipient, complete), raw[
                    found.start() :
                ]
        if marker is None:
            return Header(role or "assistant", channel, recipient, complete), ""
        begin, section = marker.end(), marker[1]
