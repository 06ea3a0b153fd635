"""What a store keeps: events, rows of knowledge, counters, leases. Plain records.

`data` is opaque here: JSON, written and read by the package that knows what it means (`encoded` and
`decoded` do it for dataclasses and pydantic models).
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import no_info_after_validator_function

from aftercall.json_values import JsonObject

OWNER = "owner"
"""The principal where there are no keys: the machine's owner."""
EventKind = Literal[
    "execution", "suggestion", "outcome", "mark", "correction", "tool", "promotion", "review",
    "rule",
]  # fmt: skip
StateKind = Literal["tool", "promotion", "review", "pattern"]
Appended = Literal["accepted", "duplicate", "conflict"]
"""What became of one event: stored; already there; its id taken by other content."""
EPOCH = datetime.fromtimestamp(0, UTC)
T = TypeVar("T")


class ToolKey(NamedTuple):
    """A tool of a server in a workspace; `server_name` is `None` for a tool without a server."""

    workspace: str
    server_name: str | None
    tool_name: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was reported or answered, redacted, and without its input schema.

    The log gives `position`, 1 and up in each workspace, and its own time, which never goes back.
    """

    kind: EventKind
    id: str
    data: bytes
    tool: ToolKey | None = None
    """What it is about; of a promotion, the namespace instead of the tool's name."""
    session: str | None = None
    principal: str = OWNER
    content_hash: str = ""
    """Of what was sent: the same id with another hash is a conflict."""
    schema_hash: str | None = None
    input_schema: JsonObject | None = None
    """Of an event that is appended: stored once, by its hash."""
    workspace: str = ""
    position: int = 0
    received_at: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class StateRow:
    """What a command left: a registered tool, a promotion, a reviewed recommendation or pattern."""

    kind: StateKind
    key: str
    data: bytes | None
    """None removes it."""
    expected: int | None = None
    """When it is written: the position of the row in its place, 0 for none; None for any."""
    position: int = 0
    """Of the event that left it."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far the log of a workspace goes."""

    position: int
    counts: Mapping[EventKind, int] = field(default_factory=dict)
    """Events that are in the log, by kind."""
    commands: int = 0
    """Grows whenever the state of commands may have changed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of knowledge, unique by workspace, kind and key."""

    kind: str
    key: str
    data: bytes = b""
    tool: ToolKey | None = None
    rank: int = 0
    """What rows of a kind are sorted by, such as a time."""
    serial: int = 0
    """Of the commit that wrote it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A row that goes; with `rank`, only while it still has that one."""

    kind: str
    key: str
    rank: int | None = None


class Counter(NamedTuple):
    """What is counted: calls of a tool, say, within an hour."""

    what: str
    hour: int
    """Hours since 1970 (UTC)."""
    tool: ToolKey | None = None


class CounterSum(NamedTuple):
    """A sum of counters; what they were not shown apart by is `None`."""

    number: int
    hour: int | None = None
    tool: ToolKey | None = None
    what: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a generation has learned the log of a workspace."""

    position: int = 0
    serial: int = 0
    """Of the latest commit: what was read before a later one may not hold any more."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What one batch of one workspace taught; applied whole or not at all."""

    workspace: str
    put: list[Row] = field(default_factory=list)
    removed: list[Removal] = field(default_factory=list)
    """Removed before `put` is written."""
    counters: Mapping[Counter, int] = field(default_factory=dict)
    """What is added to each."""
    moved: tuple[int, int] | None = None
    """From where to where the cursor goes; None leaves it (vectors, nightly results)."""
    lease: "Lease | None" = None
    """Held by who learned it; None: no check."""
    lasts: bool = False
    """On the disk when it returns, with all before it; else a loss of power may take the latest."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may do a thing at the moment, over all processes.

    No clock is in it: one who waits for it watches whether `beat` changes, by his own clock.
    """

    name: str
    holder: str
    """Host, process and a random part, so that others can show a process that is gone."""
    token: int
    """Grows by one with every holder: what a former one still writes is refused by it (fencing)."""
    beat: int = 0
    """Grows while the holder lives."""
    held: bool = True
    """False when its last holder gave it back."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as the control store has it; a revoked one stays, for what it reported names it."""

    id: str
    """Also the principal of all that it reports."""
    name: str
    workspace: str
    scopes: tuple[str, ...]
    secret_hash: str
    """SHA-256 of the secret, which is random: nothing slower is needed."""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    former_hash: str = ""
    """Of the secret before the last rotation, which holds until `former_until`."""
    former_until: datetime | None = None
    rate: float | None = None
    """Requests a second; None for as many as come."""
    used_at: datetime | None = None
    """Written apart from the rest, and seldom."""

    def to_data(self) -> bytes:
        """Return all but when it was used."""
        return encode_json(replace(self, used_at=None))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what; the hash of one is in the next one, so that no change goes unseen."""

    action: str
    """Such as `key.create`."""
    subject: str
    """What it was done to: ids and names, no values of calls."""
    principal: str
    workspace: str
    at: datetime
    position: int = 0
    """1 and up, without gaps over all workspaces; given by the store."""
    previous: str = ""
    hash: str = ""
    """SHA-256 of all the above, as hex."""

    def chain_to(self, head: "AuditHead") -> "AuditEntry":
        """Return the entry as the next one after a head."""
        entry = replace(self, position=head.position + 1, previous=head.hash, hash="")
        return replace(entry, hash=hashlib.sha256(encode_json(entry)).hexdigest())


class AuditHead(NamedTuple):
    """The latest entry, kept apart from the entries: a tail that was cut off is seen by it."""

    position: int = 0
    hash: str = ""


def encode_json(value: Any, *, sparse: bool = False) -> bytes:  # any dataclass
    """JSON of a pydantic model or a dataclass; `sparse` leaves out what is at its default."""
    return _adapter(type(value)).dump_json(value, exclude_defaults=sparse)


def decode_json(kind: type[T], data: bytes) -> T:
    """Return the reverse of `encoded`; a `ValueError` where it is not what it should be."""
    return cast("T", _adapter(kind).validate_json(data))


def make_reader(kind: type[T]) -> Callable[[bytes], T]:
    """Return a reader like `decode_json` for values that were checked when written.

    They take two thirds of the time. The kind's fields are to hold what JSON holds: a check that
    makes something else of that is left out too. Moments are in the one `UTC`: pydantic makes a
    zone for each, and two of different ones take ten times as long to compare.
    """
    return SchemaValidator(_without_checks(_adapter(kind).core_schema)).validate_json


def _without_checks(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_checks(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "datetime":
        return no_info_after_validator_function(lambda moment: moment.astimezone(UTC), schema)
    if kind == "function-plain":
        return {"type": "any"}
    if kind in ("function-after", "function-before"):
        return _without_checks(schema["schema"])
    return {name: _without_checks(each) for name, each in schema.items()}


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # of a type
