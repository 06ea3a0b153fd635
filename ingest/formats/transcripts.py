"""Transcripts: calls of tools and their results in conversations, matched, as executions. Pure.

| value | read as |
|---|---|
| `{"messages": [...], "tools": [...]}` | one conversation, also a line for fine-tuning |
| `{"object": "response", "output": [...]}`, with `input` or without | one |
| `[message or item, ...]` | one |
| `[conversation, ...]` | each |
| a line of a session of Claude Code (`~/.claude/projects/*/*.jsonl`) | one message of its session |

Messages of OpenAI have `tool_calls` and results of their own, items of its Responses API are calls
and results, messages of Anthropic hold both as blocks of content.

- Told of and not recorded: a call without a result, a result without its call, arguments that are
  neither an object nor a text, and calls made together under one id or none.
- Arguments that are loose JSON are recorded as the object that they say. A text that is cut off or
  says no object never reached a tool: it is kept as it came, as a failed call whatever answered.
- The id of an execution is made of the call, its answer and, where the API's ids may repeat, how
  the conversation begins: a longer version of it gives the same ids.
- `context` is the last message of a user before the call, bounded.
- `mcp__server__tool` is a tool of that server. A subagent's calls are a session of their own.

Only what is unmistakable counts as a failure: the message says so (`is_error`, `status: "error"`);
the content is a typed outcome (see `aftercall.outcomes`), an MCP result or anything else with
`isError: true`, or an object that holds nothing but an error: `{"error": "...", "code": 404}`. All
else succeeded, whatever its text. A person who knows better says how failures begin
(`--error-prefix`); then that is what the text is compared with, and nothing else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic_core import from_json

from aftercall.arguments import Arguments, UnreadableArgumentsError, arguments_of
from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    JsonValue,
    bounded_json,
    bounded_text,
    check_json_object,
    json_or_none,
    make_json_value,
)
from aftercall.mcp_calls import split_name
from aftercall.outcomes import Outcome
from ingest.formats.calls import (
    MAX_CONTEXT_CHARS,
    TOOL_ERROR,
    Given,
    Placed,
    ToolAnswer,
    digest,
    failure_in_object,
    failure_in_text,
    first_moment,
    first_name,
    is_mcp_result,
    mcp_answer,
    name_of,
    notes_of,
    placed_execution,
    schemas_of,
    stable_id,
    texts_of,
    unreadable,
)

CLAUDE_CODE = "claude-code"
_NAMES = ("conversation_id", "session_id", "thread_id", "chat_id", "custom_id")
_SESSIONS = (*_NAMES, "trace_id", "id")
"""The last two are often of one request only, of the many that a conversation takes."""
_TIMES = ("created_at", "timestamp", "created", "time", "date")
_LISTS = ("messages", "input", "output")
_NO_CONVERSATION = (
    "is no conversation: a list of messages or items, or an object with `messages`, `input` or "
    "`output`"
)
_ONE_MESSAGE = (
    "is one message and no conversation; where every line is a message, make a list of them "
    "(`jq -s . FILE`)"
)
_MAX_JSON_CHARS = 1_000_000
"""Of a text that may be a JSON object; an error is far shorter, so a longer one is a success."""
_OF_AN_ERROR = frozenset({
    "error", "message", "errormessage", "msg", "code", "errorcode", "status", "statuscode", "type",
    "errortype", "name", "kind", "detail", "details", "data", "success", "ok", "iserror", "stack",
    "stacktrace", "traceback", "hint", "suggestion", "help", "requestid", "traceid", "timestamp",
    "path", "retryable",
})  # fmt: skip
"""Members, folded, of an object that is an error. One with others is a report that mentions one."""
_OF_THE_CLIENT = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
_NO_RESULT = "the call has no result here, so nobody knows what became of it"
_NO_CALL = "the result has no call before it here"
_SAME_ID = (
    "other calls made at the same time have the same id, or none either, so nobody can tell which "
    "result is its"
)
_NO_NAME = "the call names no tool"
_NO_ARGUMENTS = "the call's arguments are no JSON object, so it was never a call"
_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use")
_CALL, _RESULT = "function_call", "function_call_output"
"""Items of OpenAI's Responses API."""


class _Turn(NamedTuple):
    where: str
    value: dict[str, Any]


class _Call(NamedTuple):
    where: str
    tool: str
    arguments: Arguments
    sequence: int
    context: str | None
    at: datetime | None
    server: str | None
    scope: list[JsonValue]
    """What tells its id from those of other conversations; nothing where ids are unique."""


