"""What a store offers: the event log, what is derived from it, counters, leases, metadata, keys.

The log is the truth; a *generation* of knowledge is a fold over it, and can be made again. Every
method may be called concurrently, and raises `mongo.errors.StoreError` (a subclass that states
which) and nothing else when the store cannot do it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from aftercall.json_values import JsonObject
from mongo.records import (
    Appended,
    AuditEntry,
    AuditHead,
    Commit,
    CounterSum,
    Cursor,
    Event,
    EventKind,
    Head,
    Lease,
    Row,
    StateKind,
    StateRow,
    StoredKey,
    ToolKey,
)

CounterDimension = Literal["hour", "tool", "what"]


class EventLog(Protocol):
    """All that was reported and answered, in one order for each workspace."""

    async def append(
        self, workspace: str, events: Sequence[Event], state: Sequence[StateRow] = ()
    ) -> list[Appended]:
        """Store events, and the state that they leave, in one step; a verdict for each, in order.

        Durable when this returns: it survives `kill -9` and power loss. An event gets the time of
        the log, unless it brings one (of an import); neither goes back. An event is unique by
        workspace, kind and id; the same id twice within one call counts like two calls. With
        `state`, all happens or nothing; nothing by a `StateConflictError`, where a row is not as
        `expected` states.
        """

    async def read_after(self, workspace: str, position: int, limit: int) -> list[Event]:
        """Events of positions above `position`, in that order, without input schemas.

        Fewer than `limit` where they are large; none only when none is left.
        """

    async def find_events(self, workspace: str, kind: EventKind, ids: Sequence[str]) -> list[Event]:
        """Return those of the events that exist, in the order of the ids, without input schemas."""

    async def latest_events(
        self,
        workspace: str,
        kind: EventKind,
        limit: int,
        *,
        tool: ToolKey | None = None,
        sessions: Collection[str] | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        """Return the latest events of a kind, newest first.

        At most `limit`, of each of the `sessions`; with `before` of positions below, with `after`
        of positions above. Calls of one tool have no index: `after` bounds what is looked through.
        """

    async def read_state(
        self,
        workspace: str,
        kind: StateKind,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[StateRow]:
        """Return the state of commands: those of the keys that exist, or all, by key.

        With `limit` at most so many, the first ones.
        """

    async def count_state(self, workspace: str, kind: StateKind) -> int:
        """Return how many rows of state there are of a kind; cheap enough for a health page."""

    async def read_schemas(self, workspace: str, hashes: Collection[str]) -> dict[str, JsonObject]:
        """Return those of the input schemas that are known, by their hash."""

    async def find_newest(self, workspace: str) -> int:
        """Return the position of the newest event, of any kind; 0 without one."""

    async def read_heads(self) -> dict[str, Head]:
        """Return how far the log of each workspace goes; cheap enough to be asked all the time."""

    async def erase_events(self, workspace: str, through: int, before: datetime, limit: int) -> int:
        """Delete the oldest events up to a position that arrived before a moment; how many.

        At most `limit` at a time. State and positions stay as they are.
        """

    async def forget_events(self, workspace: str, positions: Collection[int]) -> int:
        """Delete the events of these positions; how many there were.

        Input schemas that no other event names go with them. State and positions stay.
        """


class Knowledge(Protocol):
    """One generation of what was derived from the log."""

    generation: int
    """Its number; 0 is the base, which trails at the edge of the retention."""

    async def read_cursors(self) -> dict[str, Cursor]:
        """Return how far each workspace has learned.

        Those that have learned nothing are left out.
        """

    async def commit(self, commit: Commit) -> int:
        """Apply what was learned and move the cursor, whole or not at all; the commit's number.

        Commits are numbered from 1 on in each workspace. A `StoreFencedError` where the cursor is
        elsewhere, or a later holder of the lease has committed; nothing was written.
        """

    async def get(self, workspace: str, kind: str, keys: Collection[str]) -> list[Row]:
        """Return those of the rows that exist, in any order."""

    async def scan_rows(
        self,
        workspace: str,
        kind: str | None,
        limit: int,
        *,
        by: Literal["key", "rank", "serial"] = "key",
        after: str | int | None = None,
        tool: ToolKey | None = None,
    ) -> list[Row]:
        """Return rows of a kind in an order, at most `limit`; fewer where they are large.

        By `key`: in the order of keys. By `rank`: the highest first, equal ones by key, without
        those of rank 0. By `serial`: in the order of their commits; rows of one commit come
        together, so there may be more than `limit`. All kinds (None) come by serial number only.
        The list is empty only when nothing is left behind `after`, a key or a serial number.
        """

    async def list_changed(
        self, workspace: str, kinds: Collection[str], after: int, limit: int
    ) -> list[tuple[str, str]]:
        """Return kind and key of rows that later commits than of a serial number wrote.

        Only of these kinds; at most `limit`, and fewer only where there are no more.
        """

    async def count_rows(self, kind: str, workspace: str | None = None) -> int:
        """Return how many rows there are of a kind, in one workspace or in all."""


class Counters(Protocol):
    """What commits of the current generation have counted, by hour."""

    async def sum_counters(
        self,
        workspace: str,
        what: Sequence[str],
        *,
        since: int,
        until: int,
        by: Collection[CounterDimension] = (),
        tools: Collection[ToolKey] | None = None,
    ) -> list[CounterSum]:
        """Sums of counters over hours, in any order; groups that counted nothing are left out.

        `what` are names of counters; one that ends with `*` stands for all that begin so. `since`
        and `until` are hours since 1970 (UTC), both included. With `tools`, of these alone.
        """

    async def top_tools(
        self, workspace: str, what: Sequence[str], *, since: int, until: int, limit: int
    ) -> list[ToolKey]:
        """Return the tools that counted most, the most first, at most `limit`.

        Of equal ones that of the lesser server comes first, then that of the lesser name, and those
        without a server last. `what`, `since` and `until` are as of `sums`.
        """


class Generation(Knowledge, Counters, Protocol):
    """What one generation holds."""


class Leases(Protocol):
    """Who may do a thing at the moment; `ingest.leases` knows how to take and to keep one."""

    async def read(self, name: str) -> Lease | None:
        """Return the lease as it is now, held or given back; None when no one ever held it."""

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        """Take a lease if it is still as it was seen; None when someone was faster.

        The new one has the next token; the first is 1.
        """

    async def renew_lease(self, lease: Lease) -> Lease | None:
        """Say that its holder lives; None when it is not the holder's any more."""

    async def give_back(self, lease: Lease) -> None:
        """Let others have it at once; one that was lost is left alone."""


