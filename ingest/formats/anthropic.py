"""Anthropic's messages, as logged requests and as sessions of Claude Code, as executions. Pure.

    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "search",
                                       "input": {"query": "whales"}}]}
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                                  "content": "...", "is_error": true}]}

A logged request is `{"messages": [...], "tools": [...]}`, alone, in a list, under `request`, `body`
or a batch's `params`; or a bare list of messages. A session of Claude Code
(`~/.claude/projects/*/*.jsonl`) has one message a line in an envelope: `sessionId`, `timestamp`,
`isSidechain`; its format is Anthropic's own affair and changes, so only these are read, and lines
of other kinds are passed over.

- A failure is what `is_error` says; other results are read as those of transcripts are.
- The id of an execution is made of the call's id, tool, parameters and answer: a session that was
  resumed or has grown, and a conversation that is logged with every request, give the same ids.
- A sidechain (a subagent) is a session of its own. `mcp__server__tool` is a tool of that server.
- A call without a result, and a result without its call, are told of and not recorded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    bounded_text,
    check_json_object,
    make_json_value,
)
from aftercall.mcp_calls import split_name
from ingest.formats.calls import (
    MAX_CONTEXT_CHARS,
    Given,
    Placed,
    digest,
    first_moment,
    first_name,
    name_of,
    placed_execution,
    stable_id,
    unreadable,
)
from ingest.formats.openai_chat import text_of, transcript_answer

CLAUDE_CODE = "claude-code"
"""The agent of its sessions."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_HOLDERS = ("request", "body", "params", "input")
_OF_THE_CLIENT = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
_LOOKED_AT = 20
"""Messages of a conversation among which one with blocks of Anthropic's shows the format."""
_NO_RESULT = "the call has no result here, so how it ended is not known"
_NO_CALL = "is the result of a call that is not here"


