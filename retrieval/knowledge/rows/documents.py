"""Documents: the distinct things that are embedded, one vector each; and the shipped corpus.

A `success` document stands for all successes of a tool with the same parameter shape, a
`reflection` for all failures of a tool with the same signature, or for an entry of the shipped
corpus. A `tool` document stands for a registered tool, a `scenario` for what a version of a tool
was used for, successes and failures alike, an `evolution` for why a namespace's tool was evolved.
"""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, Field

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ErrorCategory
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites.edits import Edit
from retrieval.knowledge.rows.statistics import Trial
from retrieval.knowledge.values.scalars import type_of

Kind = Literal["success", "reflection", "tool", "scenario", "evolution"]
"""What a document is about: a shape of successful calls, a pattern of failures, a registered tool,
what a tool was used for, or why a tool was evolved."""
_NAMESPACE = uuid.UUID("6f1b1a52-5f0e-5d6b-9a55-0f8f4f7f5a10")
MAX_EXECUTION_IDS = 5
_MOST_KEYS = 100


@dataclass(slots=True)
class Document:
    """What is kept of a distinct document next to its vector."""

    document_id: str
    kind: Kind
    server_name: str | None
    tool_name: str | None
    text: str
    """What was embedded."""
    terms: str = ""
    """What BM25 reads (`IndexPoint.terms`) of a tool's; all others are found by nearness alone."""
    count: int = 0
    agents: list[str] = field(default_factory=list)
    execution_ids: list[str] = field(default_factory=list)
    """The latest few executions it stands for."""
    last_seen: datetime | None = None
    signature: str | None = None
    category: ErrorCategory | None = None
    version: str = ""
    """Of the tool, on `scenario` documents; empty where none is known."""
    trials: list[Trial] = field(default_factory=list)
    """What became of the latest calls in this scenario."""
    message: str | None = None
    """The latest error message in this scenario."""


class SeedEntry(BaseModel):
    """An entry of the shipped corpus (seed 004), with its edits; without a tool of many tools."""

    pattern: str
    category: ErrorCategory
    messages: list[str]
    signatures: list[str] = Field(default_factory=list)
    """Of each message, as reading an error with it gives: reading all at start took 0.15 s."""
    correction: str
    lesson: str
    tool_name: str | None = None
    server_name: str | None = None
    failed: JsonObject = Field(default_factory=dict)
    successful: JsonObject = Field(default_factory=dict)
    catalogue: str | None = None
    """A named list of well-known values that the refused value should have come from."""
    edits: list[Edit] = Field(default_factory=list)


@lru_cache(8_192)
def document_id(
    workspace: str, kind: Kind, server_name: str | None, tool_name: str | None, what: str
) -> str:
    """Return a UUID of what the document stands for, the same each time."""
    parts = (workspace, kind, server_name or "", tool_name or "", what)
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(parts)))


def shape_of(parameters: JsonObject) -> str:
    """Return the shape of parameters: names and types, sorted.

    Small objects in them are entered once.
    """
    if len(parameters) > _MOST_KEYS:
        return "{*}"
    return ",".join(
        f"{name}:{_value_shape(value, 1)}" for name, value in sorted(parameters.items())
    )


def _value_shape(value: JsonValue, depth: int) -> str:
    if isinstance(value, dict) and depth and len(value) <= _MOST_KEYS:
        inside = ",".join(f"{k}:{_value_shape(v, depth - 1)}" for k, v in sorted(value.items()))
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{_value_shape(value[0], 0)}]" if value else "[]"
    return type_of(value)


@dataclass(slots=True)
class CommonMistakes:
    """Corpus entries, found by the signature of an error."""

    entries: list[SeedEntry] = field(default_factory=list)

    def find_entries(self, reading: ErrorReading, tool_name: str) -> tuple[SeedEntry, ...]:
        """Entries about this very error that hold for this tool."""
        fit = (entry for entry in self.entries if entry.tool_name in (None, tool_name))
        return tuple(entry for entry in fit for s in entry.signatures if s == reading.signature)
