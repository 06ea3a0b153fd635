"""One generation of knowledge with its counters: a file, written by one commit a batch."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal

from mongo.errors import StoreFencedError
from mongo.protocol import CounterDimension
from mongo.records import (
    Commit,
    Counter,
    CounterSum,
    Cursor,
    Lease,
    Row,
    ToolKey,
)
from mongo.sqlite.connections import ReadPool
from mongo.sqlite.events import MAX_BYTES
from mongo.sqlite.writer import GroupCommitWriter

SCHEMA = (
    # `server` and `tool` as in the log.
    """
    CREATE TABLE rows (
        workspace TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, server TEXT NOT NULL,
        tool TEXT NOT NULL, rank INTEGER NOT NULL, serial INTEGER NOT NULL, data BLOB NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX rows_by_key ON rows (workspace, kind, key)",
    "CREATE INDEX rows_by_rank ON rows (workspace, kind, rank DESC, key) WHERE rank <> 0",
    "CREATE INDEX rows_by_serial ON rows (workspace, serial)",
    """
    CREATE INDEX rows_of_tool ON rows (workspace, kind, server, tool, key) WHERE tool <> ''
    """,
    """
    CREATE TABLE counters (
        workspace TEXT, what TEXT, hour INTEGER, server TEXT, tool TEXT, principal TEXT,
        number INTEGER NOT NULL,
        PRIMARY KEY (workspace, hour, what, server, tool, principal)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE cursors (workspace TEXT PRIMARY KEY, position INTEGER, serial INTEGER)",
    "CREATE TABLE fences (name TEXT PRIMARY KEY, token INTEGER)",
)

_COLUMNS = "kind, key, data, server, tool, rank, serial"

_ORDERS = {"key": "key", "rank": "rank DESC, key", "serial": "serial, kind, key"}

# Each hour and name is looked up: no read passes over what it does not sum.
_HOURS = """
hours (hour) AS (
    SELECT min(hour) FROM counters WHERE workspace = :workspace AND hour >= :since
    UNION ALL
    SELECT (SELECT min(hour) FROM counters WHERE workspace = :workspace AND hour > hours.hour)
    FROM hours WHERE hour < :until
)
"""
_NAMED = """
SELECT counters.* FROM hours CROSS JOIN counters USING (hour)
WHERE workspace = :workspace AND hour <= :until AND """

_GROUPS = {"hour": "hour", "tool": "server, tool", "what": "what"}


class SqliteKnowledge:
    """As `mongo.protocol.Knowledge` and `mongo.protocol.Counters`.

    Args:
        generation: its number.
        writer: of its file.
        readers: of its file.
        resources: closed with it.
    """

    def __init__(
        self, generation: int, writer: GroupCommitWriter, readers: ReadPool, resources: ExitStack
    ) -> None:
        self.generation = generation
        self._writer = writer
        self._readers = readers
        self._resources = resources

    async def cursors(self) -> dict[str, Cursor]:  # noqa: D102
        query = "SELECT workspace, position, serial FROM cursors"
        return await self._readers.run(
            lambda c: {
                name: Cursor(position, serial) for name, position, serial in c.execute(query)
            }
        )

    async def commit(self, commit: Commit) -> int:  # noqa: D102
        return await self._writer.run(lambda connection: _commit(connection, commit))

    async def get(  # noqa: D102
        self, workspace: str, kind: str, keys: Collection[str]
    ) -> list[Row]:
        query = f"""
        SELECT r.{_COLUMNS.replace(", ", ", r.")} FROM json_each(?) AS wanted CROSS JOIN rows AS r
        ON r.workspace = ? AND r.kind = ? AND r.key = wanted.value
        """  # noqa: S608  # the columns are ours
        parameters = (json.dumps(list(keys)), workspace, kind)
        return await self._readers.run(
            lambda c: [_row(workspace, row) for row in c.execute(query, parameters)]
        )

    async def scan(  # noqa: D102
        self,
        workspace: str,
        kind: str | None,
        limit: int,
        *,
        by: Literal["key", "rank", "serial"] = "key",
        after: str | int | None = None,
        tool: ToolKey | None = None,
    ) -> list[Row]:
        where: list[str] = ["workspace = ?"]
        given: list[Any] = [workspace]
        if kind is not None:
            where.append("kind = ?")
            given.append(kind)
        if by == "rank":
            where.append("rank <> 0")
        if after is not None:
            where.append(f"{by} > ?")
            given.append(after)
        if tool is not None:
            where += ["server = ?", "tool = ?", "tool <> ''"]
            given += [tool.server_name or "", tool.tool_name]
        query = f"""
        SELECT {_COLUMNS} FROM rows WHERE {" AND ".join(where)} ORDER BY {_ORDERS[by]}
        """  # noqa: S608
        if by != "serial":
            query += " LIMIT ?"
            given.append(limit)
        return await self._readers.run(
            lambda c: _bounded(workspace, c.execute(query, given), limit, whole=by == "serial")
        )

    async def count(self, kind: str, workspace: str | None = None) -> int:  # noqa: D102
        query = "SELECT count(*) FROM rows WHERE kind = ?"
        parameters = [kind]
        if workspace is not None:
            query += " AND workspace = ?"
            parameters.append(workspace)
        return await self._readers.run(lambda c: int(c.execute(query, parameters).fetchone()[0]))

    async def sums(  # noqa: D102
        self,
        workspace: str,
        what: Sequence[str],
        *,
        since: int,
        until: int,
        by: Collection[CounterDimension] = (),
        tool: ToolKey | None = None,
    ) -> list[CounterSum]:
        if not what:
            return []
        given: dict[str, Any] = {"workspace": workspace, "since": since, "until": until}
        parts = []
        for place, name in enumerate(what):
            named = f"what = :n{place}"
            if name.endswith("*"):
                named = f"what >= :n{place} AND what < :n{place} || char(0x10ffff)"
            parts.append(_NAMED + named)
            given[f"n{place}"] = name.removesuffix("*")
        of_tool = ""
        if tool is not None:
            of_tool = "WHERE server = :server AND tool = :tool"
            given |= {"server": tool.server_name or "", "tool": tool.tool_name}
        groups = ", ".join(_GROUPS[each] for each in by)
        query = f"""
        WITH RECURSIVE {_HOURS}
        SELECT sum(number), {_shown("hour", by)}, {_shown("server", by)}, {_shown("tool", by)},
            {_shown("what", by)}
        FROM ({" UNION ALL ".join(parts)}) {of_tool} {f"GROUP BY {groups}" if groups else ""}
        """  # noqa: S608
        return await self._readers.run(
            lambda c: [
                CounterSum(
                    number,
                    hour,
                    ToolKey(workspace, server or None, name) if name else None,
                    each,
                )
                for number, hour, server, name, each in c.execute(query, given)
                if number
            ]
        )

    def close(self) -> None:
        """Finish what was accepted and release everything; blocks; twice does nothing."""
        self._resources.close()


def _shown(column: str, by: Collection[CounterDimension]) -> str:
    return column if ("tool" if column == "server" else column) in by else "NULL"


def _commit(connection: sqlite3.Connection, commit: Commit) -> int:
    workspace = commit.workspace
    found = connection.execute(
        "SELECT position, serial FROM cursors WHERE workspace = ?", (workspace,)
    ).fetchone()
    position, serial = found or (0, 0)
    if commit.moved is not None and commit.moved[0] != position:
        raise StoreFencedError(
            f"{workspace} has been learned to {position} by another process: read anew"
        )
    if commit.lease is not None:
        _check_fence(connection, commit.lease)
    connection.executemany(
        "DELETE FROM rows WHERE workspace = ? AND kind = ? AND key = ? AND (? IS NULL OR rank = ?)",
        [(workspace, each.kind, each.key, each.rank, each.rank) for each in commit.removed],
    )
    connection.executemany(
        """
        INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, kind, key)
        DO UPDATE SET server = excluded.server, tool = excluded.tool, rank = excluded.rank,
            serial = excluded.serial, data = excluded.data
        """,
        [_stored(workspace, serial + 1, row) for row in commit.put],
    )
    connection.executemany(
        """
        INSERT INTO counters VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET number = number + excluded.number
        """,
        list(_counted(workspace, commit.counters)),
    )
    connection.execute(
        "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)",
        (workspace, position if commit.moved is None else commit.moved[1], serial + 1),
    )
    return int(serial) + 1


def _check_fence(connection: sqlite3.Connection, lease: Lease) -> None:
    found = connection.execute("SELECT token FROM fences WHERE name = ?", (lease.name,)).fetchone()
    if found is not None and found[0] > lease.token:
        raise StoreFencedError(
            f"the lease {lease.name} is held no more: take it again, read anew and do it again"
        )
    if found is None or found[0] < lease.token:
        connection.execute("INSERT OR REPLACE INTO fences VALUES (?, ?)", (lease.name, lease.token))


def _stored(workspace: str, serial: int, row: Row) -> tuple[Any, ...]:
    server, tool = ("", "") if row.tool is None else row.tool[1:]
    return (workspace, row.kind, row.key, server or "", tool, row.rank, serial, row.data)


def _counted(workspace: str, counters: Mapping[Counter, int]) -> Iterable[tuple[Any, ...]]:
    for counter, number in counters.items():
        server, tool = ("", "") if counter.tool is None else counter.tool[1:]
        yield (
            workspace, counter.what, counter.hour, server or "", tool, counter.principal, number,
        )  # fmt: skip


def _bounded(
    workspace: str, rows: Iterable[tuple[Any, ...]], limit: int, *, whole: bool
) -> list[Row]:
    """Rows until they are many or large together; with `whole`, all of each commit."""
    found: list[Row] = []
    size = 0
    for each in rows:
        row = _row(workspace, each)
        is_full = len(found) >= limit or size >= MAX_BYTES
        if is_full and not (whole and found and found[-1].serial == row.serial):
            break
        found.append(row)
        size += len(row.data)
    return found


def _row(workspace: str, row: tuple[Any, ...]) -> Row:
    kind, key, data, server, tool, rank, serial = row
    return Row(
        kind, key, data, ToolKey(workspace, server or None, tool) if tool else None, rank, serial
    )
