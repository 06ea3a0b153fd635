"""A case of a law: a failed call with its schema and error, and what was recorded before it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from aftercall.models import FailedCall, ToolAnnotations
from aftercall.redaction import Redactor
from bench.quality.trial import Json
from mongo.records import OWNER

KeyPath = tuple[str | int, ...]
"""Keys and positions that lead from the parameters to a value."""

_REDACTOR = Redactor()


@dataclass(frozen=True, slots=True)
class Past:
    """An execution that the memory learned before the case is asked about."""

    agent: str
    session: str
    tool: str
    server: str
    call: Json
    error: Json | None = None
    schema: Json | None = None
    """As the caller sent it with the call; None where it sent none."""
    is_repair: bool = False
    """Whether the caller names the session's call before it as the one that this repairs."""
    principal: str = OWNER
    """Whose key it was recorded with."""


@dataclass(frozen=True, slots=True)
class Case:
    """A failed call of one tool, as its caller asks about it."""

    source: str
    name: str
    tool: str
    server: str
    call: Json
    error: Json
    schema: Json | None
    right: tuple[Json, ...] | None = None
    """All right calls; empty where no change is right, None where nobody said."""
    hints: ToolAnnotations | None = None
    context: str = ""
    agent: str = "tester"
    session: str = "session-asking"
    dialect: str | None = None
    """The library whose words the error is rendered in; None for an error that was given."""
    mends: tuple[tuple[Json, Json], ...] = ()
    """Calls of others with the same fault, each with the right one."""
    history: tuple[Past, ...] = ()
    batch: int = 500
    """Executions that are recorded at once."""
    principal: str = OWNER
    """Whose key it is asked with."""

    @property
    def message(self) -> str:
        """The words of the error."""
        return str(self.error["message"])

    @property
    def size(self) -> int:
        """Characters of call, schema and error; the smaller, the easier to read."""
        return sum(len(json.dumps(each)) for each in (self.call, self.schema, self.error))

    def question(self) -> FailedCall:
        """Return the case as `/suggest` takes it."""
        fields = {
            "agent": self.agent, "session_id": self.session, "tool_name": self.tool,
            "server_name": self.server, "parameters": self.call, "error": self.error,
            "context": self.context[:2000] or None, "input_schema": self.schema,
        }  # fmt: skip
        return FailedCall.model_validate(fields)

    def with_message(self, message: str) -> "Case":
        """Return the case with other words of the error."""
        return replace(self, error={**self.error, "message": message})


def leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the scalars and empty containers of a JSON value with their paths."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from leaves(below, (*path, name))
    elif isinstance(value, list) and value:
        for at, below in enumerate(value):
            yield from leaves(below, (*path, at))
    else:
        yield path, value


def objects(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json]]:
    """Yield the objects of a JSON value with their paths, the outermost first."""
    if isinstance(value, dict):
        yield path, value
        for name, below in value.items():
            yield from objects(below, (*path, name))
    elif isinstance(value, list):
        for at, below in enumerate(value):
            yield from objects(below, (*path, at))


def value_at(value: Any, path: KeyPath) -> Any:
    """Return the value that a path leads to.

    Raises:
        LookupError: a key of the path is not there.
        TypeError: the path leads into a scalar.
    """
    for key in path:
        value = value[key]
    return value


def put_at(value: Any, path: KeyPath, new: Any) -> Any:
    """Return a copy of a JSON value with another value at a path."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, key: put_at(value.get(str(key)), rest, new)}
    changed = list(value)
    changed[int(key)] = put_at(changed[int(key)], rest, new)
    return changed


def schema_at(schema: Json | None, path: KeyPath) -> Json | None:
    """Return the part of a plain schema for a path; None where references or unions lead to it."""
    for key in path:
        if not isinstance(schema, dict):
            return None
        below = schema.get("items") if isinstance(key, int) else _properties(schema).get(key)
        schema = below if isinstance(below, dict) else None
    return schema


def _properties(schema: Json) -> Json:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def put_schema_at(schema: Json, path: KeyPath, new: Json) -> Json:
    """Return a copy of a plain schema with another part for a path."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return {**schema, "items": put_schema_at(schema["items"], rest, new)}
    below = put_schema_at(schema["properties"][key], rest, new)
    return {**schema, "properties": {**schema["properties"], key: below}}


def is_secret(name: str, value: Any) -> bool:
    """Return whether the product masks a parameter of this name and value."""
    return _REDACTOR.parameters("any", {name: value}) != {name: value}


def pointer(path: KeyPath) -> str:
    """Return the JSON Pointer of a path."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)
