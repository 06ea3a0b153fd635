"""The conversations that a JSON value holds: Chat Completions, fine-tuning examples, Responses.

| value | read as |
|---|---|
| `{"messages": [...], "tools": [...]}` | one conversation, also a line for fine-tuning |
| `{"object": "response", "output": [...]}`, with `input` or without | one |
| `{"object": "list", "data": [...]}` of messages or items | one |
| `{"choices": [{"message": ...}]}` | one; its calls have no results yet |
| `[message or item, ...]` | one |
| `[conversation, ...]` | each |
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from aftercall.json_values import InvalidJsonValueError, JsonObject, check_json_object
from ingest.formats.placed import Placed, first_moment, first_name, name_of, unreadable

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
