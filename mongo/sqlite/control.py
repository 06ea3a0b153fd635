"""Keys and the audit in a file of their own, which several processes may have open."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mongo.errors import KeyChangedError
from mongo.protocol import ControlStore
from mongo.records import AuditEntry, AuditHead, StoredKey, decode_json, encode_json
from mongo.sqlite import files
from mongo.sqlite.files import FileUser, GroupCommitWriter, ReadPool
from mongo.sqlite.store import open_file


class SqliteControl(FileUser):
    """As `mongo.protocol.ControlStore`."""

    def __init__(self, writer: GroupCommitWriter, readers: ReadPool, resources: ExitStack) -> None:
        super().__init__(writer, readers)
        self._resources = resources

    async def read_head(self) -> AuditHead:
        return await self._readers.run(_read_head)

    async def list_keys(self) -> list[StoredKey]:
        return await self._readers.run(
            lambda c: [
                replace(
                    decode_json(StoredKey, data), used_at=used and datetime.fromtimestamp(used, UTC)
                )
                for data, used in c.execute("SELECT data, used_at FROM keys ORDER BY rowid")
            ]
        )

    async def append(
        self, entry: AuditEntry, key: StoredKey | None = None, before: StoredKey | None = None
    ) -> AuditEntry:
        return await self._writer.run(lambda c: _append_entry(c, entry, key, before))

    async def note_used(self, moments: Mapping[str, datetime]) -> None:
        query = "UPDATE keys SET used_at = max(coalesce(used_at, 0), ?) WHERE id = ?"
        rows = [(moment.timestamp(), name) for name, moment in moments.items()]
        await self._writer.run(lambda c: c.executemany(query, rows))

    async def list_entries(
        self, limit: int, *, before: int | None = None, workspace: str | None = None
    ) -> list[AuditEntry]:
        query = """
        SELECT data FROM audit WHERE position < ?1
        AND (?2 IS NULL OR data ->> 'workspace' = ?2) ORDER BY position DESC LIMIT ?3
        """
        given = (before or 2**62, workspace, limit)
        return await self._readers.run(
            lambda c: [
                decode_json(AuditEntry, data.encode()) for (data,) in c.execute(query, given)
            ]
        )

    async def close(self) -> None:
        await asyncio.to_thread(self._resources.close)


async def open_sqlite_control(data_dir: Path) -> ControlStore:
    """Open the control store of a data folder, making what is missing; the caller closes it.

    A `StoreError` where folder or file cannot be used; the message states what to do.
    """
    return await asyncio.to_thread(_open_file, data_dir)


def _open_file(data_dir: Path) -> SqliteControl:
    files.make_folder(data_dir)
    with ExitStack() as resources:
        writer, readers = open_file(
            data_dir / "control.sqlite3", "control", resources, synchronous="FULL"
        )
        return SqliteControl(writer, readers, resources.pop_all())


def _read_head(connection: sqlite3.Connection) -> AuditHead:
    return AuditHead(*connection.execute("SELECT position, hash FROM head").fetchone())


def _append_entry(
    connection: sqlite3.Connection,
    entry: AuditEntry,
    key: StoredKey | None,
    before: StoredKey | None,
) -> AuditEntry:
    if key is not None:
        row = connection.execute("SELECT data FROM keys WHERE id = ?", (key.id,)).fetchone()
        if (row[0] if row else None) != (before and before.to_data()):
            raise KeyChangedError(key.id)
        connection.execute(
            "INSERT INTO keys (id, data) VALUES (?, ?) "
            "ON CONFLICT (id) DO UPDATE SET data = excluded.data",
            (key.id, key.to_data()),
        )
    entry = entry.chain_to(_read_head(connection))
    connection.execute(
        "INSERT INTO audit VALUES (?, ?)", (entry.position, encode_json(entry).decode())
    )
    connection.execute("UPDATE head SET position = ?, hash = ?", (entry.position, entry.hash))
    return entry
