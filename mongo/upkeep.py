"""What a log store offers to those who keep it: leases, streams, expiry, archives, switching.

A store has a generation: all that was learned belongs to one. A rebuild learns everything into the
next one (`open_shadow`) while the present one answers, and then switches (`adopt`).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from aftercall.json_values import JsonObject
from mongo.records import Changes, DocumentRow, Lease, StoredExecution


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    """One record of a store as archives carry it: the same whatever store it comes from.

    `kind` is one of `mongo.archive.KINDS`, `fields` what that says a record of the kind has.
    """

    kind: str
    fields: JsonObject


class ChangeFeed(Protocol):
    """What happened since the last time; one per process that keeps anything at hand."""

    async def poll(self) -> Changes:
        """What happened since the last call, or since the feed was made.

        Of changes made by the same process too, where a store does not tell them apart.

        Raises:
            StoreError: when the store cannot be read; nothing is missed by asking again.
        """
        ...


class Upkeep(Protocol):
    """Every method raises `mongo.errors.StoreError`, and nothing else, when it cannot do it."""

    # Leases. `ingest.leasing.LeaseKeeper` knows how to take and to keep one

    async def read_lease(self, name: str) -> Lease | None:
        """The lease as it is now, held or given back; None when nobody ever held it."""
        ...

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        """Take a lease if it is still as it was seen; None when somebody was faster.

        The new one has the next token (the first is 1). What a former holder of a `learning:` lease
        had committed (`commit_index`) but not yet applied in full is applied before this returns.
        """
        ...

    async def beat_lease(self, lease: Lease) -> Lease | None:
        """Say that its holder lives; None when it is not the holder's any more."""
        ...

    async def give_back_lease(self, lease: Lease) -> None:
        """Let others have it at once; one that was lost is left alone."""
        ...

    # What other processes do

    async def follow(self) -> ChangeFeed:
        """A feed of what happens from now on."""
        ...

    async def generation(self) -> int:
        """The generation that holds; the first is 1, the next is made by `adopt`."""
        ...

    # Streams. Memory is bounded by `limit`, and by size where records may be large

    async def workspaces(self) -> list[str]:
        """All workspaces that have anything in the log, or a tool, in order."""
        ...

    async def scan_executions(
        self, workspace: str, after: int, limit: int, before: datetime | None = None
    ) -> list[StoredExecution]:
        """Executions of positions above `after`, in that order; without input schemas.

        Args:
            workspace: the tenant.
            after: 0 for the beginning.
            limit: at most so many; fewer where they are large, none only when none is left.
            before: only those that arrived before. Positions are given out before a record is
                there, so whoever keeps a watermark stays some minutes behind the present.
        """
        ...

    async def scan_documents(self, workspace: str, after: str, limit: int) -> list[DocumentRow]:
        """Documents of ids above `after` ('' for the first), in that order."""
        ...

    async def expire_executions(self, workspace: str, before: datetime, limit: int) -> int:
        """Delete at most `limit` executions that arrived before a moment; how many that were.

        Only those that were learned from; what was learned, outcomes and corrections stay.
        """
        ...

    # Switching

    async def open_shadow(self) -> Self:
        """A store over the same log that has learned nothing: its queues hold all there is.

        It writes what it learns beside what is known here, and everything else where this store
        writes it. What an earlier shadow left is thrown away. Executions that arrive meanwhile come
        into its queues too. The caller closes it; who opens one holds the `learning:` leases of all
        workspaces, so that nobody else learns until it is adopted or given up.
        """
        ...

    async def adopt(
        self, shadow: Self, facts: Mapping[str, str], leases: Sequence[Lease] = ()
    ) -> int:
        """What the shadow learned takes the place of what is known here; at once or not at all.

        The facts are set in the same step. What the shadow has still in its queues, and what has
        arrived since, is queued. Returns the new generation. The shadow is closed by this.

        Raises:
            StoreFencedError: one of the leases is not held any more; nothing was changed.
        """
        ...

    async def drop_shadow(self) -> None:
        """Throw away what a shadow left, if anything; none may be open."""
        ...

    # Archives

    def still(self) -> AbstractAsyncContextManager[Self]:
        """The store as it is at this moment, to be read until the block ends, where it can do that.

        Else itself, which may change while it is read.
        """
        ...

    async def scan_archive(
        self, kind: str, after: JsonObject | None, limit: int
    ) -> list[ArchiveRow]:
        """Records of a kind in the order of their keys; those behind the key fields of `after`."""
        ...

    async def restore(self, rows: Sequence[ArchiveRow]) -> int:
        """Put records of one kind where they were in another store; how many were new.

        One whose key is there already is left as it is. Ends with all queues as the archive says.
        """
        ...
