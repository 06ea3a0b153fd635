"""A payload while it comes: its size, and whether it stands inside a JSON string.

A marker inside an open string is provisional. If the payload comes to an end outside its strings
and can be read, the marker was data. If not, the string was never meant to be that long.
"""

import re

from aftercall.harmony.headers import Header
from aftercall.harmony.markers import ENDING, Token

MAX_RESCANS = 3
"""How often a marker may be held in a payload that is then cut before it. After that it ends any
payload at once, inside a string or not. So the work is bounded, however markers are nested."""

_PIECE = 64
"""Characters up to which a piece grows: many tiny ones would take far more memory than text."""

_STRING_STOP = re.compile(r'["\\]')
_JSON_BEGINS = '{["'


class JsonStrings:
    """Whether text that comes in pieces stands inside a JSON string."""

    __slots__ = ("_escaped", "inside")

    def __init__(self) -> None:
        self.inside = False
        self._escaped = False

    def read(self, text: str) -> None:
        """Go on by a piece."""
        at = 0
        if self._escaped and text:
            at, self._escaped = 1, False
        while True:
            if not self.inside:
                at = text.find('"', at) + 1
                if not at:
                    return
                self.inside = True
            stop = _STRING_STOP.search(text, at)
            if stop is None:
                return
            at = stop.end()
            if stop[0] == '"':
                self.inside = False
            elif at < len(text):
                at += 1
            else:
                self._escaped = True
                return


class Payload:
    """The payload of one message.

    Args:
        header: of its message.
        is_json: None where that shows in its first character.
        max_bytes: of UTF-8.
    """

    __slots__ = ("_max_bytes", "_read", "first", "header", "is_json", "size", "strings", "tokens")

    def __init__(self, header: Header, *, is_json: bool | None, max_bytes: int) -> None:
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
        if size > room:
            fits, rest = _split(token.text, room)
            if token.marker or not fits:
                return token
            self._hold(token._replace(text=fits))
            return token._replace(text=rest)
        if token.marker in ENDING and self.is_json and self.first is None:
            self.first = len(self.tokens)
        self._hold(token)
        self.size += size
        return None

    def add_plain(self, text: str) -> bool:
        """Hold a text without a marker, where that needs no second look; False if it does."""
        size = self.size + len(text)
        if self.is_json is None or size > self._max_bytes or not text.isascii():
            return False
        self._hold(Token("", text))
        self.size = size
        return True

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

    def _hold(self, token: Token) -> None:
        if self.is_json is None and (begin := token.text.lstrip()[:1]):
            self.is_json = begin in _JSON_BEGINS
        if self.tokens and not token.marker:
            # Strings are read when a marker comes, so a text that is the last was not read yet.
            last = self.tokens[-1]
            if not last.marker and len(last.text) < _PIECE:
                self.tokens[-1] = token._replace(text=last.text + token.text)
                return
        self.tokens.append(token)

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
