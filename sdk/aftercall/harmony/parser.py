"""A streaming parser of Harmony text.

It reads text, not tokens: OpenAI's own parser takes token ids and fetches its vocabulary from the
network. In text a marker that a tool or a user wrote looks like one that the model meant, so what
can be told apart is told apart here: only the assistant calls, a marker inside a JSON string is
data when the JSON comes to its end, and what remains in doubt is marked so.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from aftercall.errors import ConfigurationError
from aftercall.events import PAYLOAD_PARSE_ERROR, PAYLOAD_TOO_LARGE
from aftercall.harmony.calls import HarmonyCall, HarmonyItem, HarmonyResult, HarmonyText, is_json
from aftercall.harmony.markup import (
    ENDING,
    HEADING,
    MAX_HEADER_CHARS,
    MAX_SECTIONS,
    OPENING,
    JsonStrings,
    MarkerReader,
    MessageHeader,
    Payload,
    Token,
    read_header,
    tool_name,
)
from aftercall.json_values import (
    JsonObject,
    JsonValue,
    bounded_text,
    check_json_object,
    check_text,
    unique_members,
)

MAX_PAYLOAD_BYTES = 8192
"""Of UTF-8, of one payload (seed 001)."""
TEXT_TOOLS: Mapping[str, str] = {"python": "code"}
"""The built-in tool whose payload is no JSON, and what its text is called among the arguments."""
_SLICE = 65_536
"""Characters of a chunk that are taken at once; larger ones cost nothing but their own text."""
PREVIEW_CHARS = 200
"""Of a payload that a call carries: what its hash is made of (seed 001)."""
_MAX_MESSAGE_CHARS = 300
_TOOL_FIRST = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.){1,256}")')


class HarmonyParser:
    """Reads a stream of Harmony text in pieces of any size. Nothing that it reads makes it raise.

        parser = HarmonyParser()
        for chunk in stream:
            for item in parser.feed(chunk): ...
        for item in parser.close(): ...

    How the text is cut into chunks changes nothing but the pieces that texts come in. What is held
    is bounded: a header of 512 characters, a payload of `max_payload_bytes`; text is passed on as
    it comes. So is the work: no text makes any part of it be read more than a few times.

    Decisions where the format is silent or models stray from it:

    - A stream may begin within a header, for `<|start|>assistant` was the end of the prompt.
    - A message also ends where the next one begins, or at a `<|channel|>` in an assistant's text.
    - A header that never comes to `<|message|>` is read as far as it is one; the rest is content.
    - Text outside of messages is text of no channel; white space there is dropped.
    - Payloads are JSON, also those with the type `code`, save for the recipients in `TEXT_TOOLS`.
    - A payload that the stream ends in is a call when it can be read: `<|call|>` is a stop token,
      which engines leave out.
    - A payload over the limit is told once, and skipped up to the next marker.
    - A marker in an open JSON string is data if the JSON comes to its end. If it does not, up to
      the limit or the end of the stream, the payload is cut there and what follows is read again;
      calls from there on are `doubtful`.

    Args:
        max_payload_bytes: largest payload of a call, in bytes of UTF-8; of a tool's result, that
            much is kept.

    Raises:
        ConfigurationError: `max_payload_bytes` is less than 1.
    """

    def __init__(self, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        if max_payload_bytes < 1:
            raise ConfigurationError("max_payload_bytes must be at least 1; the default is 8192")
        self._max_bytes = max_payload_bytes
        self._begin()

    def feed(self, chunk: str) -> list[HarmonyItem]:
        """What `chunk` completes, and the text in it."""
        if "<" not in chunk and not self._markers.held and self._message_text is not None:
            # The way that nearly all chunks go.
            role, channel = self._message_text
            return [HarmonyText(channel, chunk, role, self._message)] if chunk else []
        for at in range(0, len(chunk), _SLICE):
            self._take_all(self._markers.feed(chunk[at : at + _SLICE]))
        return self._made()

    def close(self) -> list[HarmonyItem]:
        """What the end of the stream completes. The parser is then ready for another stream."""
        self._take_all(self._markers.end())
        while self._end_unfinished():
            self._drain()
        made = self._made()
        self._begin()
        return made

    def _begin(self) -> None:
        self._markers = MarkerReader()
        self._queue: deque[Token] = deque()
        self._items: list[HarmonyItem] = []
        self._pieces: list[str] = []
        self._message = -1
        self._message_text: tuple[str, str | None] | None = None
        self._header = ""
        self._sections = 0
        self._payload = Payload(MessageHeader(), is_json=True, max_bytes=self._max_bytes)
        self._skipped: JsonStrings | None = None
        self._doubtful = False
        # A plain function: a bound method would make each parser a cycle for the collector.
        self._state: Callable[[HarmonyParser, Token], None] = HarmonyParser._in_opening

    def _take_all(self, tokens: list[Token]) -> None:
        for token in tokens:
            self._take(token)
            self._drain()

    def _drain(self) -> None:
        while self._queue:
            self._take(self._queue.popleft())

    def _take(self, token: Token) -> None:
        self._state(self, token)

    def _again(self, *tokens: Token) -> None:
        self._queue.extendleft(token for token in reversed(tokens) if token.text)

    # --- outside of messages

    def _in_opening(self, token: Token) -> None:
        held = self._header
        if not token.marker:
            both = held + token.text
            if len(both) <= MAX_HEADER_CHARS and OPENING.fullmatch(both):
                self._header = both
                return
        elif token.marker in HEADING and held.strip()[:3] in {"", "to="}:
            self._state = HarmonyParser._in_header
            self._again(token)
            return
        self._header = ""
        self._state = HarmonyParser._outside
        self._again(Token("", held), token)

    def _outside(self, token: Token) -> None:
        if not token.marker:
            text = token.text.lstrip()
            if text:
                self._begin_content(MessageHeader())
                self._again(token._replace(text=text))
        elif token.marker == "start" or token.marker in HEADING:
            self._header, self._sections = "", 0
            self._state = HarmonyParser._in_header
            if token.marker != "start":
                self._again(token)

    # --- headers

    def _in_header(self, token: Token) -> None:
        if token.marker == "message":
            header, _ = read_header(self._header)
            self._begin_content(header)
            return
        self._sections += bool(token.marker)
        room = MAX_HEADER_CHARS - len(self._header)
        if (not token.marker or token.marker in HEADING) and self._sections <= MAX_SECTIONS:
            if len(token.text) <= room:
                self._header += token.text
                return
            if not token.marker:
                self._header += token.text[:room]
                token = token._replace(text=token.text[room:])
        self._end_header(token)

    def _end_header(self, token: Token | None) -> None:
        """`<|message|>` did not come: what is no header is content."""
        header, rest = read_header(self._header, complete=False)
        if rest or header.kind != "text":
            self._begin_content(header)
        else:
            self._state = HarmonyParser._outside
        again = MarkerReader()
        tokens = [*again.feed(rest), *again.end()]
        self._again(*tokens, *([token] if token else []))

    # --- text

    def _begin_content(self, header: MessageHeader) -> None:
        self._message += 1
        if header.kind == "text":
            self._message_text = header.role, header.channel
            self._state = HarmonyParser._in_text
            return
        is_json: bool | None = None
        if header.kind == "call":
            is_json = header.recipient not in TEXT_TOOLS
        self._payload = Payload(header, is_json=is_json, max_bytes=self._max_bytes)
        self._state = HarmonyParser._in_payload

    def _in_text(self, token: Token) -> None:
        is_end = token.marker in ENDING
        if token.marker == "channel":
            # In anybody else's text it would let a user speak as the assistant.
            is_end = self._message_text is not None and self._message_text[0] == "assistant"
        if not is_end:
            self._pieces.append(token.text)
            return
        self._flush()
        self._message_text = None
        self._state = HarmonyParser._outside
        self._again(token)

    # --- payloads of calls and results

    def _in_payload(self, token: Token) -> None:
        if self._payload.is_end(token):
            self._end_payload(token)
            return
        beyond = self._payload.add(token)
        if beyond is None:
            return
        if self._payload.first is not None:
            self._cut(beyond)
            return
        problem = (
            f"the payload is larger than {self._max_bytes} bytes; send less, or in several calls"
        )
        self._tell(self._payload.text(), problem, PAYLOAD_TOO_LARGE)
        self._skipped = self._payload.skipping()
        self._state = HarmonyParser._skipping
        self._again(beyond)

    def _end_payload(self, token: Token | None) -> None:
        text = self._payload.text()
        if self._payload.first is not None and not is_json(text):
            self._cut(token)
            return
        if (
            token is None
        ):  # without a marker after it, an empty payload is one that is still to come
            self._payload.header = replace(self._payload.header, complete=False)
        self._tell(text)
        self._state = HarmonyParser._outside
        self._again(*([token] if token else []))

    def _cut(self, then: Token | None) -> None:
        """The payload ends at the first marker in a string, which it never came out of."""
        self._tell(self._payload.text(cut=True), "the payload breaks off inside a string")
        self._doubtful = True
        self._state = HarmonyParser._outside
        self._again(*self._payload.after_cut(), *([then] if then else []))

    def _tell(
        self, text: str, problem: str | None = None, error_type: str = PAYLOAD_PARSE_ERROR
    ) -> None:
        header, doubtful = self._payload.header, self._doubtful
        self._items.append(read_message(header, text, doubtful, problem, error_type))

    def _skipping(self, token: Token) -> None:
        if token.marker not in ENDING:
            if self._skipped:
                self._skipped.read(token.text)
            return
        # What follows may still be text of the string that it stands in.
        self._doubtful |= bool(self._skipped and self._skipped.inside)
        self._state = HarmonyParser._outside
        self._again(token)

    # --- what has been made

    def _end_unfinished(self) -> bool:
        if self._state is HarmonyParser._in_opening and self._header:
            held, self._header = self._header, ""
            self._state = HarmonyParser._outside
            self._again(Token("", held))
        elif self._state is HarmonyParser._in_header:
            self._end_header(None)
        elif self._state is HarmonyParser._in_payload:
            self._end_payload(None)
        else:
            return False
        return True

    def _flush(self) -> None:
        if self._pieces and self._message_text is not None:
            role, channel = self._message_text
            self._items.append(HarmonyText(channel, "".join(self._pieces), role, self._message))
        self._pieces.clear()

    def _made(self) -> list[HarmonyItem]:
        self._flush()
        made, self._items = self._items, []
        return made


class _PayloadError(ValueError):
    """The payload is not that of a call; the message says why."""


def read_message(
    header: MessageHeader,
    payload: str,
    doubtful: bool,  # noqa: FBT001  # one caller
    problem: str | None,
    error_type: str,
) -> HarmonyCall | HarmonyResult:
    """A call with its arguments, one that cannot be made, or what a tool answered.

    `problem` is why a call cannot be made, where that shows before its payload is read.
    """
    if header.kind == "result":
        recipient = None if header.role == "tool" else header.role
        return HarmonyResult(
            tool=recipient and tool_name(recipient),
            text=payload,
            truncated=error_type == PAYLOAD_TOO_LARGE,
            recipient=recipient,
            channel=header.channel or "commentary",
        )
    tool, arguments = None, None
    if problem is None:
        try:
            tool, arguments = _tool_and_arguments(header, payload)
        except (ValueError, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            problem = f"the payload {'is nested too deeply' if is_deep else _words(error)}"
    return HarmonyCall(
        tool=tool or _name_at_start(header, payload),
        recipient=header.recipient,
        channel=header.channel,
        arguments=arguments,
        error_type=None if problem is None else error_type,
        message=None if problem is None else bounded_text(problem, _MAX_MESSAGE_CHARS),
        payload=payload[:PREVIEW_CHARS],
        doubtful=doubtful,
    )


def _tool_and_arguments(header: MessageHeader, payload: str) -> tuple[str, JsonObject]:
    if header.recipient is None:
        value = _loads(payload)
        tool = value.get("tool") if isinstance(value, dict) else None
        name = tool_name(tool) if isinstance(tool, str) else None
        if name is None or not isinstance(value, dict):
            raise _PayloadError('names no tool; write {"tool": NAME, "arguments": {...}}')
        return name, _arguments(value.get("arguments", {}))
    name = tool_name(header.recipient)
    if name is None:
        raise _PayloadError("is addressed to a tool without a name")
    if not header.complete and not payload.strip():
        raise _PayloadError("never came: the message broke off before it")
    if header.recipient in TEXT_TOOLS:
        return name, {TEXT_TOOLS[header.recipient]: check_text(payload)}
    # A function without parameters is often called with nothing at all.
    return name, _arguments(_loads(payload)) if payload.strip() else {}


def _arguments(value: object) -> JsonObject:
    """An object; also one that was encoded twice, as the Chat API has it in `arguments`."""
    if isinstance(value, str):
        value = _loads(value)
    if not isinstance(value, dict):
        raise _PayloadError("has arguments that are no object; write them as {NAME: VALUE}")
    return check_json_object(value)


def _loads(text: str) -> JsonValue:
    value: JsonValue = json.loads(
        text, object_pairs_hook=unique_members, parse_constant=_no_constant
    )
    return value


def _no_constant(name: str) -> NoReturn:
    raise _PayloadError(f"holds {name}, which is not JSON; write null or a finite number")


def _words(error: Exception) -> str:
    if isinstance(error, _PayloadError):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg} at character {error.pos}"
    return f"cannot be taken: {error}"  # such as a number of thousands of digits


def _name_at_start(header: MessageHeader, payload: str) -> str | None:
    if header.recipient is not None:
        return tool_name(header.recipient)
    found = _TOOL_FIRST.match(payload)
    try:
        return tool_name(json.loads(found[1])) if found else None
    except ValueError:
        return None
