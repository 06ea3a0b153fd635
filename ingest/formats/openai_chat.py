"""Transcripts of OpenAI's APIs: tool calls and their results, matched, as executions. Pure.

    {"messages": [{"role": "user", "content": "..."},
                  {"role": "assistant", "tool_calls": [{"id": "c1", "function": {...}}]},
                  {"role": "tool", "tool_call_id": "c1", "content": "..."}]}

Also the older `function_call` with `role: function`, and items of the Responses API:

| value | read as |
|---|---|
| `{"messages": [...], "tools": [...]}` | one conversation, also a line for fine-tuning |
| `{"object": "response", "output": [...]}`, with `input` or without | one |
| `{"object": "list", "data": [...]}` of messages or items | one |
| `{"choices": [{"message": ...}]}` | one; its calls have no results yet |
| `[message or item, ...]` | one |
| `[conversation, ...]` | each |

- A call without a result, a result without its call, and a call whose arguments are no JSON object
  are told of and not recorded: the last never reached a tool.
- Calls made together under one id, or without ids, are told of and not recorded: nobody can tell
  whose a result is.
- The id of an execution is made of the conversation up to its result, and of its name where it has
  one. So a longer version of a conversation, or one that is logged anew with every request, gives
  the same ids.
- `context` is the last message of a user before the call, bounded.

A transcript has no flag for failures, so only what is unmistakable in its structure counts: the
message says so (`status: "error"`, `is_error`), as some frameworks write it; the content is a typed
outcome (see `aftercall.outcomes`), an MCP result or anything else with `isError: true`, or an
object that holds nothing but an error: `{"error": "...", "code": 404}`. All else succeeded,
whatever its text. A person who knows better says how failures begin (`--error-prefix`); then that
is what the text is compared with, and nothing else.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic_core import from_json

from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    bounded_json,
    bounded_text,
    canonical_json,
    check_json_object,
)
from aftercall.outcomes import Outcome
from ingest.formats.calls import (
    MAX_CONTEXT_CHARS,
    TOOL_ERROR,
    Given,
    Placed,
    ToolAnswer,
    failure_in_object,
    failure_in_text,
    first_moment,
    first_name,
    is_mcp_result,
    mcp_answer,
    name_of,
    placed_execution,
    stable_id,
    texts_of,
    unreadable,
)

_NAMES = ("conversation_id", "session_id", "thread_id", "chat_id")
_SESSIONS = (*_NAMES, "trace_id", "id")
"""The last two are often of one request only, of the many that a conversation takes."""
TIMES = ("created_at", "timestamp", "created", "time", "date")
_NO_CONVERSATION = (
    "is no conversation: a list of messages or items, or an object with `messages`, `input`, "
    "`output` or `data`"
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
_NO_RESULT = "the call has no result in the transcript, so nobody knows what became of it"
_NO_CALL = "the result has no call before it in the transcript"
_SAME_ID = (
    "other calls made at the same time have the same id, or none either, so nobody can tell which "
    "result is its"
)
_NO_NAME = "the call names no tool"
_NO_ARGUMENTS = "the call's arguments are no JSON object, so it was never a call"
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


class Turn(NamedTuple):
    """A message or an item, and where it stands."""

    where: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of a conversation, and what is said of the whole."""

    turns: list[Turn | Placed]
    name: str | None = None
    """Of the whole conversation; the same in each longer version of it."""
    session: str | None = None
    agent: str | None = None
    at: datetime | None = None
    schemas: dict[str, JsonObject] = field(default_factory=dict)


class _NotACallError(Exception):
    """A call that no tool can have got; the message says why."""


@dataclass(frozen=True, slots=True)
class _Call:
    where: str
    tool: str
    parameters: JsonObject
    sequence: int
    context: str | None
    at: datetime | None
    server: str | None = None


