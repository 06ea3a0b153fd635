"""The clients whose hooks are understood, from a file each in `clients/`. Pure.

A file states what the client is (`title`, the `version` that was looked at, `seen`: whether it was
run), how it names its tools and what they are (`roles`), and which of its `events` matter. Paths
and conditions are those of `ingest/formats/forms.toml`. Next to the payload's own members a
condition can ask for `@reads` (the tool only reads), `@shell`, `@prompt` (a prompt that is not
empty), `@failed` (the first element of a result that failed) and `@item` (the transcript's item
of the call).

Of an event, `kind` is `before`, `after`, `failure`, `transcript` or `end`; `when` states that a
payload is one; `context`, `refuse`, `change`, `advise` and `again` are answers, whose texts
`$context`, `$reason`, `$error`, `$tool` and `$input` are filled in. An answer that the client would
not follow is not in its file. If there are several (`change`, `advise`), the first whose `when`
holds is given.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from aftercall.extensions import load_tables, use_each
from aftercall.json_values import JsonObject
from ingest.formats.rules import Condition, Path, read_condition, read_path

Kind = Literal["before", "after", "failure", "transcript", "end"]
RoleName = Literal["read", "edit", "write", "shell", "search", "list", "fetch"]
READING: frozenset[RoleName] = frozenset({"read", "search", "list", "fetch"})
"""Roles of tools that change nothing."""
Answer: TypeAlias = dict[str, Any]
"""A JSON object with places such as `$context`."""
Alternatives: TypeAlias = tuple[tuple[Condition, ...], ...]
"""Groups of conditions: all conditions of one group have to hold."""


@dataclass(frozen=True, slots=True)
class Role:
    """The purpose of a client's own tool, and the parameters that show it."""

    role: RoleName
    path: str = ""
    old: str = ""
    """The text that is looked for in the file."""
    new: str = ""
    patch: str = ""
    """A text of changes in the form of Codex, which names its files itself."""
    command: str = ""
    call: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of a call of one path (`$path`), where that is not `path` alone."""
    named: str = ""
    """The name of the tool in hooks, where the transcript has another."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that is given where the conditions hold."""

    conditions: tuple[Condition, ...]
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """How an event is read from a payload, and how it may be answered."""

    kind: Kind
    name: str
    conditions: tuple[Condition, ...]
    paths: Mapping[str, Path] = field(default_factory=dict)
    failed: Alternatives = ()
    """One that holds makes it a failure."""
    interrupted: Alternatives = ()
    """A person ended or refused it."""
    context: Sequence[Choice] = ()
    refuse: Sequence[Choice] = ()
    change: Sequence[Choice] = ()
    again: Sequence[Choice] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptRule:
    """How a call, its answer, or what became of it is read from a line of the transcript."""

    kind: Literal["call", "answer", "item"]
    conditions: tuple[Condition, ...]
    each: Path = ()
    paths: Mapping[str, Path] = field(default_factory=dict)
    text: Mapping[str, Path] = field(default_factory=dict)
    """Arguments of a tool that takes a text, by the names that its hook gives them."""
    failed: Alternatives = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookClient:
    """A client, as its file describes it."""

    key: str
    title: str
    version: str
    seen: bool
    agent: str
    session: Path
    servers: Path
    """The names of the MCP servers, where the client's form has them."""
    mcp: re.Pattern[str]
    events: tuple[EventRule, ...]
    transcript: tuple[TranscriptRule, ...]
    roles: Mapping[str, Role]
    schemas: Mapping[str, JsonObject]
    """Input schemas of its own tools, by name."""


def client_names() -> tuple[str, ...]:
    """Return the names of the clients, sorted."""
    folder = files("service.hooks") / "clients"
    shipped = {each.name.removesuffix(".toml") for each in folder.iterdir()}
    return tuple(sorted(shipped | _added_clients().keys()))


@cache
def _added_clients() -> Mapping[str, "HookClient"]:
    """Return the clients that other distributions add, by name."""
    added: dict[str, HookClient] = {}
    for name, table in load_tables("hook_clients").items():

        def add(told: dict[str, Any], name: str = name) -> None:
            added[name] = _client_of(name, told, {})

        use_each("hook_clients", {name: table}, add)
    return added


@cache
def read_client(key: str) -> HookClient:
    """Return a client by its name.

    Raises:
        KeyError: there is no such client.
    """
    if key not in client_names():
        raise KeyError(key)
    if added := _added_clients().get(key):
        return added
    folder = files("service.hooks")
    told = tomllib.loads((folder / "clients" / f"{key}.toml").read_text(encoding="utf-8"))
    tools = folder / "tools" / f"{key}.json"
    schemas = json.loads(tools.read_text(encoding="utf-8"))["tools"] if tools.is_file() else {}
    return _client_of(key, told, schemas)


def _client_of(
    key: str, told: Mapping[str, Any], schemas: Mapping[str, JsonObject]
) -> "HookClient":
    return HookClient(
        key=key,
        title=told["title"],
        version=told["version"],
        seen=told["seen"],
        agent=told["agent"],
        session=read_path(told["session"]),
        servers=read_path(told.get("servers", "")),
        mcp=re.compile(told["mcp"]),
        events=tuple(_read_event_rule(each) for each in told["events"]),
        transcript=tuple(_read_transcript_rule(each) for each in told.get("transcript", ())),
        roles={name: Role(**each) for name, each in told["roles"].items()},
        schemas=schemas,
    )


_PATHS = ("tool", "server", "arguments", "id", "result", "error", "exit", "duration", "session")


def _read_event_rule(told: Mapping[str, Any]) -> EventRule:
    advise = [
        *told.get("advise", ()),
        *({"answer": told[name]} for name in _filter_names(told, "context")),
    ]
    return EventRule(
        kind=told["kind"],
        name=told["name"],
        conditions=_read_conditions(told["when"]),
        paths={name: read_path(told[name]) for name in _filter_names(told, *_PATHS)},
        failed=_read_alternatives(told.get("failed", ())),
        interrupted=_read_alternatives([told["interrupted"]] if "interrupted" in told else ()),
        context=_read_choices(advise),
        refuse=_read_choices([{"answer": told[name]} for name in _filter_names(told, "refuse")]),
        change=_read_choices(told.get("change", ())),
        again=_read_choices([told[name] for name in _filter_names(told, "again")]),
    )


def _read_transcript_rule(told: Mapping[str, Any]) -> TranscriptRule:
    return TranscriptRule(
        kind=told["kind"],
        conditions=_read_conditions(told["when"]),
        each=read_path(told.get("each", "")),
        paths={name: read_path(told[name]) for name in _filter_names(told, *_PATHS, "item")},
        text={name: read_path(path) for name, path in told.get("text", {}).items()},
        failed=_read_alternatives(told.get("failed", ())),
    )


def _filter_names(told: Mapping[str, Any], *names: str) -> list[str]:
    return [name for name in names if name in told]


def _read_conditions(text: str) -> tuple[Condition, ...]:
    return tuple(read_condition(each) for each in text.split(" & "))


def _read_alternatives(texts: Sequence[str]) -> Alternatives:
    return tuple(_read_conditions(each) for each in texts)


def _read_choices(told: Sequence[Mapping[str, Any]]) -> tuple[Choice, ...]:
    return tuple(
        Choice(_read_conditions(each["when"]) if "when" in each else (), each["answer"])
        for each in told
    )
