"""JSON-RPC messages out of what inspectors, taps and clients wrap around them. Pure.

| who writes it | form |
|---|---|
| a tap on stdio | `{"jsonrpc": "2.0", ...}` a line |
| MCP Inspector 2, export of its history | `[{"timestamp", "direction", "origin", "message", "response", "duration"}]` |
| MCP Inspector 1, its request history | `[{"request": "{...}", "response": "{...}"}]`, JSON text or values |
| proxies | an object with the message under `message`, `payload`, `data`, ..., time and direction |
| desktop clients | `2025-09-30T13:45:53Z [server] [info] Message from client: {...} { metadata: undefined }` |

Lines of a log that hold no message are passed over.
"""  # noqa: E501  # forms as they are written

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic_core import from_json

from ingest.formats.placed import Placed, first_moment, first_name, moment, unreadable

Origin = Literal["client", "server"]

_INSIDE = (
    "message", "payload", "data", "body", "raw", "msg", "rpc", "frame", "content",
    "jsonrpc_message",
)  # fmt: skip
_TIMES = ("timestamp", "time", "ts", "@timestamp", "date", "created_at", "datetime")
_DIRECTIONS = ("origin", "direction", "dir", "from", "source", "sender", "type", "stream")
_SERVERS = ("server", "serverName", "server_name", "serverId", "server_id")
_SESSIONS = (
    "sessionId", "session_id", "session", "mcp-session-id", "connectionId", "connection_id",
)  # fmt: skip

_FROM_CLIENT = re.compile(
    r"client\b|client[-_ ]*(?:to|->|→|=>)|c(?:2|->|→)s$|to[-_ ]server"
    r"|stdin|outgoing|outbound|sen[dt]"
)
_FROM_SERVER = re.compile(
    r"server\b|server[-_ ]*(?:to|->|→|=>)|s(?:2|->|→)c$|to[-_ ]client"
    r"|stdout|incoming|inbound|received|recv"
)

_SAID = re.compile(r"Message from (client|server): ?")
_BRACKETS = re.compile(r"\[([^\[\]]{1,256})\]")
_LEVELS = frozenset({"debug", "info", "notice", "warn", "warning", "error", "trace"})
_LEADING_TIME = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
)
_LOOKED_AT = 1000
"""Characters of a log's line before its message, at most."""

_CUT_OFF = "the message is cut off, or no JSON"


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message, and what stands around it."""

    where: str
    body: dict[str, Any]
    origin: Origin | None = None
    server: str | None = None
    session: str | None = None
    at: datetime | None = None
    took_ms: float | None = None
    answer: dict[str, Any] | None = None
    """Its response, where the log holds both together: an object with `result` or `error`."""
    size: int = 0
    """Bytes it was read from, about."""


def messages_in(value: object, where: str, size: int = 0) -> Iterator[Message | Placed]:
    """The messages in a JSON value: one, a wrapped one, a pair, or a list of any of them."""
    if isinstance(value, list):
        each = size // max(len(value), 1)
        for number, item in enumerate(value):
            yield from _message_in(item, f"{where}[{number}]", each)
    else:
        yield from _message_in(value, where, size)


def messages_in_line(line: str, where: str) -> Iterator[Message | Placed]:
    """The message in a line of a log that is no JSON by itself, if it holds one."""
    said = _SAID.search(line, 0, _LOOKED_AT)
    start = line.find("{", said.end() if said else 0)
    if start < 0 or (said is None and (start > _LOOKED_AT or '"jsonrpc"' not in line)):
        if said:
            yield unreadable(where, _CUT_OFF)
        return
    try:
        body, _ = json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        yield unreadable(where, _CUT_OFF)
        return
    if not is_message(body):
        return
    before = line[:start]
    labels = [
        label
        for label in _BRACKETS.findall(before)
        if label.lower() not in _LEVELS and moment(label) is None
    ]
    time = _LEADING_TIME.match(before)
    yield Message(
        where,
        body,
        origin="client" if said and said[1] == "client" else "server" if said else None,
        server=labels[0] if said and labels else None,
        at=moment(time[1]) if time else None,
        size=len(line),
    )


def is_message(value: object) -> bool:
    """Whether a value is a JSON-RPC message."""
    return (
        isinstance(value, dict)
        and "jsonrpc" in value
        and (isinstance(value.get("method"), str) or "result" in value or "error" in value)
    )


def is_pair(value: object) -> bool:
    """Whether a value is a request with its answer beside it, as Inspector 1 keeps them."""
    return (
        isinstance(value, dict)
        and "request" in value
        and isinstance(request := _unpacked(value["request"]), dict)
        and isinstance(request.get("method"), str)
    )


def inside(value: dict[str, Any]) -> dict[str, Any] | None:
    """The message that an object wraps, as a value or as JSON text."""
    for key in _INSIDE:
        held = _unpacked(value.get(key))
        if isinstance(held, dict) and is_message(held):
            return held
    return None


def _message_in(value: object, where: str, size: int) -> Iterator[Message | Placed]:
    if isinstance(value, list):  # a batch within a list
        for number, item in enumerate(value):
            if is_message(item):
                yield Message(f"{where}[{number}]", item, size=size)
    elif not isinstance(value, dict):
        yield unreadable(where, "is no message: it must be a JSON object")
    elif is_message(value):
        yield Message(where, value, size=size)
    elif is_pair(value):
        request = _unpacked(value["request"])
        assert isinstance(request, dict)  # noqa: S101  # is_pair has just shown it
        yield _around(value, where, request, size, answer=_answer_in(value.get("response")))
    elif (body := inside(value)) is not None:
        response = _unpacked(value.get("response"))
        told = isinstance(response, dict) and isinstance(body.get("method"), str)
        answer = _answer_in(response) if told else None
        yield _around(value, where, body, size, answer=answer)
    elif _LOOKS_LIKE_ONE & value.keys():
        yield unreadable(where, "is no JSON-RPC message, and wraps none in a form known here")


_LOOKS_LIKE_ONE = {"jsonrpc", "method", "request", "params"}
"""Other objects in a log are its own notes."""


def _around(
    value: dict[str, Any],
    where: str,
    body: dict[str, Any],
    size: int,
    *,
    answer: dict[str, Any] | None,
) -> Message:
    took: object = value.get("duration", value.get("durationMs", value.get("duration_ms")))
    told = isinstance(took, int | float) and not isinstance(took, bool) and 0 <= took < 1e12
    return Message(
        where,
        body,
        origin=_origin(value),
        server=first_name(value, *_SERVERS),
        session=first_name(value, *_SESSIONS),
        at=first_moment(value, *_TIMES),
        took_ms=float(took) if told and isinstance(took, int | float) else None,
        answer=answer,
        size=size,
    )


def _origin(value: dict[str, Any]) -> Origin | None:
    for key in _DIRECTIONS:
        said = value.get(key)
        if not isinstance(said, str):
            continue
        word = said[:100].lower()
        client, server = _FROM_CLIENT.search(word), _FROM_SERVER.search(word)
        if client and (not server or client.start() < server.start()):
            return "client"
        if server:
            return "server"
    return None


def _unpacked(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value


def _answer_in(response: object) -> dict[str, Any] | None:
    """A response as `{"result": ...}` or `{"error": ...}`; Inspector 1 keeps the bare result."""
    response = _unpacked(response)
    if not isinstance(response, dict):
        return None
    if "jsonrpc" in response or (response.keys() <= {"id", "result"} and "result" in response):
        return response
    if response.keys() == {"error"}:
        return response
    return {"result": response}