@dataclass(slots=True)
class _Reader:
    """Goes through one conversation."""

    conversation: Conversation
    given: Given
    session: str | None = None
    context: str | None = None
    calls: int = 0
    waiting: dict[str, _Call] = field(default_factory=dict)
    early: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """Results that stand before their calls, as in lists with the newest item first."""
    refused: set[str] = field(default_factory=set)
    """Calls that were none; what stands as their result is the framework's answer, not a tool's."""
    together: set[str] = field(default_factory=set)
    """Calls made at the same time: in one message, or in items with nothing else between them."""
    so_far: Any = field(default_factory=hashlib.sha256)

    def read(self) -> Iterator[Placed]:
        self.session = self.conversation.session
        if self.conversation.name is not None:
            self.so_far.update(self.conversation.name.encode("utf-8", "surrogatepass"))
        for turn in self.conversation.turns:
            if isinstance(turn, Placed):
                yield turn
                continue
            self.so_far.update(canonical_json(turn.value).encode("utf-8", "surrogatepass"))
            yield from self._turn(turn)
        for call in self.waiting.values():
            yield unreadable(call.where, _NO_RESULT)
        for where, _ in self.early.values():
            yield unreadable(where, _NO_CALL)

    def _turn(self, turn: Turn) -> Iterator[Placed]:
        value, kind, role = turn.value, turn.value.get("type"), turn.value.get("role")
        if not (isinstance(kind, str) and kind in _CALLS):
            self.together.clear()
        if isinstance(kind, str) and kind in _CALLS:
            yield from self._item_call(turn, kind)
        elif isinstance(kind, str) and kind in _RESULTS:
            key = _key(value.get("call_id"))
            if key in self.waiting:
                yield self._answered(key, value.get("output"), value)
            elif key not in self.refused:
                self.early[key] = (turn.where, value)
        elif kind == "mcp_call":
            yield from self._mcp_call(turn)
        elif role == "assistant":
            yield from self._assistant(turn)
        elif role in ("tool", "function"):
            key = _key(value.get("tool_call_id")) if role == "tool" else _legacy(value.get("name"))
            if key in self.waiting:
                yield self._answered(key, value.get("content"), value)
            elif key not in self.refused:
                yield unreadable(turn.where, _NO_CALL)
        elif role == "user":
            said = text_of(value.get("content"))
            self.context = bounded_text(said, MAX_CONTEXT_CHARS) if said else self.context

    def _assistant(self, turn: Turn) -> Iterator[Placed]:
        calls = turn.value.get("tool_calls")
        for number, told in enumerate(calls if isinstance(calls, list) else ()):
            where = f"{turn.where}.tool_calls[{number}]"
            if not isinstance(told, dict):
                yield unreadable(where, "is no call: it must be an object")
                continue
            custom = told.get("custom")
            inner = custom if isinstance(custom, dict) else told.get("function")
            inner = inner if isinstance(inner, dict) else told
            member = "input" if isinstance(custom, dict) else "arguments"
            yield from self._call(turn, where, _key(told.get("id")), inner, member)
        older = turn.value.get("function_call")
        if isinstance(older, dict):
            where = f"{turn.where}.function_call"
            yield from self._call(turn, where, _legacy(older.get("name")), older, "arguments")

    def _item_call(self, turn: Turn, kind: str) -> Iterator[Placed]:
        key = _key(turn.value.get("call_id"))
        yield from self._call(turn, turn.where, key, turn.value, _CALLS[kind])
        result = self.early.pop(key, None)
        if result is not None and key in self.waiting:
            yield self._answered(key, result[1].get("output"), result[1])

    def _mcp_call(self, turn: Turn) -> Iterator[Placed]:
        """Call and result in one item, made by OpenAI's servers; it has a flag for failures."""
        value, key = turn.value, _key(turn.value.get("id"))
        yield from self._call(
            turn, turn.where, key, value, "arguments", name_of(value.get("server_label"))
        )
        call = self.waiting.pop(key, None)
        if call is None:
            return
        error, output = value.get("error"), value.get("output")
        if error:
            answer = failure_in_object(error)
        elif value.get("status") == "failed":
            answer = failure_in_text(text_of(output) or "the call failed, and nothing says why")
        elif output is None:
            yield unreadable(turn.where, _NO_RESULT)
            return
        else:
            answer = transcript_answer(output, failed=False, prefixes=self.given.error_prefixes)
        yield self._execution(call, key, answer)

    def _call(
        self,
        turn: Turn,
        where: str,
        key: str,
        told: dict[str, Any],
        member: str,
        server: str | None = None,
    ) -> Iterator[Placed]:
        if self.session is None:
            self.session = f"chat-{self.so_far.hexdigest()[:32]}"
        sequence, self.calls = self.calls, self.calls + 1
        is_ambiguous = key in self.together
        self.together.add(key)
        if (unanswered := self.waiting.pop(key, None)) is not None:
            yield unreadable(unanswered.where, _SAME_ID if is_ambiguous else _NO_RESULT)
        if is_ambiguous:
            yield unreadable(where, _SAME_ID)
            self.refused.add(key)
            return
        tool = told.get("name")
        if not isinstance(tool, str) or not tool:
            yield unreadable(where, _NO_NAME)
            self.refused.add(key)
            return
        try:
            parameters = _parameters(told.get(member), free=member == "input")
        except _NotACallError as error:
            yield unreadable(where, str(error))
            self.refused.add(key)
            return
        self.refused.discard(key)
        at = first_moment(turn.value, *TIMES)
        self.waiting[key] = _Call(where, tool, parameters, sequence, self.context, at, server)

    def _answered(self, key: str, content: object, told: dict[str, Any]) -> Placed:
        call = self.waiting.pop(key)
        failed = (
            told.get("status") == "error"
            or told.get("is_error") is True
            or told.get("isError") is True
        )
        prefixes = self.given.error_prefixes
        return self._execution(
            call, key, transcript_answer(content, failed=failed, prefixes=prefixes)
        )

    def _execution(self, call: _Call, key: str, answer: ToolAnswer) -> Placed:
        whole, given = self.conversation, self.given
        at = call.at or (whole.at or given.at) + timedelta(milliseconds=call.sequence)
        return placed_execution(
            call.where,
            execution_id=stable_id(self.so_far.hexdigest(), key, call.sequence),
            timestamp=at,
            agent=given.agent or whole.agent or "unknown",
            server_name=call.server,
            tool_name=call.tool,
            parameters=call.parameters,
            context=call.context,
            session_id=self.session,
            sequence=call.sequence,
            input_schema=whole.schemas.get(call.tool),
            **answer.fields(),
        )


