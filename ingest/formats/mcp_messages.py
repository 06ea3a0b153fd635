"""Logs of MCP: requests `tools/call` and their responses, matched, as executions. Pure.

Requests and responses belong together by their id, within one session of one server. Anything that
a session states of itself is kept: the server's name (`initialize`), the client's, the tools' input
schemas (`tools/list`), which later calls carry. Results with `isError` and JSON-RPC errors are
failures.

- Calls without an answer are shown of and not recorded: at the end, when their id is used again,
  when the session begins again, and when they are cancelled.
- Notifications, progress and other requests are passed over.
- The id of an execution is made of the call, its answer, and how its session begins, so a log that
  has grown gives the same ids. Two sessions without times that say exactly the same count once.

Lines of a log that hold no message are passed over.

| who writes it | form |
|---|---|
| a tap on stdio | `{"jsonrpc": "2.0", ...}` a line |
| MCP Inspector 2, its history | `[{"timestamp", "origin", "message", "response", ...}]` |
| MCP Inspector 1, its history | `[{"request": "{...}", "response": "{...}"}]`, text or values |
| desktop clients | `2025-09-30T13:45:53Z [server] [info] Message from client: {...} { ... }` |
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic_core import from_json

from aftercall.arguments import Arguments, arguments_of
from aftercall.json_values import InvalidJsonValueError, JsonObject, JsonValue, bounded_text
from aftercall.json_values import check_json_object as checked
from ingest.formats.answers import transcript_answer
from ingest.formats.calls import (
    MAX_CONTEXT_CHARS,
    Given,
    Placed,
    ToolAnswer,
    digest_of,
    failure_in_rpc,
    first_name,
    left_out,
    mcp_answer,
    name_of,
    notes_of,
    placed_execution,
    read_moment,
    schemas_of,
    stable_id,
    unreadable_at,
)

Origin = Literal["client", "server"]
_SAID = re.compile(r"Message from (client|server): ?")
_BRACKETS = re.compile(r"\[([^\[\]]{1,256})\]")
_LEVELS = frozenset({"debug", "info", "notice", "warn", "warning", "error", "trace"})
_LEADING_TIME = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
)
_LOOKED_AT = 1000
"""Characters of a log's line before its message, at most."""
_CUT_OFF = "the message is cut off, or no JSON"
_LOOKS_LIKE_ONE = {"jsonrpc", "method", "request", "params"}
"""Other objects in a log are its own notes."""
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
"""In the `_meta` of a request, from protocol 2026-07-28 on, which has no `initialize`."""
_BEGINS = frozenset({"initialize", "server/discover"})
_OF_SERVERS = frozenset({"sampling/createMessage", "roots/list", "elicitation/create"})
"""Requests that only a server sends; their ids are numbered apart from the client's."""
_UNDECIDED = frozenset({"task", "taskId", "inputRequests", "requestState", "resultType"})
_NEVER = "the call has no answer in the log, so nobody knows what became of it"
_NO_CALL = "answers a call that is not in the log; does its beginning lie in an older file?"
_NO_OUTCOME = "is answered by a question or a task, which is neither success nor failure"


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message, and what stands around it."""

    where: str
    body: dict[str, Any]
    origin: Origin | None = None
    server: str | None = None
    at: datetime | None = None
    took_ms: float | None = None
    answer: dict[str, Any] | None = None
    """Its response, where the log holds both together: an object with `result` or `error`."""


@dataclass(frozen=True, slots=True)
class _Open:
    message: Message
    method: str
    schemas: dict[str, JsonObject]


@dataclass(slots=True)
class _Channel:
    label: str | None
    server: str | None = None
    client: str | None = None
    beginning: str = ""
    session: str | None = None
    calls: int = 0
    schemas: dict[str, JsonObject] = field(default_factory=dict)
    open: dict[tuple[str, object], _Open] = field(default_factory=dict)
    of_server: set[tuple[str, object]] = field(default_factory=set)


@dataclass(slots=True)
class McpLog:
    """Takes the messages of a log in their order."""

    given: Given
    _channels: dict[str | None, _Channel] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def feed_message(self, message: Message) -> Iterator[Placed]:
        """Yield what the log shows with this message."""
        channel = self._channels.setdefault(message.server, _Channel(message.server))
        if isinstance(message.body.get("method"), str):
            yield from self._take_request(channel, message)
        else:
            yield from self._take_response(channel, message)

    def finish_log(self) -> Iterator[Placed]:
        """Yield what is open at the end of the log."""
        for channel in self._channels.values():
            yield from self._close_channel(channel)

    def _take_request(self, channel: _Channel, message: Message) -> Iterator[Placed]:
        method, params = message.body["method"], _as_object(message.body.get("params"))
        if message.origin == "server" or method in _OF_SERVERS:
            if "id" in message.body:
                channel.of_server.add(_id_key(message.body["id"]))
            return
        if method == "notifications/cancelled":
            yield from self._drop_call(channel, _id_key(params.get("requestId")))
        if method == "initialize":
            yield from self._close_channel(channel)
            self._begin_session(channel, message, params)
        if "id" not in message.body and message.answer is None:
            if method == "tools/call":
                yield unreadable_at(message.where, _NEVER)
            return  # a notification
        opened = _Open(message, method, channel.schemas)
        if message.answer is not None:
            yield from self._match_answer(channel, opened, message.answer, message.took_ms)
            return
        key = _id_key(message.body["id"])
        yield from self._drop_call(channel, key)
        channel.open[key] = opened

    def _begin_session(self, channel: _Channel, message: Message, params: JsonObject) -> None:
        channel.client = first_name(_as_object(params.get("clientInfo")), "name")
        channel.server = None
        channel.beginning = digest_of([_text_of(message.at), params])
        channel.session, channel.calls = None, 0
        channel.schemas = {}

    def _take_response(self, channel: _Channel, message: Message) -> Iterator[Placed]:
        key = _id_key(message.body.get("id"))
        opened = channel.open.get(key)
        # It may be the one to a request, where the server's ids are the same.
        is_fit = opened is not None and (
            opened.method != "tools/call"
            or "error" in message.body
            or _is_call_result(message.body.get("result"))
        )
        if message.origin == "client" or (key in channel.of_server and not is_fit):
            channel.of_server.discard(key)
            return
        if opened is None:
            if _is_call_result(message.body.get("result")):
                yield unreadable_at(message.where, _NO_CALL)
            return
        del channel.open[key]
        took = None
        if message.at is not None and opened.message.at is not None:
            took = max((message.at - opened.message.at).total_seconds() * 1000, 0.0)
        yield from self._match_answer(channel, opened, message.body, took)

    def _match_answer(
        self, channel: _Channel, opened: _Open, answer: dict[str, Any], took_ms: float | None
    ) -> Iterator[Placed]:
        result = _as_object(answer.get("result"))
        if opened.method == "tools/call":
            yield from self._make_call(channel, opened, answer, took_ms)
        elif opened.method == "tools/list":
            opened.schemas.update(schemas_of(result.get("tools")))
        elif opened.method in _BEGINS:
            channel.server = (
                first_name(_as_object(result.get("serverInfo")), "name") or channel.server
            )

    def _make_call(
        self, channel: _Channel, opened: _Open, answer: dict[str, Any], took_ms: float | None
    ) -> Iterator[Placed]:
        message = opened.message
        params = _as_object(message.body.get("params"))
        tool, told = params.get("name"), params.get("arguments")
        if not isinstance(tool, str) or not tool:
            yield unreadable_at(message.where, "the call names no tool")
            return
        try:
            arguments = (
                arguments_of(told)
                if isinstance(told, str)
                else Arguments(checked({} if told is None else told))
            )
        except InvalidJsonValueError as fault:
            yield unreadable_at(message.where, f"the call's arguments cannot be stored: {fault}")
            return
        said_arguments = arguments.text if arguments.parameters is None else arguments.parameters
        error, result = answer.get("error"), _as_object(answer.get("result"))
        if error is None and _is_no_outcome(result):
            yield left_out(message.where, _NO_OUTCOME)
            return
        read = _answer_of(result) if error is None else failure_in_rpc(error)
        meta = _as_object(params.get("_meta"))
        sequence, channel.calls = channel.calls, channel.calls + 1
        time, rpc_id = _text_of(message.at), _text_of(message.body.get("id"))
        if channel.session is None:
            first: list[JsonValue] = [channel.label, channel.beginning, rpc_id, tool, time]
            channel.session = f"mcp-{digest_of([*first, said_arguments])[:32]}"
        session = name_of(meta.get("aftercall/session")) or channel.session
        fields = read.execution_fields()
        said = read.error.model_dump(mode="json") if read.error else [read.result, read.status]
        content = digest_of([session, rpc_id, tool, said_arguments, time, fields["outcome"], said])
        context = meta.get("aftercall/context")
        yield from notes_of(message.where, arguments)
        self._seen[content] += 1  # the same call may be made twice, without ids
        yield placed_execution(
            message.where,
            execution_id=stable_id(content, self._seen[content]),
            timestamp=message.at or self.given.at + timedelta(milliseconds=sequence),
            agent=self.given.agent
            or name_of(meta.get("aftercall/agent"))
            or first_name(_as_object(meta.get(_CLIENT_INFO)), "name")
            or channel.client
            or "unknown",
            server_name=channel.server or name_of(channel.label),
            tool_name=tool,
            **arguments.recorded_fields(),
            context=bounded_text(context, MAX_CONTEXT_CHARS) if isinstance(context, str) else None,
            duration_ms=took_ms or 0.0,
            session_id=session,
            sequence=sequence,
            input_schema=opened.schemas.get(tool),
            **fields,
        )

    def _close_channel(self, channel: _Channel) -> Iterator[Placed]:
        for key in list(channel.open):
            yield from self._drop_call(channel, key)
        channel.of_server.clear()

    def _drop_call(self, channel: _Channel, key: tuple[str, object]) -> Iterator[Placed]:
        if (opened := channel.open.pop(key, None)) is not None and opened.method == "tools/call":
            yield left_out(opened.message.where, _NEVER)


def messages_in(value: object, where: str) -> Iterator[Message | Placed]:
    """Yield the messages in a JSON value: one, a wrapped one, a pair, or a list of any of them."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _message_in(item, f"{where}[{number}]")
    else:
        yield from _message_in(value, where)