@dataclass(slots=True)
class _Conversation:
    given: Given
    session: str
    agent: str
    name: str = ""
    """The same in each longer version of it."""
    at: datetime | None = None
    schemas: dict[str, JsonObject] = field(default_factory=dict)
    context: str | None = None
    calls: int = 0
    waiting: dict[str, _Call] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Calls that were none; what stands as their result is the framework's answer, not a tool's."""
    together: set[str] = field(default_factory=set)
    """Calls made at the same time: in one message, or in items with nothing else between them."""

    def feed(self, turn: _Turn) -> Iterator[Placed]:
        """What a turn tells: the calls whose results it holds, and what could not be read."""
        value, where = turn.value, turn.where
        kind, role, content = value.get("type"), value.get("role"), value.get("content")
        if kind == _CALL:
            yield from self._call(turn, where, _key(value.get("call_id")), value)
            return
        self.together.clear()
        if kind == _RESULT:
            yield from self._result(where, _key(value.get("call_id")), value.get("output"), value)
        elif role == "tool":
            yield from self._result(where, _key(value.get("tool_call_id")), content, value)
        else:
            if role == "user" and (said := text_of(content)):
                self.context = bounded_text(said, MAX_CONTEXT_CHARS)
            yield from self._blocks(turn, content if isinstance(content, list) else [])
            if role == "assistant":
                yield from self._assistant(turn)

    def finish(self) -> Iterator[Placed]:
        for key, call in self.waiting.items():
            yield self._unanswered(key, call, _NO_RESULT)
        self.waiting.clear()

    def _unanswered(self, key: str, call: _Call, why: str) -> Placed:
        """A call that was made has an outcome nobody knows; one that could not be made failed."""
        if call.arguments.parameters is not None or why == _SAME_ID:
            return unreadable(call.where, why)
        return self._execution(key, call, ToolAnswer(UnreadableArgumentsError().error))

    def _execution(self, key: str, call: _Call, answer: ToolAnswer) -> Placed:
        said = answer.error.model_dump(mode="json") if answer.error else answer.result
        at = call.at or (self.at or self.given.at) + timedelta(milliseconds=call.sequence)
        # A call that could not be made may be answered in a longer version, and is the same one.
        content: list[JsonValue] = [call.arguments.parameters, said]
        if call.arguments.parameters is None:
            content = [call.arguments.text]
        return placed_execution(
            call.where,
            execution_id=stable_id(*call.scope, key, call.tool, *content),
            timestamp=at,
            agent=self.given.agent or self.agent,
            server_name=call.server,
            tool_name=call.tool,
            **call.arguments.recorded(),
            context=call.context,
            session_id=self.session,
            sequence=call.sequence,
            input_schema=self.schemas.get(call.tool),
            **answer.fields(),
        )

    def _blocks(self, turn: _Turn, blocks: list[Any]) -> Iterator[Placed]:
        for number, block in enumerate(blocks):
            kind = block.get("type") if isinstance(block, dict) else None
            where = f"{turn.where}.content[{number}]"
            if kind in _BLOCKS:
                server = name_of(block.get("server_name"))
                key = _key(block.get("id"))
                yield from self._call(turn, where, key, block, server, unique=True)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                content = block.get("content")
                if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
                    content = {"error": content}
                if isinstance(content, str) and (wrapped := _OF_THE_CLIENT.fullmatch(content)):
                    content = wrapped[1]
                yield from self._result(where, _key(block.get("tool_use_id")), content, block)

    def _assistant(self, turn: _Turn) -> Iterator[Placed]:
        calls = turn.value.get("tool_calls")
        for number, told in enumerate(calls if isinstance(calls, list) else ()):
            where = f"{turn.where}.tool_calls[{number}]"
            if not isinstance(told, dict):
                yield unreadable(where, "is no call: it must be an object")
                continue
            inner = told.get("function")
            inner = inner if isinstance(inner, dict) else told
            yield from self._call(turn, where, _key(told.get("id")), inner)

    def _call(
        self,
        turn: _Turn,
        where: str,
        key: str,
        told: dict[str, Any],
        server: str | None = None,
        *,
        unique: bool = False,
    ) -> Iterator[Placed]:
        sequence, self.calls = self.calls, self.calls + 1
        is_ambiguous = key in self.together
        self.together.add(key)
        if (unanswered := self.waiting.pop(key, None)) is not None:
            yield self._unanswered(key, unanswered, _SAME_ID if is_ambiguous else _NO_RESULT)
        name = told.get("name")
        arguments = _arguments(told.get("input" if unique else "arguments"))
        if is_ambiguous or isinstance(arguments, str) or not (isinstance(name, str) and name):
            why = arguments if isinstance(arguments, str) else _NO_NAME
            yield unreadable(where, _SAME_ID if is_ambiguous else why)
            self.refused.add(key)
            return
        self.refused.discard(key)
        in_name, tool = split_name(name)
        at = first_moment(turn.value, *_TIMES)
        scope: list[JsonValue] = [] if unique else [self.name, sequence]
        self.waiting[key] = _Call(
            where, tool, arguments, sequence, self.context, at, server or in_name, scope
        )
        yield from notes_of(where, arguments)

    def _result(
        self, where: str, key: str, content: object, told: dict[str, Any]
    ) -> Iterator[Placed]:
        if (call := self.waiting.pop(key, None)) is not None:
            is_unmade = call.arguments.parameters is None
            flags = (told.get("status") == "error", told.get("is_error"), told.get("isError"))
            answer = transcript_answer(
                make_json_value(content),
                failed=True in flags or is_unmade,
                prefixes=self.given.error_prefixes,
            )
            yield self._execution(key, call, answer)
        elif key not in self.refused:
            yield unreadable(where, _NO_CALL)


@dataclass(slots=True)
class ClaudeCodeSessions:
    """Reads the lines of sessions in their order.

    Their format is Anthropic's own affair and changes, so only the message, `sessionId`,
    `timestamp` and `isSidechain` are read, and lines of other kinds are passed over.
    """

    given: Given
    _sessions: dict[str, _Conversation] = field(default_factory=dict)

    def feed(self, value: object, where: str) -> Iterator[Placed]:
        """What a line tells."""
        message = value.get("message") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(message, dict):
            return
        name = first_name(value, "sessionId") or CLAUDE_CODE
        if value.get("isSidechain") is True:
            name = name_of(f"{name}/{value.get('agentId') or 'sidechain'}") or name
        session = self._sessions.setdefault(name, _Conversation(self.given, name, CLAUDE_CODE))
        at = {key: value[key] for key in ("timestamp",) if key in value}
        yield from session.feed(_Turn(f"{where}, message", {**message, **at}))

    def finish(self) -> Iterator[Placed]:
        """What is open at the end."""
        for session in self._sessions.values():
            yield from session.finish()


def is_session_line(value: dict[str, Any]) -> bool:
    """Whether a value is a line of a session of Claude Code."""
    in_session = "sessionId" in value and ("uuid" in value or "parentUuid" in value)
    return isinstance(value.get("type"), str) and (in_session or "leafUuid" in value)


def is_transcript(value: dict[str, Any]) -> bool:
    """Whether a value is a conversation, or a turn of one."""
    return is_turn(value) or any(isinstance(value.get(key), list) for key in _LISTS)


def is_turn(value: object) -> bool:
    """Whether a value is a message of a chat or an item of a response."""
    return isinstance(value, dict) and (
        (isinstance(value.get("role"), str) and not isinstance(value.get("messages"), list))
        or (isinstance(value.get("type"), str) and not value.keys() & _LISTS)
        or value.get("type") == _RESULT
    )


def read_transcript(value: object, given: Given, where: str = "") -> Iterator[Placed]:
    """The tool calls of the conversations in a JSON value, in their order."""
    if isinstance(value, list) and value and not any(map(is_turn, value)):
        for number, each in enumerate(value):
            yield from read_transcript(each, given, f"{where}[{number}]")
        return
    if isinstance(value, list):
        yield from _read({}, list(_turns(value, where)), given)
        return
    if not isinstance(value, dict):
        yield unreadable(where or "the value", _NO_CONVERSATION)
        return
    turns = list(_turns_of(value, where))
    if turns or any(isinstance(value.get(key), list) for key in _LISTS):
        yield from _read(value, turns, given)
    else:
        told = _ONE_MESSAGE if is_turn(value) else _NO_CONVERSATION
        yield unreadable(where or "the value", told)


def _turns_of(value: dict[str, Any], where: str) -> Iterator[_Turn | Placed]:
    for key in _LISTS:
        held, place = value.get(key), f"{where}.{key}" if where else key
        if isinstance(held, list):
            yield from _turns(held, place)
        elif key == "input" and isinstance(held, str):
            yield _Turn(place, {"role": "user", "content": held})


def _turns(values: list[Any], where: str) -> Iterator[_Turn | Placed]:
    for number, value in enumerate(values):
        place = f"{where}[{number}]"
        if isinstance(value, dict):
            yield _Turn(place, value)
        else:
            yield unreadable(place, "is no message: it must be an object")


def _read(value: dict[str, Any], turns: Sequence[_Turn | Placed], given: Given) -> Iterator[Placed]:
    inner = value.get("conversation")
    inner = inner.get("id") if isinstance(inner, dict) else inner
    name = name_of(inner) or first_name(value, *_NAMES)
    values = [each.value for each in turns if isinstance(each, _Turn)]
    # What stands before the first result is in each longer version too.
    first = next((at for at, each in enumerate(values) if _has_result(each)), 0)
    begun = name or digest(make_json_value(values[: first or 1]))
    conversation = _Conversation(
        given,
        session=name or first_name(value, *_SESSIONS) or f"chat-{begun[:32]}",
        agent=first_name(value, "agent", "agent_name", "model") or "unknown",
        name=begun,
        at=first_moment(value, *_TIMES),
        schemas={split_name(k)[1]: each for k, each in schemas_of(value.get("tools")).items()},
    )
    for turn in turns:
        if isinstance(turn, _Turn):
            yield from conversation.feed(turn)
        else:
            yield turn
    yield from conversation.finish()


def _has_result(turn: dict[str, Any]) -> bool:
    content = turn.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = [turn.get("type"), *(each.get("type") for each in blocks if isinstance(each, dict))]
    return turn.get("role") == "tool" or any(
        isinstance(kind, str) and (kind == _RESULT or kind.endswith("tool_result"))
        for kind in kinds
    )


def transcript_answer(content: object, *, failed: bool, prefixes: Sequence[str]) -> ToolAnswer:
    """The answer in the content of a tool's message."""
    text = text_of(content)
    held = content if isinstance(content, Mapping) else _object_in(text)
    if held is not None and (found := _structured(held, failed=failed)) is not None:
        return found
    if failed or (text is not None and text.lstrip().startswith(tuple(prefixes))):
        return failure_in_text(text if text is not None else str(bounded_json(content)))
    status = None if held is None else Outcome.coerce(held).status
    return ToolAnswer(result=bounded_json(content if text is None else text), status=status)


