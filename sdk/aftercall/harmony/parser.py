"""A streaming parser of Harmony text.

It reads text, not tokens: OpenAI's own parser takes token ids and fetches its vocabulary from the
network. In text a marker that a tool or a user wrote looks like one that the model meant, so what
can be shown apart is shown apart here: only the assistant calls, a marker inside a JSON string is
data when the JSON comes to its end, and after one that does not nothing is a call.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, cast

from aftercall.arguments import read_arguments
from aftercall.events import PAYLOAD_PARSE_ERROR, PAYLOAD_TOO_LARGE
from aftercall.harmony.calls import HarmonyCall, HarmonyItem, HarmonyResult, HarmonyText, is_json
from aftercall.json_values import (
    MAX_NAME_CHARS,
    JsonObject,
    JsonValue,
    bounded_text,
    check_json_object,
    check_text,
    read_json,
    unique_members,
)

MAX_PAYLOAD_BYTES = 8192
"""Of UTF-8, of one payload (seed 001)."""
TEXT_TOOLS: Mapping[str, str] = {"python": "code"}
"""The built-in tool whose payload is no JSON, and what its text is called among the arguments."""
MAX_HEADER_CHARS = 512
"""Markers included. A real header has some 80; what is longer is text whose marker is missing."""
MAX_SECTIONS = 3
"""Markers within a header; real ones have two. A header without an end is read again so often."""
PSEUDO_CHANNEL = "tool"
"""The channel whose payload names the tool and its arguments (seed 001)."""
_SLICE = 4096
"""Characters of a chunk that are taken at once; larger ones cost nothing but their own text."""
PREVIEW_CHARS = 200
"""Of a payload that a call carries: what its hash is made of (seed 001)."""
_TOOL_FIRST = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.){1,256}")')
_ROLES = frozenset({"assistant", "user", "system", "developer", "tool"})
_CHANNELS = frozenset({"analysis", "commentary", "final", PSEUDO_CHANNEL})
_TYPES = frozenset({"json", "code"})
_SELVES = frozenset({"assistant", "user", "system", "developer", "all"})
"""Recipients that are no tools."""
NAMES = ("start", "end", "message", "channel", "constrain", "return", "call")
_ENDING = frozenset({"start", "end", "channel", "return", "call"})
"""Markers that end a message. `start` and `channel` do so where a model left out the `end`."""
_HEADING = frozenset({"channel", "constrain", "message"})
"""Markers within a header, or at its end."""
_MARKER = re.compile(rf"<\|({'|'.join(NAMES)})\|>")
_BEGINNINGS = frozenset(
    f"<|{name}|>"[:length] for name in NAMES for length in range(1, len(name) + len("<||>"))
)
_LONGEST = max(map(len, _BEGINNINGS))
_PIECE = re.compile(rf'\\(?!<\|).|"|{_MARKER.pattern}', re.DOTALL)
"""What matters in a payload: escapes, quotes, and markers."""
_SECTION = re.compile(r"<\|(channel|constrain)\|>")
_WORD = re.compile(r"\S+")
_OPENING = re.compile(r"\s*(?:t|to|to=\S*\s*)?")
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
        """Only the assistant calls; a role other than the five is a tool that answers."""
        if self.role == "assistant":
            to_tool = self.recipient is not None and self.recipient not in _SELVES
            return "call" if to_tool or self.channel == PSEUDO_CHANNEL else "text"
        if self.role in _ROLES - {"tool"}:
            return "text"
        answers = self.recipient == "assistant" or "." in self.role or self.role == "tool"
        return "result" if answers else "text"


def name_from_recipient(recipient: str) -> str | None:
    """Return the name of the tool behind a recipient; None when nothing is left of it."""
    return bounded_text(recipient.strip().removeprefix("functions."), MAX_NAME_CHARS) or None


def read_header(raw: str, *, complete: bool = True) -> tuple[MessageHeader, str]:
    """Return the header, and the rest of `raw` from the first word on that does not belong to one.

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
            elif not (complete or (word in _TYPES and (recipient or section == "constrain"))):
                marker, end = None, found.start()
                break
        if marker is None:
            return MessageHeader(role or "assistant", channel, recipient, complete), raw[end:]
        begin, section = marker.end(), marker[1]