def messages_in_line(line: str, where: str) -> Iterator[Message | Placed]:
    """Yield the message in a line of a log that is no JSON by itself, if it holds one."""
    said = _SAID.search(line, 0, _LOOKED_AT)
    start = line.find("{", said.end() if said else 0)
    if start < 0 or (said is None and (start > _LOOKED_AT or '"jsonrpc"' not in line)):
        if said:
            yield unreadable_at(where, _CUT_OFF)
        return
    try:
        body, _ = json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        yield unreadable_at(where, _CUT_OFF)
        return
    if not is_message(body):
        return
    before = line[:start]
    labels = [
        label
        for label in _BRACKETS.findall(before)
        if label.lower() not in _LEVELS and read_moment(label) is None
    ]
    time = _LEADING_TIME.match(before)
    yield Message(
        where,
        body,
        origin="client" if said and said[1] == "client" else "server" if said else None,
        server=labels[0] if said and labels else None,
        at=read_moment(time[1]) if time else None,
    )


def is_message(value: object) -> bool:
    """Return whether a value is a JSON-RPC message."""
    return (
        isinstance(value, dict)
        and "jsonrpc" in value
        and (isinstance(value.get("method"), str) or "result" in value or "error" in value)
    )


def is_pair(value: object) -> bool:
    """Return whether a value is a request with its answer next to it, as Inspector 1 keeps them."""
    return (
        isinstance(value, dict)
        and "request" in value
        and isinstance(request := _unpack_text(value["request"]), dict)
        and isinstance(request.get("method"), str)
    )