def text_of(content: object) -> str | None:
    """The text of a message; None for what is neither text nor parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in content
    ):
        return "\n".join(texts_of(content))
    return None


def _object_in(text: str | None) -> Mapping[str, Any] | None:
    if text is None or len(text) > _MAX_JSON_CHARS or not text.lstrip().startswith("{"):
        return None
    try:
        value = from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _structured(held: Mapping[str, Any], *, failed: bool) -> ToolAnswer | None:
    if (typed := Outcome.coerce(held).error) is not None:
        return ToolAnswer(typed)
    if is_mcp_result(held) and "isError" in held:
        return mcp_answer(held)
    if held.get("isError") is True or failed or _is_an_error(held):
        inner = held.get("error")
        if isinstance(inner, Mapping) and inner:
            return failure_in_object(inner)
        message = inner if isinstance(inner, str) and inner else held.get("message")
        outer = {key: item for key, item in held.items() if key not in {"error", "isError"}}
        kind = held.get("type") or held.get("errorType") or held.get("error_type") or TOOL_ERROR
        return failure_in_object(outer | {"message": message or held, "type": kind})
    return None


def _is_an_error(held: Mapping[str, Any]) -> bool:
    error = held.get("error")
    told = isinstance(error, str | Mapping) and bool(error)
    flagged = error is True and isinstance(held.get("message"), str)
    return (told or flagged) and all(
        re.sub(r"[-_.\s]+", "", key[:100]).lower() in _OF_AN_ERROR for key in held
    )


def _arguments(told: object) -> Arguments | str:
    """The arguments of a call, an object or a text; else why they are none."""
    if told is None:
        return Arguments({})  # what models write for a tool without parameters
    value = json_or_none(told) if isinstance(told, str) else told
    if isinstance(told, str) and not isinstance(value, dict):
        return arguments_of(told)
    try:
        return Arguments(check_json_object(value))
    except InvalidJsonValueError as error:
        return f"{_NO_ARGUMENTS} ({error})"


def _key(call_id: object) -> str:
    return f"id {call_id}" if isinstance(call_id, str | int) else "no id"