class HarmonyParser:
    """Reads a stream of Harmony text in pieces of any size. Nothing that it reads makes it raise.

        parser = HarmonyParser()
        for chunk in stream:
            for item in parser.feed(chunk): ...
        for item in parser.close(): ...

    How the text is cut into chunks changes nothing but the pieces that texts come in. Anything that
    is held is bounded: a header of 512 characters, a payload of `max_payload_bytes`; text is passed
    on as it comes. So is the work: no text makes any part of it be read more than a few times.

    Decisions where the format is silent or models stray from it:

    - A stream may begin within a header, for `<|start|>assistant` was the end of the prompt.
    - A message also ends where the next one begins, or at a `<|channel|>` in an assistant's text.
    - A header that never comes to `<|message|>` is read as far as it is one; the rest is content.
    - Text outside of messages is text of no channel; white space there is dropped.
    - Payloads are JSON, or loose JSON that states one object without a guess; also those with the
      type `code`, save for the recipients in `TEXT_TOOLS`.
    - A payload that the stream ends in is a call when it can be read: `<|call|>` is a stop token,
      which engines leave out.
    - A payload over the limit is shown once, and skipped up to the next marker.
    - A marker in an open JSON string is data if the JSON comes to its end. If it does not, up to
      the limit or the end of the stream, the payload is cut there, and what follows is read again:
      as text, also where it has the form of a call, for it may be text of that string.

    `max_payload_bytes` is of a call, in UTF-8; of a tool's result, that much is kept.
    """

    def __init__(self, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._max_bytes = max_payload_bytes
        self._begin_state()

    def feed(self, chunk: str) -> list[HarmonyItem]:
        """Return what `chunk` completes, and the text in it."""
        if "<" not in chunk and not self._held and self._state is HarmonyParser._in_text:
            # The way that nearly all chunks go.
            return [self._make_text(chunk)] if chunk else []
        for at in range(0, len(chunk), _SLICE):
            self._held += chunk[at : at + _SLICE]
            self._read_held(at_end=False)
        return self._take_items()

    def close(self) -> list[HarmonyItem]:
        """Return what the end of the stream completes.

        The parser is then ready for another stream.
        """
        self._read_held(at_end=True)
        made = self._take_items()
        self._begin_state()
        return made

    def _begin_state(self) -> None:
        self._held = ""
        """What has come and is not read yet, or not to its end."""
        self._items: list[HarmonyItem] = []
        self._message = -1
        self._header = MessageHeader()
        self._broke_off = False
        """Whether a payload ended inside a string."""
        # A plain function: a bound method would make each parser a cycle for the collector.
        self._state: Callable[[HarmonyParser, int], bool] = HarmonyParser._in_opening

    def _read_held(self, *, at_end: bool) -> None:
        self._at_end = at_end
        while self._run_step():
            pass

    def _run_step(self) -> bool:
        """Return one step of the state; False when it needs more text."""
        end = len(self._held)
        if not self._at_end:
            # The end of what came may begin a marker, which is still to come.
            begin = self._held.rfind("<", max(0, end - _LONGEST))
            end = begin if begin >= 0 and self._held[begin:] in _BEGINNINGS else end
        return self._state(self, end)

    def _take_items(self) -> list[HarmonyItem]:
        made, self._items = self._items, []
        return made

    # --- outside of messages

    def _in_opening(self, end: int) -> bool:
        marker = _MARKER.search(self._held, 0, end)
        held = self._held[: marker.start() if marker else end]
        self._state = HarmonyParser._in_outside
        if len(held) <= MAX_HEADER_CHARS and _OPENING.fullmatch(held):
            if marker and marker[1] in _HEADING and held.strip()[:3] in {"", "to="}:
                self._state = HarmonyParser._in_header
            elif not marker and not self._at_end:
                self._state = HarmonyParser._in_opening
                return False
        return True

    def _in_outside(self, end: int) -> bool:
        marker = _MARKER.search(self._held, 0, end)
        begin = marker.start() if marker else end
        if text := self._held[:begin].lstrip():
            self._begin_content(MessageHeader(), begin - len(text))
            return True
        if marker and marker[1] not in _HEADING:
            begin = marker.end()
        self._held = self._held[begin:]
        if marker and (marker[1] == "start" or marker[1] in _HEADING):
            self._state = HarmonyParser._in_header
        return marker is not None

    # --- headers

    def _in_header(self, end: int) -> bool:
        for sections, marker in enumerate(_MARKER.finditer(self._held, 0, end)):
            if marker.start() > MAX_HEADER_CHARS:
                break
            if marker[1] == "message":
                header, _ = read_header(self._held[: marker.start()])
                self._begin_content(header, marker.end())
                return True
            is_over = sections >= MAX_SECTIONS or marker.end() > MAX_HEADER_CHARS
            if is_over or marker[1] not in _HEADING:
                self._end_header(marker.start())
                return True
        if end <= MAX_HEADER_CHARS and not self._at_end:
            return False
        self._end_header(min(end, MAX_HEADER_CHARS))
        return True

    def _end_header(self, end: int) -> None:
        """`<|message|>` did not come: what is no header is content."""
        header, rest = read_header(self._held[:end], complete=False)
        if rest or header.kind != "text":
            self._begin_content(header, end - len(rest))
        else:
            self._held = self._held[end:]
            self._state = HarmonyParser._in_outside

    # --- text

    def _begin_content(self, header: MessageHeader, begin: int) -> None:
        self._held = self._held[begin:]
        self._message += 1
        self._header = header
        if header.kind == "text" or (header.kind == "call" and self._broke_off):
            self._state = HarmonyParser._in_text
            return
        self._state = HarmonyParser._in_payload
        # Of a result, its first character will show.
        self._is_json = header.recipient not in TEXT_TOOLS if header.kind == "call" else None
        self._in_string = False
        self._looked_at = 0
        self._first: int | None = None  # marker within a string

    def _in_text(self, end: int) -> bool:
        ended = False
        for marker in _MARKER.finditer(self._held, 0, end):
            # In anyone else's text a channel would let a user speak as the assistant.
            ends = marker[1] != "channel" or self._header.role == "assistant"
            if ended := marker[1] in _ENDING and ends:
                end = marker.start()
                self._state = HarmonyParser._in_outside
                break
        if end:
            self._items.append(self._make_text(self._held[:end]))
        self._held = self._held[end:]
        return ended

    def _make_text(self, text: str) -> HarmonyText:
        return HarmonyText(self._header.channel, text, self._header.role, self._message)

    # --- payloads of calls and results

    def _in_payload(self, end: int) -> bool:
        held = self._held
        room = _fitting_length(held[:end], self._max_bytes)
        if self._is_json is None and (begins := held[:end].lstrip()[:1]):
            self._is_json = begins in '{["'
        for piece in _PIECE.finditer(held, self._looked_at, end):
            if piece.start() > room:
                break
            self._looked_at = piece.end()
            if piece[0] == '"':
                self._in_string = not self._in_string
            if piece[1] is None:
                continue
            is_data = self._is_json and self._in_string
            if not is_data and (self._is_json or piece[1] in _ENDING):
                return self._end_payload(piece.start())
            if piece.end() > room:
                room = piece.start()
                break
            if self._is_json and piece[1] in _ENDING and self._first is None:
                self._first = piece.start()
        if room < end:
            if self._first is not None:
                return self._cut_payload(self._first)
            problem = f"the payload is larger than {self._max_bytes} bytes"
            cure = "send less, or in several calls"
            return self._go_on(room, f"{problem}; {cure}", PAYLOAD_TOO_LARGE)
        if self._at_end:
            # Without a marker after it, an empty payload is one that is still to come.
            self._header = replace(self._header, complete=False)
            return self._end_payload(end)
        # The last character may be a backslash, whose own is still to come.
        self._looked_at = max(self._looked_at, end - 1)
        return False

    def _end_payload(self, end: int) -> bool:
        if self._first is not None and not is_json(self._held[:end]):
            return self._cut_payload(self._first)
        return self._go_on(end)

    def _cut_payload(self, first: int) -> bool:
        """End the payload at the first marker in a string that was never closed."""
        self._broke_off = True
        return self._go_on(first, "the payload breaks off inside a string")

    def _go_on(
        self, end: int, problem: str | None = None, error_type: str = PAYLOAD_PARSE_ERROR
    ) -> bool:
        self._items.append(read_message(self._header, self._held[:end], problem, error_type))
        self._held = self._held[end:]
        is_skipped = error_type == PAYLOAD_TOO_LARGE
        self._state = HarmonyParser._in_skipping if is_skipped else HarmonyParser._in_outside
        return True

    def _in_skipping(self, end: int) -> bool:
        done = 0
        for piece in _PIECE.finditer(self._held, 0, end):
            if piece[1] in _ENDING:
                # What follows may still be text of the string that it stands in.
                self._broke_off |= bool(self._is_json) and self._in_string
                self._held = self._held[piece.start() :]
                self._state = HarmonyParser._in_outside
                return True
            done = piece.end()
            if piece[0] == '"':
                self._in_string = not self._in_string
        self._held = self._held[max(done, end - 1) :]
        return False


def _fitting_length(text: str, size: int) -> int:
    """Return how many characters at its beginning have at most `size` bytes of UTF-8."""
    encoded = text[: size + 1].encode("utf-8", "surrogatepass")
    if len(encoded) <= size:
        return len(text)
    while encoded[size] & 0xC0 == 0x80:  # inside a character
        size -= 1
    return len(encoded[:size].decode("utf-8", "surrogatepass"))


class _PayloadError(ValueError): ...


def read_message(
    header: MessageHeader, payload: str, problem: str | None, error_type: str
) -> HarmonyCall | HarmonyResult:
    """Return a call with its arguments, one that cannot be made, or what a tool answered.

    `problem` is why a call cannot be made, where that shows before its payload is read.
    """
    if header.kind == "result":
        recipient = None if header.role == "tool" else header.role
        return HarmonyResult(
            tool=recipient and name_from_recipient(recipient),
            text=payload,
            truncated=error_type == PAYLOAD_TOO_LARGE,
            channel=header.channel or "commentary",
        )
    tool, arguments = None, None
    if problem is None:
        try:
            tool, arguments = _tool_and_arguments(header, payload)
        except (ValueError, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            problem = f"the payload {'is nested too deeply' if is_deep else _error_words(error)}"
    return HarmonyCall(
        tool=tool or _name_at_start(header, payload),
        recipient=header.recipient,
        channel=header.channel,
        arguments=arguments,
        error_type=None if problem is None else error_type,
        message=None if problem is None else bounded_text(problem, 300),
        payload=payload[:PREVIEW_CHARS],
    )


def _tool_and_arguments(header: MessageHeader, payload: str) -> tuple[str, JsonObject]:
    if header.recipient is None:
        value = _load_json(payload)
        tool = value.get("tool") if isinstance(value, dict) else None
        name = name_from_recipient(tool) if isinstance(tool, str) else None
        if name is None or not isinstance(value, dict):
            raise _PayloadError('names no tool; write {"tool": NAME, "arguments": {...}}')
        return name, _read_arguments(value.get("arguments", {}))
    if (name := name_from_recipient(header.recipient)) is None:
        raise _PayloadError("is addressed to a tool without a name")
    if not header.complete and not payload.strip():
        raise _PayloadError("never came: the message broke off before it")
    if header.recipient in TEXT_TOOLS:
        return name, {TEXT_TOOLS[header.recipient]: check_text(payload)}
    # A function without parameters is often called with nothing at all.
    return name, _read_arguments(_load_json(payload)) if payload.strip() else {}


def _read_arguments(value: object) -> JsonObject:
    """Return an object; also one that was encoded twice, as the Chat API has it in `arguments`."""
    if isinstance(value, str):
        value = _load_json(value)
    if not isinstance(value, dict):
        raise _PayloadError("has arguments that are no object; write them as {NAME: VALUE}")
    return check_json_object(value)


def _load_json(text: str) -> JsonValue:
    """Return a JSON value, or the object that loose JSON states; what is cut off states none."""
    try:
        value = read_json(text, object_pairs_hook=unique_members, parse_constant=_no_constant)
    except json.JSONDecodeError:
        if (read := read_arguments(text)) is None:
            raise
        return read
    return cast("JsonValue", value)


def _no_constant(name: str) -> NoReturn:
    raise _PayloadError(f"holds {name}, which is not JSON; write null or a finite number")


def _error_words(error: Exception) -> str:
    if isinstance(error, _PayloadError):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg} at character {error.pos}"
    return f"cannot be taken: {error}"  # such as a number of thousands of digits


def _name_at_start(header: MessageHeader, payload: str) -> str | None:
    if header.recipient is not None:
        return name_from_recipient(header.recipient)
    found = _TOOL_FIRST.match(payload)
    try:
        return name_from_recipient(json.loads(found[1])) if found else None
    except ValueError:
        return None