def message_inside(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message that an object wraps, as Inspector 2 does."""
    held = value.get("message")
    return held if isinstance(held, dict) and is_message(held) else None


def _message_in(value: object, where: str) -> Iterator[Message | Placed]:
    if isinstance(value, list):  # a batch within a list
        for number, item in enumerate(value):
            if is_message(item):
                yield Message(f"{where}[{number}]", item)
    elif not isinstance(value, dict):
        yield unreadable_at(where, "is no message: it must be a JSON object")
    elif is_message(value):
        yield Message(where, value)
    elif is_pair(value):
        request = _as_object(_unpack_text(value["request"]))
        yield _message_around(value, where, request, answer=_answer_in(value.get("response")))
    elif (body := message_inside(value)) is not None:
        response = value.get("response") if isinstance(body.get("method"), str) else None
        yield _message_around(value, where, body, answer=_answer_in(response))
    elif _LOOKS_LIKE_ONE & value.keys():
        yield unreadable_at(where, "is no JSON-RPC message, and wraps none in a form known here")


def _message_around(
    value: dict[str, Any], where: str, body: dict[str, Any], *, answer: dict[str, Any] | None
) -> Message:
    took = value.get("duration")
    is_time = isinstance(took, int | float) and not isinstance(took, bool) and 0 <= took < 1e12
    return Message(
        where,
        body,
        origin=said if (said := value.get("origin")) in ("client", "server") else None,
        at=read_moment(value.get("timestamp")),
        took_ms=took if is_time else None,
        answer=answer,
    )


def _unpack_text(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value


def _answer_in(response: object) -> dict[str, Any] | None:
    """Return a response as `{"result": ...}` or `{"error": ...}`.

    Inspector 1 keeps the bare result.
    """
    response = _unpack_text(response)
    if not isinstance(response, dict):
        return None
    is_result = response.keys() <= {"id", "result"} and "result" in response
    if "jsonrpc" in response or is_result or response.keys() == {"error"}:
        return response
    return {"result": response}


def _is_call_result(result: object) -> bool:
    """Return whether it is the result of a call: it has content; a question or a task has none."""
    held = _as_object(result)
    return (
        isinstance(held.get("content"), list)
        or held.get("structuredContent") is not None
        or held.get("isError") is True
    )


def _is_no_outcome(result: JsonObject) -> bool:
    """Return whether a call is answered by a question or a task; bare objects are results."""
    return not _is_call_result(result) and (not result or not _UNDECIDED.isdisjoint(result))


def _answer_of(result: JsonObject) -> ToolAnswer:
    if _is_call_result(result):
        return mcp_answer(result)
    return transcript_answer(result, failed=False, pattern=None)  # of a server that keeps no rules


def _id_key(value: object) -> tuple[str, object]:
    """Return a key for an id: `1` and `"1"` are two."""
    return (type(value).__name__, value if isinstance(value, str | int | float) else None)


def _as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text_of(value: object) -> str | None:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if value is None else f"{type(value).__name__} {value}"
