"""Small transcripts and logs, built piece by piece."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from aftercall.models import Execution
from ingest.formats.calls import Given, Placed, Unreadable
from ingest.formats.mcp_messages import McpLog, Message, messages_in, messages_in_line
from ingest.formats.transcripts import read_transcript

AT = datetime(2026, 2, 20, 14, 30, tzinfo=UTC)
GIVEN = Given(at=AT)


def user(text: object) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(call_id: str, tool: str, arguments: object) -> dict[str, Any]:
    """An assistant's message with one call."""
    told = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": told}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(call_id: str, content: object, **more: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def of_transcript(
    value: object, given: Given = GIVEN
) -> tuple[list[Execution], list[tuple[str, str]]]:
    """The executions of a transcript, and what could not be read: where and why."""
    return split(read_transcript(value, given))


def of_log(*entries: object, given: Given = GIVEN) -> tuple[list[Execution], list[tuple[str, str]]]:
    """As `of_transcript`, of a log of MCP: JSON values, or lines of text."""
    return split(_read(entries, given))


def _read(entries: tuple[object, ...], given: Given) -> Iterator[Placed]:
    log = McpLog(given)
    for number, entry in enumerate(entries, start=1):
        where = f"line {number}"
        found = (
            messages_in_line(entry, where) if isinstance(entry, str) else messages_in(entry, where)
        )
        for each in found:
            if isinstance(each, Message):
                yield from log.feed_message(each)
            else:
                yield each
    yield from log.finish_log()


def split(found: Iterator[Placed]) -> tuple[list[Execution], list[tuple[str, str]]]:
    executions, rest = [], []
    for where, read in found:
        if isinstance(read, Execution):
            executions.append(read)
        elif isinstance(read, Unreadable):
            rest.append((where, read.message))
    return executions, rest


def rpc(rpc_id: object, method: str, params: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params or {}}


def call(rpc_id: object, tool: str, arguments: object, **meta: object) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return rpc(rpc_id, "tools/call", params)


def result(rpc_id: object, value: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "result": value}


def texts(*said: str, **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in said], **more}


HELLO = (
    rpc(0, "initialize", {"protocolVersion": "2025-06-18", "clientInfo": {"name": "inspector"}}),
    result(0, {"protocolVersion": "2025-06-18", "serverInfo": {"name": "weather", "version": "1"}}),
)