@dataclass(frozen=True, slots=True)
class _Speaker:
    """Whose messages these are."""

    session: str
    agent: str
    schemas: dict[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Call:
    where: str
    block: dict[str, Any]
    speaker: _Speaker
    sequence: int
    context: str | None
    at: datetime | None


@dataclass(slots=True)
class MessageLog:
    """Matches calls and results of messages that come in their order."""

    given: Given
    _open: dict[str, _Call] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _context: dict[str, str] = field(default_factory=dict)

    def feed(
        self, message: dict[str, Any], where: str, speaker: _Speaker, at: datetime | None
    ) -> Iterator[Placed]:
        """What a message tells: the calls whose results it holds."""
        content, role = message.get("content"), message.get("role")
        blocks = content if isinstance(content, list) else []
        if role == "user" and (said := text_of(content)):
            self._context[speaker.session] = bounded_text(said, MAX_CONTEXT_CHARS)
        for number, block in enumerate(blocks):
            if not isinstance(block, dict):
                continue
            place = f"{where}content[{number}]"
            kind = block.get("type")
            if kind in _CALLS:
                yield from self._called(block, place, speaker, at)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                call = self._open.pop(str(block.get("tool_use_id")), None)
                yield unreadable(place, _NO_CALL) if call is None else self._answered(call, block)

    def finish(self) -> Iterator[Placed]:
        """Calls that have no result."""
        for call in self._open.values():
            yield unreadable(call.where, _NO_RESULT)
        self._open.clear()

    def _called(
        self, block: dict[str, Any], where: str, speaker: _Speaker, at: datetime | None
    ) -> Iterator[Placed]:
        key = block.get("id")
        if not isinstance(key, str) or name_of(block.get("name")) is None:
            yield unreadable(where, "the call has no id or names no tool")
            return
        if key in self._open:
            yield unreadable(self._open[key].where, _NO_RESULT)
        sequence = self._counts.get(speaker.session, 0)
        self._counts[speaker.session] = sequence + 1
        context = self._context.get(speaker.session)
        self._open[key] = _Call(where, block, speaker, sequence, context, at)

    def _answered(self, call: _Call, block: dict[str, Any]) -> Placed:
        content, failed = block.get("content"), block.get("is_error") is True
        if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
            content, failed = {"error": content}, True
        if isinstance(content, str) and (wrapped := _OF_THE_CLIENT.fullmatch(content)):
            content = wrapped[1]
        told = call.block.get("input")
        try:
            parameters = check_json_object({} if told is None else told)
        except InvalidJsonValueError as error:
            return unreadable(call.where, f"the call's input cannot be stored: {error}")
        prefixes = self.given.error_prefixes
        answer = transcript_answer(make_json_value(content), failed=failed, prefixes=prefixes)
        server, tool = split_name(call.block["name"])
        fields = answer.fields()
        said = answer.error.model_dump(mode="json") if answer.error else answer.result
        return placed_execution(
            call.where,
            execution_id=stable_id("anthropic", call.block["id"], tool, parameters, said),
            timestamp=call.at or self.given.at + timedelta(milliseconds=call.sequence),
            agent=self.given.agent or call.speaker.agent,
            server_name=name_of(call.block.get("server_name")) or server,
            tool_name=name_of(tool),
            parameters=parameters,
            context=call.context,
            session_id=call.speaker.session,
            sequence=call.sequence,
            input_schema=call.speaker.schemas.get(tool),
            **fields,
        )


@dataclass(slots=True)
class ClaudeCodeSessions:
    """Reads the lines of sessions in their order; `passed_over` counts those without a message."""

    given: Given
    passed_over: int = 0
    _log: MessageLog | None = None

    def feed(self, value: object, where: str) -> Iterator[Placed]:
        """What a line tells."""
        self._log = self._log or MessageLog(self.given)
        message = value.get("message") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(message, dict):
            self.passed_over += 1
            return
        session = first_name(value, "sessionId") or "claude-code"
        if value.get("isSidechain") is True:
            session = name_of(f"{session}/{value.get('agentId') or 'sidechain'}") or session
        speaker = _Speaker(session, CLAUDE_CODE)
        yield from self._log.feed(message, f"{where}, ", speaker, first_moment(value, "timestamp"))

    def finish(self) -> Iterator[Placed]:
        """What is open at the end."""
        if self._log is not None:
            yield from self._log.finish()


def is_session_line(value: dict[str, Any]) -> bool:
    """Whether a value is a line of a session of Claude Code."""
    in_session = "sessionId" in value and ("uuid" in value or "parentUuid" in value)
    return isinstance(value.get("type"), str) and (in_session or "leafUuid" in value)


def is_messages(value: object) -> bool:
    """Whether a value is a conversation, a message or an answer in Anthropic's form."""
    if not isinstance(value, dict):
        return False
    if any(is_messages(value.get(key)) for key in _HOLDERS):
        return True
    tools, listed = value.get("tools"), value.get("messages")
    if isinstance(tools, list) and any(isinstance(t, dict) and "input_schema" in t for t in tools):
        return True
    messages = listed[:_LOOKED_AT] if isinstance(listed, list) else [value]
    return any(_blocks(each, *_CALLS, "tool_result") for each in messages)


def _blocks(message: object, *kinds: str) -> bool:
    """Whether a message has a block whose type ends so."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    types = (each.get("type") for each in blocks if isinstance(each, dict))
    return any(isinstance(kind, str) and kind.endswith(kinds) for kind in types)


def read_messages(value: object, given: Given, where: str = "") -> Iterator[Placed]:
    """The calls of the conversations in a JSON value, in their order."""
    if isinstance(value, list):
        if any(isinstance(each, dict) and "role" in each for each in value):
            yield from _conversation({"messages": value}, given, where)
            return
        for number, each in enumerate(value):
            yield from read_messages(each, given, f"{where}[{number}]")
        return
    held = value if isinstance(value, dict) else {}
    inner = next((held[key] for key in _HOLDERS if isinstance(held.get(key), dict)), None)
    if isinstance(held.get("messages"), list):
        yield from _conversation(held, given, where)
    elif inner is not None:
        answer = held.get("response")
        turns = inner.get("messages")
        if isinstance(answer, dict) and isinstance(turns, list):
            inner = {**inner, "messages": [*turns, answer]}
        yield from read_messages({**held, **inner} | dict.fromkeys(_HOLDERS), given, where)
    elif "role" in held:
        yield from _conversation({"messages": [held]}, given, where)
    else:
        yield unreadable(where or "the value", "holds no messages")


def _conversation(value: dict[str, Any], given: Given, where: str) -> Iterator[Placed]:
    messages = [each for each in value["messages"] if isinstance(each, dict)]
    # All that comes before the first result is in each longer version of a conversation too.
    begun = next((at for at, each in enumerate(messages) if _blocks(each, "tool_result")), 0)
    first = make_json_value(messages[: begun or 1])
    speaker = _Speaker(
        first_name(value, "session_id", "conversation_id", "thread_id", "custom_id")
        or f"claude-{digest(first)[:32]}",
        first_name(value, "agent", "agent_name", "model") or "unknown",
        dict(_schemas(value.get("tools"))),
    )
    log, at = MessageLog(given), first_moment(value, "timestamp", "created_at", "time")
    for number, message in enumerate(messages):
        yield from log.feed(message, f"{where}messages[{number}].", speaker, at)
    yield from log.finish()


def _schemas(tools: object) -> Iterator[tuple[str, JsonObject]]:
    for tool in tools if isinstance(tools, list) else ():
        told = tool if isinstance(tool, dict) else {}
        name, schema = told.get("name"), told.get("input_schema")
        if isinstance(name, str) and isinstance(schema, dict):
            try:
                yield split_name(name)[1], check_json_object(schema)
            except InvalidJsonValueError:
                continue  # what cannot be stored is no schema; the calls are read without it
