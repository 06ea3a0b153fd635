"""The markup of Harmony: markers, headers, and payloads while they come."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from aftercall.json_values import bounded_text

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
class MessageHeader:
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


def read_header(raw: str, *, complete: bool = True) -> tuple[MessageHeader, str]:
    """The header, and the rest of `raw` from the first word on that does not belong to one.

    It is `complete` when `<|message|>` came. Only then is an unknown first word a role or a
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
                return MessageHeader(role or "assistant", channel, recipient, complete), raw[
                    found.start() :
                ]
        if marker is None:
            return MessageHeader(role or "assistant", channel, recipient, complete), ""
        begin, section = marker.end(), marker[1]


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
        parts = MARKER.split(text)  # texts and names of markers, by turns
        tokens = [Token("", parts[0])]
        for name, after in zip(parts[1::2], parts[2::2], strict=True):
            tokens += [Token(name, f"<|{name}|>"), Token("", after)]
        return [token for token in tokens if token.text]

    def end(self) -> list[Token]:
        """The end of the text: what was held back is no marker."""
        held, self.held = self.held, ""
        return [Token("", held)] if held else []


MAX_RESCANS = 3
"""How often a marker may be held in a payload that is then cut before it. After that it ends any
payload at once, inside a string or not. So the work is bounded, however markers are nested."""

_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_JSON_BEGINS = '{["'


class JsonStrings:
    """Whether JSON text that comes in pieces stands inside a string."""

    def __init__(self) -> None:
        self.inside = False
        self._escape = ""  # a backslash at the end of a piece, whose character is still to come

    def read(self, text: str) -> None:
        """Go on by a piece."""
        text = self._escape + text
        self._escape = "\\" if (len(text) - len(text.rstrip("\\"))) % 2 else ""
        marks = _ESCAPE_OR_QUOTE.findall(text, 0, len(text) - len(self._escape))
        self.inside ^= marks.count('"') % 2 == 1


class Payload:
    """The payload of one message; `is_json` is None where that shows in its first character."""

    def __init__(self, header: MessageHeader, *, is_json: bool | None, max_bytes: int) -> None:
        self.header = header
        self.is_json = is_json
        self.tokens: list[Token] = []
        self.size = 0
        """Bytes of UTF-8 held."""
        self.first: int | None = None
        """Which token is the first provisional marker."""
        self.strings = JsonStrings()
        self._read = 0
        self._max_bytes = max_bytes

    def is_end(self, token: Token) -> bool:
        """Whether a marker ends the payload here and now."""
        if not token.marker:
            return False
        if not self.is_json:
            return token.marker in ENDING
        self._read_strings()
        if not self.strings.inside:
            return True
        return token.marker in ENDING and token.rescans >= MAX_RESCANS

    def add(self, token: Token) -> Token | None:
        """Hold a token; None when it fits, otherwise the part that does not."""
        room = self._max_bytes - self.size
        size = _size(token.text[: room + 1])
        rest = None
        if size > room:
            fits, beyond = _split(token.text, room)
            if token.marker or not fits:
                return token
            token, rest = token._replace(text=fits), token._replace(text=beyond)
        elif token.marker in ENDING and self.is_json and self.first is None:
            self.first = len(self.tokens)
        if self.is_json is None and (begin := token.text.lstrip()[:1]):
            self.is_json = begin in _JSON_BEGINS
        self.tokens.append(token)
        self.size += size
        return rest

    def text(self, *, cut: bool = False) -> str:
        """What is held, or only what stands before the first provisional marker."""
        return "".join([token.text for token in self.tokens[: self.first if cut else None]])

    def after_cut(self) -> list[Token]:
        """The first provisional marker and all that is held after it, to be scanned again."""
        return [token._replace(rescans=token.rescans + 1) for token in self.tokens[self.first :]]

    def skipping(self) -> JsonStrings | None:
        """The state of the strings where it broke off, for JSON."""
        self._read_strings()
        return self.strings if self.is_json else None

    def _read_strings(self) -> None:
        # Only when it matters: most payloads come to their end without a marker in between.
        if self._read < len(self.tokens):
            self.strings.read("".join([token.text for token in self.tokens[self._read :]]))
            self._read = len(self.tokens)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _split(text: str, size: int) -> tuple[str, str]:
    """The longest beginning of at most `size` bytes of UTF-8, and the rest."""
    encoded = text[: size + 1].encode("utf-8", "surrogatepass")
    while size > 0 and encoded[size] & 0xC0 == 0x80:  # inside a character
        size -= 1
    fits = encoded[:size].decode("utf-8", "surrogatepass")
    return fits, text[len(fits) :]
