"""Transcripts of OpenAI's APIs: tool calls and their results, matched, as executions. Pure.

    {"messages": [{"role": "user", "content": "..."},
                  {"role": "assistant", "tool_calls": [{"id": "c1", "function": {...}}]},
                  {"role": "tool", "tool_call_id": "c1", "content": "..."}]}

Also the older `function_call` with `role: function`, and items of the Responses API. See
`openai_chat_shapes` for what a file may hold, `openai_chat_answers` for what counts as a failure.

- A call without a result, a result without its call, and a call whose arguments are no JSON object
  are told of and not recorded: the last never reached a tool.
- Calls made together under one id, or without ids, are told of and not recorded: nobody can tell
  whose a result is.
- The id of an execution is made of the conversation up to its result, and of its name where it has
  one. So a longer version of a conversation, or one that is logged anew with every request, gives
  the same ids.
- `context` is the last message of a user before the call, bounded.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json

from aftercall.bounded import bounded_text
from aftercall.json_values import InvalidJsonValueError, JsonObject, canonical_json
from aftercall.json_values import check_json_object as checked
from ingest.formats.answers import Answer, failure_in_object, failure_in_text
from ingest.formats.openai_chat_answers import text_of, transcript_answer
from ingest.formats.openai_chat_shapes import TIMES, Conversation, Turn, conversations
from ingest.formats.placed import (
    MAX_CONTEXT_CHARS,
    Given,
    Placed,
    first_moment,
    name_of,
    placed_execution,
    stable_id,
    unreadable,
)

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


def read_transcript(value: object, given: Given) -> Iterator[Placed]:
    """The tool calls of the conversations in a JSON value, in their order."""
    for conversation in conversations(value):
        if isinstance(conversation, Placed):
            yield conversation
        else:
            yield from _Reader(conversation, given).read()


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

    def _execution(self, call: _Call, key: str, answer: Answer) -> Placed:
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


def _parameters(told: object, *, free: bool) -> JsonObject:
    """The arguments of a call, which the API writes as JSON text and some frameworks as an object.

    Raises:
        _NotACallError: they are no object.
    """
    if free:  # a custom tool takes one text, whatever it is
        return checked({"input": told}) if isinstance(told, str) else {}
    if told is None or (isinstance(told, str) and not told.strip()):
        return {}  # what models write for a tool without parameters
    try:
        value = from_json(told, allow_inf_nan=False) if isinstance(told, str) else told
        return checked(value)
    except InvalidJsonValueError as error:
        raise _NotACallError(f"{_NO_ARGUMENTS} ({error})") from None
    except ValueError:
        raise _NotACallError(_NO_ARGUMENTS) from None


def _key(call_id: object) -> str:
    return f"id {call_id}" if isinstance(call_id, str | int) else "no id"


def _legacy(name: object) -> str:
    return f"name {name}" if isinstance(name, str) else "no name"
