"""What a SQLite store offers to those who keep it: `mongo.upkeep.Upkeep` over its connections."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

from aftercall.json_values import JsonObject
from mongo import codec
from mongo.errors import StoreError
from mongo.records import DocumentRow, Lease, StoredExecution
from mongo.sqlite import (
    adoption,
    archiving,
    changes,
    commits,
    expiry,
    facts,
    files,
    knowledge,
    leases,
    shadow,
)
from mongo.sqlite import executions as execution_log
from mongo.sqlite.readers import ReadPool
from mongo.sqlite.shadow import Shadow
from mongo.sqlite.writer import GroupCommitWriter
from mongo.upkeep import ArchiveRow


class SqliteUpkeep:
    """The half of a `mongo.sqlite.store.SqliteLogStore` that is for its keepers.

    Args:
        path: the log's file.
        writer: writes the log.
        readers: read the log and what was learned.
        resources: closed last to first by `close`; they hold what is to be closed.
        shadow: of the log, when this is the store over that; it writes what is learned.
        is_beside: whether this process stands beside a service, which has to be told of everything.
    """

    def __init__(
        self,
        path: Path,
        writer: GroupCommitWriter,
        readers: ReadPool,
        *,
        resources: ExitStack,
        shadow: Shadow | None = None,
        is_beside: bool = False,
    ) -> None:
        self._path = path
        self._writer = writer
        self._learner = writer if shadow is None else shadow.writer
        self._readers = readers
        self._resources = resources
        self._shadow = shadow
        self._is_beside = is_beside
        self._closing = asyncio.Lock()

    async def close(self) -> None:
        """Finish what was accepted and release everything; closing twice does nothing."""
        async with self._closing:
            await asyncio.to_thread(self._resources.close)

    # Leases

    async def read_lease(self, name: str) -> Lease | None:
        """The lease as it is now, held or given back; None when nobody ever held it."""
        return await self._readers.run(partial(leases.read, name=name))

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        """Take a lease if it is still as it was seen; None when somebody was faster."""
        return await self._writer.run(partial(leases.take, name=name, holder=holder, seen=seen))

    async def beat_lease(self, lease: Lease) -> Lease | None:
        """Say that its holder lives; None when it is not the holder's any more."""
        return await self._writer.run(partial(leases.beat, lease=lease))

    async def give_back_lease(self, lease: Lease) -> None:
        """Let others have it at once; one that was lost is left alone."""
        await self._writer.run(partial(leases.give_back, lease=lease))

    # What other processes do

    async def follow(self) -> changes.SqliteChangeFeed:
        """A feed of what happens from now on."""
        return changes.SqliteChangeFeed(self._readers, await self._readers.run(changes.latest))

    async def generation(self) -> int:
        """The generation that holds; that of a shadow is the next."""
        return await self._readers.run(commits.generation)

    # Streams

    async def workspaces(self) -> list[str]:
        """All workspaces that have anything in the log, or a tool, in order."""
        return await self._readers.run(facts.workspaces)

    async def scan_executions(
        self, workspace: str, after: int, limit: int, before: datetime | None = None
    ) -> list[StoredExecution]:
        """Executions of positions above `after`, in that order; without input schemas.

        Fewer than `limit` when they are large (`executions.MAX_PENDING_BYTES`).
        """
        return await self._readers.run(
            partial(
                execution_log.scan, workspace=workspace, after=after, limit=limit, before=before
            )
        )

    async def scan_documents(self, workspace: str, after: str, limit: int) -> list[DocumentRow]:
        """Documents of ids above `after`, in that order; fewer than `limit` when they are large."""
        return await self._readers.run(
            partial(knowledge.scan_documents, workspace=workspace, after=after, limit=limit)
        )

    async def expire_executions(self, workspace: str, before: datetime, limit: int) -> int:
        """Delete at most `limit` executions that arrived before a moment; how many that were.

        In transactions of `expiry.AT_ONCE`, so that appends wait for none of them for long.
        """
        moment, expired = codec.to_microseconds(before), 0
        while expired < limit:
            gone = await self._writer.run(
                partial(expiry.expire, workspace=workspace, before=moment, limit=limit - expired)
            )
            expired += gone
            if not gone:
                await self._forget_schemas(workspace)
                break
        return expired

    async def _forget_schemas(self, workspace: str) -> None:
        doubtful = await self._readers.run(partial(expiry.unnamed_schemas, workspace=workspace))
        if doubtful is not None:
            forget = partial(expiry.forget_schemas, workspace=workspace, doubtful=doubtful)
            await self._writer.run(forget)

    # Archives

    async def scan_archive(
        self, kind: str, after: JsonObject | None, limit: int
    ) -> list[ArchiveRow]:
        """Records of a kind in the order of their keys; those behind the key fields of `after`."""
        return await self._readers.run(partial(archiving.scan, kind=kind, after=after, limit=limit))

    async def restore(self, rows: Sequence[ArchiveRow]) -> int:
        """Put records of one kind where they were in another store; how many were new."""
        kept = tuple(rows)
        if not kept:
            return 0
        restore = partial(archiving.restore, rows=kept, is_told=self._is_beside)
        return await self._writer.run(restore)

    # Switching: see `mongo.sqlite.store` for opening a shadow

    async def drop_shadow(self) -> None:
        """Throw away what a shadow left, if anything; none may be open."""
        await asyncio.to_thread(files.remove_file, shadow.shadow_path(self._path))

    async def _adopt(
        self, adopted: "SqliteUpkeep", set_facts: Mapping[str, str], held: Sequence[Lease]
    ) -> int:
        made = adopted._shadow  # noqa: SLF001  # another of its own kind
        if made is None or adopted._path != self._path:  # noqa: SLF001  # likewise
            raise StoreError("only a shadow of this store can be adopted: open one first")
        await adopted.close()
        return await asyncio.to_thread(
            adoption.adopt, self._path, made.path, made.mark, dict(set_facts), tuple(held)
        )

    async def _catch_up(self) -> None:
        """Let a shadow queue what came into the log meanwhile."""
        if self._shadow is not None and await self._readers.run(shadow.is_behind):
            await self._learner.run(shadow.catch_up)
