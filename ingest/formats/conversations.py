"""A conversation: its calls and results, matched, as executions. Pure.

- Reported and not recorded: a call without a result, a result without its call, arguments that are
  neither an object nor a text, and calls made together under one id or none.
- Arguments that are loose JSON are recorded as the object that they say. A text that is cut off or
  states no object never reached a tool: it is kept as it came, as a failed call whatever answered.
- The id of an execution is made of the call, its answer and, where ids may repeat, how the
  conversation begins: a longer version of it gives the same ids.
- `context` is the last message of a user before the call, bounded.
- `mcp__server__tool` is a tool of that server. A subagent's calls are a session of their own.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from aftercall.arguments import Arguments, UnreadableArgumentsError, arguments_of
from aftercall.error_texts import split_name
from aftercall.json_values import (
    InvalidJsonValueError,
    JsonObject,
    JsonValue,
    bounded_text,
    check_json_object,
    json_or_none,
    make_json_value,
)
from ingest.formats.answers import ErrorGuesses
from ingest.formats.calls import (
    MAX_CONTEXT_CHARS,
    Given,
    Placed,
    ToolAnswer,
    digest_of,
    left_out,
    notes_of,
    placed_execution,
    stable_id,
    unreadable_at,
)

_NO_RESULT = "the call has no result here, so nobody knows what became of it"
_NO_CALL = "the result has no call before it here"
_SAME_ID = (
    "other calls made at the same time have the same id, or none either, so nobody can tell which "
    "result is its"
)
_NO_NAME = "the call names no tool"
_NO_ARGUMENTS = "the call's arguments are no JSON object, so it was never a call"
_NOT_ENDED = "the call had not ended, or was cancelled, when the file was written"


class AnswerReader(Protocol):
    """What a result answers."""

    def __call__(self, *, failed: bool) -> ToolAnswer:
        """Return the answer."""


class StatedCall(NamedTuple):
    """A call as a form states it."""

    where: str
    name: object
    key: object = None
    """Its id."""
    arguments: object = None
    server: str | None = None
    at: datetime | None = None
    agent: str | None = None
    session: str | None = None
    is_unique: bool = False
    """No other conversation has its id."""
    is_ordered: bool = False
    """Without an id, the next result for the tool is its."""


class _Open(NamedTuple):
    call: StatedCall
    tool: str
    server: str | None
    arguments: Arguments
    sequence: int
    context: str | None


@dataclass(slots=True)
class Conversation:
    """Takes what is stated, in its order."""

    given: Given
    guesses: ErrorGuesses
    name: str = ""
    """The same in each longer version of it; made of how it begins where it has none."""
    session: str | None = None
    at: datetime | None = None
    schemas: dict[str, JsonObject] = field(default_factory=dict)
    context: str | None = None
    calls: int = 0
    waiting: dict[str, _Open] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Calls that were none; what stands as their result is the framework's answer, not a tool's."""
    together: dict[str, str | None] = field(default_factory=dict)
    """Ids of calls made at the same time, with their tools."""
    told: set[tuple[str, str | None]] = field(default_factory=set)
    """Ids and tools of calls that came with their results, and answered ids."""
    failing: set[str] = field(default_factory=set)
    """Calls that are stated to have failed before their results come."""
    begun_calls: dict[str, str] = field(default_factory=dict)
    """Keys and places of calls that the form states to be running."""
    begun: list[object] = field(default_factory=list)
    """What stands before the first result, which each longer version has too."""
    _queues: dict[str, deque[str]] = field(default_factory=dict)

    def take_turn(self, value: object, *, is_call: bool) -> None:
        """Note that a further message, item or event begins."""
        if not is_call:  # items that are calls follow each other where they were made together
            self.together.clear()
        if not self.name:
            self.begun.append(value)

    def take_user(self, text: str) -> None:
        """Note what a user states."""
        self.context = bounded_text(text, MAX_CONTEXT_CHARS)

    def take_call(self, call: StatedCall) -> Iterator[Placed]:
        """Keep a call until its result comes."""
        key = self._key_of(call)
        tool = call.name if isinstance(call.name, str) and call.name else None
        if call.key is not None and key in self.together and self.together[key] == tool:
            self._complete_call(key, call)  # one call, in two forms of one message
            return
        arguments = _read_arguments(call.arguments)
        is_ambiguous = key in self.together
        self.together[key] = tool
        unanswered = self.waiting.pop(key, None)
        if unanswered is not None and _is_again(unanswered, call, arguments):
            # Asked for in one event, begun in another, which may name the server.
            in_name, named = split_name(str(tool))
            server = call.server or in_name or unanswered.server
            self.waiting[key] = unanswered._replace(tool=named, server=server)
            return
        if unanswered is not None:
            yield self._note_unanswered(key, unanswered, _SAME_ID if is_ambiguous else _NO_RESULT)
        sequence, self.calls = self.calls, self.calls + 1
        if is_ambiguous or isinstance(arguments, str) or tool is None:
            why = arguments if isinstance(arguments, str) else _NO_NAME
            yield unreadable_at(call.where, _SAME_ID if is_ambiguous else why)
            self.refused.add(key)
            return
        self.refused.discard(key)
        in_name, tool = split_name(tool)
        server = call.server or in_name
        self.waiting[key] = _Open(call, tool, server, arguments, sequence, self.context)
        yield from notes_of(call.where, arguments)

    def take_running(self, where: str, call_id: object) -> None:
        """Note that a call runs, or was cancelled; its end may come, or never."""
        key = _call_key(call_id) if call_id is not None else where
        if key not in self.waiting:
            self.begun_calls[key] = where

    def take_failure(self, call_id: object) -> None:
        """Note that a call failed, whose result comes."""
        self.failing.add(_call_key(call_id))

    def take_result(
        self, where: str, call_id: object, answer: AnswerReader, of: str | None = None
    ) -> Iterator[Placed]:
        """Return the execution that a result ends; `of` names the tool, where there is no id.

        `failed` states to `answer` that the call was never made.
        """
        key = _call_key(call_id)
        if call_id is None and (of is not None or key not in self.waiting):
            queue = self._queues.get(str(of)) or next(filter(None, self._queues.values()), None)
            key = queue.popleft() if queue else key
        if (opened := self.waiting.pop(key, None)) is not None:
            self._name_it()
            if call_id is not None:
                self.told.add((key, None))
            failed = key in self.failing or opened.arguments.parameters is None
            self.failing.discard(key)
            yield self._make_execution(key, opened, answer(failed=failed))
        elif key not in self.refused and (key, None) not in self.told:
            yield unreadable_at(where, _NO_CALL)

    def take_both(self, call: StatedCall, answer: ToolAnswer) -> Iterator[Placed]:
        """Return the execution of a call that stands together with its result."""
        key = _call_key(call.key)
        self.begun_calls.pop(key, None)
        tool = call.name if isinstance(call.name, str) else None
        if call.key is not None and (
            {(key, tool), (key, None)} & self.told or self._is_waiting(key, call)
        ):
            return  # shown twice, in two forms
        self.told.add((key, tool))
        if call.key is None:
            call = call._replace(key=f"{call.name} {self.calls}")
            key = _call_key(call.key)
        yield from self.take_call(call)
        self.together.pop(key, None)
        if key in self.waiting:
            self._name_it()
            yield self._make_execution(key, self.waiting.pop(key), answer)

    def finish_calls(self) -> Iterator[Placed]:
        """Return what is open at the end."""
        self._name_it(self.begun)
        for key, opened in self.waiting.items():
            yield self._note_unanswered(key, opened, _NO_RESULT)
        self.waiting.clear()
        yield from (left_out(where, _NOT_ENDED) for where in self.begun_calls.values())
        self.begun_calls.clear()

    def _is_waiting(self, key: str, call: StatedCall) -> bool:
        opened = self.waiting.get(key)
        return opened is not None and opened.call.where != call.where

    def _key_of(self, call: StatedCall) -> str:
        if call.key is not None or not call.is_ordered:
            return _call_key(call.key)
        key = f"{call.name} number {self.calls}"
        self._queues.setdefault(str(call.name), deque()).append(key)
        return key

    def _complete_call(self, key: str, call: StatedCall) -> None:
        opened = self.waiting.get(key)
        arguments = _read_arguments(call.arguments)
        if opened is None or isinstance(arguments, str) or opened.arguments.parameters:
            return
        self.waiting[key] = opened._replace(arguments=arguments)

    def _name_it(self, begun: list[object] | None = None) -> None:
        if not self.name:
            values = begun or self.begun[:-1] or self.begun
            self.name = digest_of([make_json_value(each) for each in values])
            self.begun.clear()

    def _note_unanswered(self, key: str, opened: _Open, why: str) -> Placed:
        """Note that the outcome of a call that was made is unknown.

        One that could not be made failed.
        """
        if why == _SAME_ID:
            return unreadable_at(opened.call.where, why)
        if opened.arguments.parameters is not None:
            return left_out(opened.call.where, why)
        self._name_it()
        return self._make_execution(key, opened, ToolAnswer(UnreadableArgumentsError().error))

    def _make_execution(self, key: str, opened: _Open, answer: ToolAnswer) -> Placed:
        call, arguments = opened.call, opened.arguments
        if arguments.parameters is None and answer.error is None:
            answer = ToolAnswer(UnreadableArgumentsError().error)
        sent = arguments.parameters or {}
        answer = self.guesses.judge_answer(answer, opened.server, opened.tool, sent)
        said = answer.error.model_dump(mode="json") if answer.error else answer.result
        at = call.at or (self.at or self.given.at) + timedelta(milliseconds=opened.sequence)
        # A call that could not be made may be answered in a longer version, and is the same one.
        content: list[JsonValue] = [arguments.parameters, said]
        if arguments.parameters is None:
            content = [arguments.text]
        scope: list[JsonValue] = [] if call.is_unique else [self.name, opened.sequence]
        return placed_execution(
            call.where,
            execution_id=stable_id(*scope, key, opened.tool, *content),
            timestamp=at,
            agent=self.given.agent or call.agent or "unknown",
            server_name=opened.server,
            tool_name=opened.tool,
            **arguments.recorded_fields(),
            context=opened.context,
            session_id=call.session or f"chat-{self.name[:32]}",
            sequence=opened.sequence,
            input_schema=self.schemas.get(opened.tool),
            **answer.execution_fields(),
        )


def _read_arguments(told: object) -> Arguments | str:
    """Return the arguments of a call, an object or a text; else why they are none."""
    if told is None:
        return Arguments({})  # what models write for a tool without parameters
    value: Any = json_or_none(told) if isinstance(told, str) else told
    if isinstance(told, str) and not isinstance(value, dict):
        return arguments_of(told)
    try:
        return Arguments(check_json_object(value))
    except InvalidJsonValueError as error:
        return f"{_NO_ARGUMENTS} ({error})"


def _is_again(opened: _Open, call: StatedCall, arguments: Arguments | str) -> bool:
    """Return whether a waiting call is shown of a second time, maybe by a shorter name."""
    is_same = isinstance(call.name, str) and str(opened.call.name).endswith(call.name)
    return call.key is not None and is_same and opened.arguments == arguments


def _call_key(call_id: object) -> str:
    return f"id {call_id}" if isinstance(call_id, str | int) else "no id"