class Metadata(Protocol):
    """Small facts about the store as a whole, such as which model made the vectors."""

    async def get(self, name: str) -> str | None:
        """Return a fact; None when it was never set."""

    async def put(self, name: str, value: str) -> None:
        """Set a fact."""

    async def keep_fact(self, name: str, value: str) -> str:
        """Set a fact unless it is set, over all processes; what it states from then on."""


class Store(Protocol):
    """One store: the log, the current generation and what goes with them."""

    name: str
    """What `/status` calls it, such as `sqlite`."""
    events: EventLog
    leases: Leases
    metadata: Metadata

    @property
    def knowledge(self) -> Generation:
        """Current generation, as of the latest `refresh`."""

    @property
    def counters(self) -> Counters:
        """Counters of the current generation."""

    async def refresh_generation(self) -> bool:
        """Take up the generation that is current now; whether it is another one than before."""

    async def open_generation(self, number: int) -> Generation:
        """Return another generation, to learn into; empty when there was none of this number.

        One above the current begins as a copy of the base. It is closed with the store.
        """

    async def switch_generation(self, number: int, facts: Mapping[str, str]) -> None:
        """Name a generation current and set facts in the same step.

        The former one is removed, at the latest when this store is closed: other processes answer
        from it until they `refresh`. A `StoreFencedError` where the current one is not the one
        before it.
        """

    async def close(self) -> None:
        """Finish what was accepted and release everything; closing twice does nothing."""


class ControlStore(Protocol):
    """Keys and the audit; no rebuild, export or erasure touches it.

    Several processes may have it open.
    """

    async def read_head(self) -> AuditHead:
        """Return the latest entry of the audit, as it is noted apart from the entries."""

    async def list_keys(self) -> list[StoredKey]:
        """Return all keys, revoked ones too, the oldest first."""

    async def append(
        self, entry: AuditEntry, key: StoredKey | None = None, before: StoredKey | None = None
    ) -> AuditEntry:
        """Add an entry to the audit, and put the key that it is about; durable when this returns.

        A process that is killed meanwhile may leave the entry alone, never the key alone. `entry`
        gets its place and its hashes here. `before` is the key instead of `key` as it was
        read, None for none; where it is another by now, a `KeyChangedError`, and the key was not
        put.
        """

    async def note_used(self, moments: Mapping[str, datetime]) -> None:
        """Note when keys were last used, by id."""

    async def list_entries(
        self, limit: int, *, before: int | None = None, workspace: str | None = None
    ) -> list[AuditEntry]:
        """Return the latest entries, newest first: below a position, of one workspace or of all."""

    async def close(self) -> None:
        """Release everything; closing twice does nothing."""
