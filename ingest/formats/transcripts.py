"""Transcripts: calls of tools and their results in JSON of any form that `forms.toml` shows.

One walk over a file's values, in their order. On every object the rules of `forms.toml` are tried;
what they find goes to the conversation that it belongs to, which matches calls and results.

| value | read as |
|---|---|
| an object with a list of messages, items, steps, ... | one conversation, also a line |
| a list of messages or events | one |
| a list of conversations, or an object that holds such | each |
| lines that are messages or events | one, or one for each session that they name |

Their context, names and times are those of the nearest object around a call that has them. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from aftercall.error_texts import split_name
from aftercall.json_values import json_or_none, make_json_value
from ingest.formats.answers import ErrorGuesses, message_text_of, transcript_answer
from ingest.formats.calls import (
    TEXTS,
    Given,
    Placed,
    ToolAnswer,
    failure_in_object,
    failure_in_text,
    name_of,
    read_moment,
    schemas_of,
    unreadable_at,
)
from ingest.formats.conversations import Conversation, StatedCall
from ingest.formats.rules import Rule, first_at, first_value_at, read_forms

_NO_CONVERSATION = (
    "is no conversation: a list of messages or items, or an object with `messages`, `input` or "
    "`output`, and nothing in it is a call or a message in a form that is known"
)
_MAX_DEPTH = 60
_WRAPPED = 4
"""Objects around a conversation, at most."""
_LOOKED_AT = 20
"""Elements of a list by which it is judged."""
_INSTRUCTING = ("system", "developer")
_ELEMENT = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
_OF_THE_CLIENT = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)


class _Scope(NamedTuple):
    """What is stated around an object."""

    agent: str | None = None
    model: str | None = None
    form: str | None = None
    usual: str | None = None
    """The agent that writes this form."""
    at: datetime | None = None
    role: object = None
    session: str | None = None

    def scope_inside(self, value: dict[str, Any]) -> "_Scope":
        forms = read_forms()
        return self._replace(
            agent=name_of(first_at(value, forms.agents, (str,))) or self.agent,
            model=name_of(first_at(value, forms.models, (str,))) or self.model,
            role=value.get("role", self.role),
            session=name_of(first_at(value, forms.sessions, (str, int))) or self.session,
        )

    def at_time_of(self, value: dict[str, Any]) -> "_Scope":
        at = _time_of(value)
        return self if at is None else self._replace(at=at)


@dataclass(slots=True)
class Transcripts:
    """Reads the values of a file in their order; `forms` counts the calls by the title of forms."""

    given: Given
    forms: Counter[str] = field(default_factory=Counter)
    guesses: ErrorGuesses = field(init=False)
    _stories: dict[str | None, Conversation] = field(default_factory=dict)
    _current: str | None = None
    _outer: _Scope = field(default_factory=_Scope)
    _is_known: bool = False

    def __post_init__(self) -> None:
        self.guesses = ErrorGuesses(self.given)

    def feed_value(self, value: object, where: str = "") -> Iterator[Placed]:
        """Return what a value states; `where` is its place, such as `line 7, `."""
        self._is_known = False
        yield from self._read_value(value, where, 0)
        if not self._is_known:
            yield unreadable_at(_show_place(where) or "the value", _NO_CONVERSATION)

    def finish_file(self) -> Iterator[Placed]:
        """Return what is open at the end of the file."""
        for story in self._stories.values():
            yield from story.finish_calls()

    def _read_value(self, value: object, where: str, depth: int) -> Iterator[Placed]:
        if isinstance(value, list):
            yield from self._read_list(value, where, depth)
        elif isinstance(value, dict):
            is_event = read_forms().rule_of(value) is not None
            if not is_event and _is_conversation(value):
                yield from self._read_conversation(value, where)
            elif not is_event and (kept := _conversations_in(value)):
                for place, each in kept:
                    yield from self._read_value(each, _join_place(where, place), depth + 1)
            elif not is_event and _is_wrapped(value) and _begins_conversation(value):
                yield from self._read_conversation(value, where)
            else:
                yield from self._read_event(value, where)
        elif isinstance(value, str):
            yield from self._visit_value(
                self._story_of(None), {"text": value}, where, self._outer, depth
            )

    def _read_list(self, values: list[Any], where: str, depth: int) -> Iterator[Placed]:
        looked_at = values[:_LOOKED_AT]
        # JSON of conversations, or a conversation?
        if depth < _WRAPPED and looked_at and not any(map(_is_turn, looked_at)):
            for number, each in enumerate(values):
                if isinstance(each, dict | list):
                    yield from self._read_value(each, f"{where}[{number}]", depth + 1)
            return
        self._is_known |= not values
        conversation = Conversation(self.given, self.guesses)
        yield from self._read_turns(conversation, values, where, self._outer)
        yield from conversation.finish_calls()

    def _read_conversation(self, value: dict[str, Any], where: str) -> Iterator[Placed]:
        forms = read_forms()
        self._is_known |= any(isinstance(value.get(key), list) for key in forms.lists)
        name = name_of(first_at(value, forms.sessions, (str, int)))
        conversation = Conversation(
            self.given,
            self.guesses,
            name=name or "",
            session=name or name_of(first_at(value, forms.requests, (str, int))),
            at=_time_of(value),
            schemas={split_name(k)[1]: each for k, each in schemas_of(value.get("tools")).items()},
        )
        yield from self._visit_inside(
            conversation, value, where, self._outer.scope_inside(value), 0
        )
        yield from conversation.finish_calls()

    def _read_event(self, value: dict[str, Any], where: str) -> Iterator[Placed]:
        forms = read_forms()
        rule = forms.rule_of(value)
        named = name_of(first_value_at(value, rule.session)) if rule and not rule.is_call else None
        if rule is not None and named is not None:
            self._outer = self._outer._replace(form=rule.form, usual=rule.agent)
        named = named or name_of(first_at(value, forms.sessions, (str, int)))
        self._current = named or self._current
        thread = name_of(first_value_at(value, rule.thread)) if rule else None
        session = name_of(f"{named}/{thread}") if thread else self._current
        story = self._story_of(session)
        story.schemas |= schemas_of(value.get("tools"))
        yield from self._read_turn(story, value, where, self._outer)

    def _story_of(self, session: str | None) -> Conversation:
        if session not in self._stories:
            made = Conversation(self.given, self.guesses, name=session or "", session=session)
            self._stories[session] = made
        return self._stories[session]

    def _read_turns(
        self, conversation: Conversation, values: list[Any], where: str, scope: _Scope
    ) -> Iterator[Placed]:
        for number, each in enumerate(values):
            if isinstance(each, dict):
                yield from self._read_turn(conversation, each, f"{where}[{number}]", scope)
            else:
                yield unreadable_at(f"{where}[{number}]", "is no message: it must be an object")

    def _read_turn(
        self, conversation: Conversation, value: dict[str, Any], where: str, scope: _Scope
    ) -> Iterator[Placed]:
        rule = read_forms().rule_of(value)
        conversation.take_turn(value, is_call=rule is not None and rule.is_call)
        self._is_known |= isinstance(value.get("role"), str) or isinstance(value.get("type"), str)
        yield from self._visit_value(conversation, value, where, scope.at_time_of(value), 1)

    def _visit_value(
        self, conversation: Conversation, value: object, where: str, scope: _Scope, depth: int
    ) -> Iterator[Placed]:
        if depth > _MAX_DEPTH:
            return
        if isinstance(value, list):
            text = message_text_of(value) if value else None
            yield from self._read_text(conversation, text or "", where, scope)
            for number, each in enumerate(value):
                yield from self._visit_value(
                    conversation, each, f"{where}[{number}]", scope, depth + 1
                )
            return
        if not isinstance(value, dict):
            return
        scope = scope.scope_inside(value)
        if depth > 1:
            scope = scope.at_time_of(value)
        rule = read_forms().rule_of(value)
        if rule is None:
            yield from self._visit_inside(conversation, value, where, scope, depth)
            return
        self._is_known = True
        if rule.agent is not None:
            scope = scope._replace(form=rule.form, usual=rule.agent)
        if rule.deep:
            yield from self._visit_inside(conversation, value, where, scope, depth)
        yield from self._apply_rule(conversation, rule, value, where, scope)
        is_whole = rule.is_call or rule.is_result or rule.is_mark or rule.open or rule.ignored
        if not rule.deep and not is_whole:
            yield from self._visit_inside(conversation, value, where, scope, depth)

    def _visit_inside(
        self,
        conversation: Conversation,
        value: dict[str, Any],
        where: str,
        scope: _Scope,
        depth: int,
    ) -> Iterator[Placed]:
        forms = read_forms()
        for key, each in value.items():
            place = _join_place(where, key)
            if key in forms.skipped and not (key == "tools" and isinstance(each, dict)):
                continue
            if key in forms.lists and isinstance(each, list) and depth == 0:
                yield from self._read_turns(conversation, each, place, scope)
            elif key == "tool_calls" and isinstance(each, list):
                yield from self._read_calls(conversation, each, place, scope, depth)
            elif isinstance(each, dict | list):
                yield from self._visit_value(conversation, each, place, scope, depth + 1)
            elif isinstance(each, str):
                if depth == 0 and key == "input":
                    conversation.take_user(each)
                if key == "text" and str(value.get("type")) in TEXTS:
                    continue  # its list was looked at as one text
                yield from self._read_text(conversation, each, place, scope)

    def _read_calls(
        self, conversation: Conversation, calls: list[Any], where: str, scope: _Scope, depth: int
    ) -> Iterator[Placed]:
        for number, each in enumerate(calls):
            place = f"{where}[{number}]"
            if not isinstance(each, dict):
                yield unreadable_at(place, "is no call: it must be an object")
            elif read_forms().rule_of(each) is not None:
                yield from self._visit_value(conversation, each, place, scope, depth + 1)
            else:
                inner = each.get("function")
                held = inner if isinstance(inner, dict) else each
                arguments = held.get("arguments", held.get("args"))
                call = StatedCall(place, held.get("name"), each.get("id"), arguments)
                yield from conversation.take_call(call)

    def _read_text(
        self, conversation: Conversation, text: str, where: str, scope: _Scope
    ) -> Iterator[Placed]:
        for value in read_forms().objects_in(text, scope.role):
            if (rule := read_forms().rule_of(value)) is not None:
                self._is_known = True
                yield from self._apply_rule(conversation, rule, value, where, scope)

    def _apply_rule(
        self,
        conversation: Conversation,
        rule: Rule,
        value: dict[str, Any],
        where: str,
        scope: _Scope,
    ) -> Iterator[Placed]:
        if rule.each:
            for member in _walk_members(first_value_at(value, rule.each)):
                if not rule.only or first_value_at(member, rule.only) is not None:
                    yield from self._take_found(conversation, rule, member, where, scope)
            return
        yield from self._take_found(conversation, rule, value, where, scope)

    def _take_found(
        self,
        conversation: Conversation,
        rule: Rule,
        value: dict[str, Any],
        where: str,
        scope: _Scope,
    ) -> Iterator[Placed]:
        if rule.user and (words := message_text_of(first_value_at(value, rule.user))):
            conversation.take_user(words)
        call_id = first_value_at(value, rule.id)
        if rule.open:
            conversation.take_running(_show_place(where), call_id)
            return
        if rule.is_mark and any(condition.is_met(value) for condition in rule.failed):
            conversation.take_failure(call_id)
        answer = partial(self._make_answer, rule, value)
        if rule.is_call:
            form = scope.form or rule.form
            self.forms[read_forms().titles[form]] += 1
            server, name = (
                name_of(first_value_at(value, rule.server)),
                first_value_at(value, rule.name),
            )
            if server is None and isinstance(name, str) and form in read_forms().split:
                server, name = _split_name(name)
            usual = rule.agent or scope.usual
            call = StatedCall(
                _show_place(where),
                name,
                call_id,
                _rule_arguments(rule, value),
                server,
                read_moment(first_value_at(value, rule.at)) or scope.at,
                name_of(first_value_at(value, rule.spoken)) or scope.agent or usual or scope.model,
                name_of(first_value_at(value, rule.session))
                or conversation.session
                or scope.session,
                rule.unique,
                rule.ordered,
            )
            if rule.is_result:
                yield from conversation.take_both(call, answer(failed=False))
            else:
                yield from conversation.take_call(call)
        elif rule.is_result:
            of = name_of(first_value_at(value, rule.of))
            yield from conversation.take_result(_show_place(where), call_id, answer, of)

    def _make_answer(self, rule: Rule, value: dict[str, Any], *, failed: bool) -> ToolAnswer:
        is_marked = any(condition.is_met(value) for condition in rule.failed)
        content, error = first_value_at(value, rule.content), first_value_at(value, rule.error)
        is_error = isinstance(error, str | dict) and bool(error)
        if is_error and (is_marked or content is None or not isinstance(error, str)):
            return failure_in_object(error) if isinstance(error, dict) else failure_in_text(error)
        if is_error:
            return failure_in_text(error)
        if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
            content = {"error": content}
        if isinstance(content, str) and (wrapped := _OF_THE_CLIENT.fullmatch(content)):
            content = wrapped[1]
        return transcript_answer(
            make_json_value(content), failed=is_marked or failed, pattern=self.given.error_pattern
        )


def is_transcript(value: object, depth: int = 12) -> bool:
    """Return whether a rule fits anything in a value."""
    if isinstance(value, list):
        return depth > 0 and any(is_transcript(each, depth - 1) for each in value[:_LOOKED_AT])
    if isinstance(value, str):
        return next(read_forms().objects_in(value, None), None) is not None
    if not isinstance(value, dict):
        return False
    return read_forms().rule_of(value) is not None or (
        depth > 0 and any(is_transcript(each, depth - 1) for each in value.values())
    )


def is_half(value: object) -> bool:
    """Return whether a value is a call without its result, or a result without its call."""
    rule = read_forms().rule_of(value) if isinstance(value, dict) else None
    return rule is not None and not rule.deep and (rule.is_call or rule.open) != rule.is_result


def is_like_transcript(value: dict[str, Any]) -> bool:
    """Return whether a value may be a conversation or a turn of one, though no rule fits."""
    is_turn = isinstance(value.get("role"), str) or isinstance(value.get("type"), str)
    return is_turn or _is_conversation(value) or _is_wrapped(value)


def read_transcript(value: object, given: Given) -> Iterator[Placed]:
    """Yield the tool calls of the conversations in a JSON value, in their order."""
    transcripts = Transcripts(given)
    yield from transcripts.feed_value(value)
    yield from transcripts.finish_file()


def _is_turn(value: object) -> bool:
    """Return whether an element makes its list a conversation, and not a list of conversations."""
    if not isinstance(value, dict):
        return False
    if read_forms().rule_of(value) is not None:
        return True
    return not (_is_conversation(value) or _conversations_in(value) or _is_wrapped(value)) and (
        is_transcript(value)
        or isinstance(value.get("role"), str)
        or isinstance(value.get("type"), str)
    )


def _is_conversation(value: dict[str, Any]) -> bool:
    """Return whether an object holds a list of messages that are no conversations themselves."""
    for key in read_forms().lists:
        held = value.get(key)
        if isinstance(held, list):
            first = next((each for each in held if isinstance(each, dict)), None)
            if first is None or read_forms().rule_of(first) is not None:
                return True
            if not (_is_conversation(first) or _is_wrapped(first)):
                return True
    return False


def _conversations_in(value: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """Return the lists of conversations that an object holds, such as samples."""
    return [
        (key, held)
        for key, held in value.items()
        if isinstance(held, list)
        and any(
            isinstance(each, dict)
            and read_forms().rule_of(each) is None
            and (_is_conversation(each) or _is_wrapped(each))
            for each in held[:_LOOKED_AT]
        )
    ]


def _is_wrapped(value: dict[str, Any], depth: int = _WRAPPED) -> bool:
    """Return whether an object in an object holds messages, such as `{"request".

    {"messages": [...]}}`.
    """
    return depth > 0 and any(
        isinstance(each, dict)
        and read_forms().rule_of(each) is None
        and (_is_conversation(each) or _is_wrapped(each, depth - 1))
        for each in value.values()
    )


def _join_place(where: str, key: str) -> str:
    return f"{where}.{key}" if where and not where.endswith(", ") else where + key


def _show_place(where: str) -> str:
    return where.removesuffix(", ")


def _begins_conversation(value: object, depth: int = 2 * _WRAPPED) -> bool:
    """Return whether what an object holds is a conversation of its own: it is named, or begun."""
    if isinstance(value, list):
        return depth > 0 and any(
            _begins_conversation(each, depth - 1) for each in value[:_LOOKED_AT]
        )
    if not isinstance(value, dict):
        return False
    rule, named = read_forms().rule_of(value), first_at(value, read_forms().sessions, (str, int))
    if (rule is not None and rule.user) or named or str(value.get("role")) in _INSTRUCTING:
        return True
    return depth > 0 and any(_begins_conversation(each, depth - 1) for each in value.values())


def _walk_members(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        value = {"": value}
    for key, held in value.items() if isinstance(value, dict) else ():
        for each in held if isinstance(held, list) else [held]:
            yield {"key": key, "value": each}


def _rule_arguments(rule: Rule, value: dict[str, Any]) -> object:
    if rule.fields:
        return {key: value[key] for key in rule.fields if key in value}
    if rule.text:
        words = first_value_at(value, rule.text)
        held = json_or_none(words) if isinstance(words, str) else None
        return held if isinstance(held, dict) else {"input": words}
    if rule.elements:
        return {
            key: held.strip("\n")
            for key, held in _ELEMENT.findall(first_value_at(value, rule.elements))
        }
    return first_value_at(value, rule.arguments)


def _split_name(name: str) -> tuple[str | None, str]:
    """Server and tool of `server__tool`; `mcp__server__tool` is parted elsewhere."""
    server, _, tool = name.partition("__")
    return (server, tool) if server not in ("", "mcp") and tool else (None, name)


def _time_of(value: dict[str, Any]) -> datetime | None:
    for path in read_forms().times:
        if (
            path[0].steps[0] in value
            and (at := read_moment(first_value_at(value, path))) is not None
        ):
            return at
    return None
