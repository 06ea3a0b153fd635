"""The seven markers of Harmony, found in text that comes in any pieces.

https://github.com/openai/harmony/blob/main/docs/format.md, "Special Tokens".
"""

import re
from typing import NamedTuple

NAMES = ("start", "end", "message", "channel", "constrain", "return", "call")

ENDING = frozenset({"start", "end", "channel", "return", "call"})
"""Markers that end a message. `start` and `channel` do so where a model left out the `end`."""

HEADING = frozenset({"channel", "constrain", "message"})
"""Markers within a header, or at its end."""

MARKER = re.compile(rf"<\|({'|'.join(NAMES)})\|>")

_LONGEST = max(len(name) for name in NAMES) + len("<||>")

_BEGINNINGS = frozenset(
    f"<|{name}|>"[:length] for name in NAMES for length in range(1, len(name) + len("<||>"))
)


class Token(NamedTuple):
    """A marker, or text without any."""

    marker: str
    """Its name; empty for text."""

    text: str
    rescans: int = 0
    """How often it has been held in a payload that was then cut before it."""


class MarkerReader:
    """Splits text at markers. Holds back at most 12 characters: those that may begin a marker."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = ""

    def feed(self, chunk: str) -> list[Token]:
        """The tokens that are whole by now. A text may be split anywhere, a marker never."""
        text = self.held + chunk
        at = text.rfind("<", max(0, len(text) - _LONGEST + 1))
        if at >= 0 and text[at:] in _BEGINNINGS:
            self.held = text[at:]
            text = text[:at]
        else:
            self.held = ""
        if "<|" not in text:
            return [Token("", text)] if text else []
        tokens = []
        done = 0
        for found in MARKER.finditer(text):
            if found.start() > done:
                tokens.append(Token("", text[done : found.start()]))
            tokens.append(Token(found[1], found[0]))
            done = found.end()
        if done < len(text):
            tokens.append(Token("", text[done:]))
        return tokens

    def end(self) -> list[Token]:
        """The end of the text: what was held back is no marker."""
        held, self.held = self.held, ""
        return [Token("", held)] if held else []