def conversations(value: object, where: str = "") -> Iterator[Conversation | Placed]:
    """The conversations in a value; what is none comes as unreadable."""
    if isinstance(value, dict):
        yield _of_object(value, where)
    elif isinstance(value, list) and (not value or any(map(is_turn, value))):
        yield Conversation(_turns(value, where))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            place = f"{where}[{number}]"
            if isinstance(each, dict):
                yield _of_object(each, place)
            elif isinstance(each, list) and any(map(is_turn, each)):
                yield Conversation(_turns(each, place))
            else:
                yield unreadable(place, _NO_CONVERSATION)
    else:
        yield unreadable(where or "the value", _NO_CONVERSATION)


def is_turn(value: object) -> bool:
    """Whether a value is a message of a chat or an item of a response."""
    return isinstance(value, dict) and (
        (isinstance(value.get("role"), str) and not isinstance(value.get("messages"), list))
        or (
            isinstance(value.get("type"), str)
            and not {"messages", "input", "output", "data"} & value.keys()
        )
        or ("call_id" in value and "output" in value)
    )


def _of_object(value: dict[str, Any], where: str) -> Conversation | Placed:
    turns: list[Turn | Placed] = []
    found = False
    for key in ("messages", "input", "output", "data"):
        held = value.get(key)
        if isinstance(held, list):
            found = True
            turns += _turns(held, join(where, key))
        elif key == "input" and isinstance(held, str):
            turns.append(Turn(join(where, key), {"role": "user", "content": held}))
    choices = value.get("choices")
    if isinstance(choices, list):
        found = True
        for number, choice in enumerate(choices):
            message = choice.get("message") if isinstance(choice, dict) else None
            if isinstance(message, dict):
                turns.append(Turn(join(where, f"choices[{number}].message"), message))
    if not found:
        return unreadable(
            where or "the value", _ONE_MESSAGE if is_turn(value) else _NO_CONVERSATION
        )
    conversation = value.get("conversation")
    inner = conversation.get("id") if isinstance(conversation, dict) else conversation
    name = name_of(inner) or first_name(value, *_NAMES)
    return Conversation(
        turns,
        name=name,
        session=name or first_name(value, *_SESSIONS),
        agent=first_name(value, "agent", "agent_name", "model"),
        at=first_moment(value, *TIMES),
        schemas=_schemas(value.get("tools"), value.get("functions")),
    )


def _turns(values: list[Any], where: str) -> list[Turn | Placed]:
    return [
        Turn(f"{where}[{number}]", value)
        if isinstance(value, dict)
        else unreadable(f"{where}[{number}]", "is no message: it must be an object")
        for number, value in enumerate(values)
    ]


def join(where: str, key: str) -> str:
    """The path of a member."""
    return f"{where}.{key}" if where else key


def _schemas(*lists: object) -> dict[str, JsonObject]:
    """Input schemas by tool, of `tools` in both APIs' forms and of the older `functions`."""
    found: dict[str, JsonObject] = {}
    for tools in lists:
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict):
                continue
            told = tool["function"] if isinstance(tool.get("function"), dict) else tool
            name, schema = told.get("name"), told.get("parameters")
            if isinstance(name, str) and isinstance(schema, dict):
                try:
                    found[name] = check_json_object(schema)
                except InvalidJsonValueError:
                    continue  # what cannot be stored is no schema; the calls are read without it
    return found


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
    typed = Outcome.coerce(held).error
    if typed is not None:
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


def read_transcript(value: object, given: Given) -> Iterator[Placed]:
    """The tool calls of the conversations in a JSON value, in their order."""
    for conversation in conversations(value):
        if isinstance(conversation, Placed):
            yield conversation
        else:
            yield from _Reader(conversation, given).read()


def _parameters(told: object, *, free: bool) -> JsonObject:
    """The arguments of a call, which the API writes as JSON text and some frameworks as an object.

    Raises:
        _NotACallError: they are no object.
    """
    if free:  # a custom tool takes one text, whatever it is
        return check_json_object({"input": told}) if isinstance(told, str) else {}
    if told is None or (isinstance(told, str) and not told.strip()):
        return {}  # what models write for a tool without parameters
    try:
        value = from_json(told, allow_inf_nan=False) if isinstance(told, str) else told
        return check_json_object(value)
    except InvalidJsonValueError as error:
        raise _NotACallError(f"{_NO_ARGUMENTS} ({error})") from None
    except ValueError:
        raise _NotACallError(_NO_ARGUMENTS) from None


def _key(call_id: object) -> str:
    return f"id {call_id}" if isinstance(call_id, str | int) else "no id"


def _legacy(name: object) -> str:
    return f"name {name}" if isinstance(name, str) else "no name"
