"""One generation of knowledge and its counters, in a file of the embedded store."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from aftercall.tables import sum_values
from mongo.errors import StoreFencedError
from mongo.protocol import CounterDimension
from mongo.records import Commit, CounterSum, Cursor, Lease, Row, ToolKey
from mongo.sqlite import files

_COLUMNS = "kind, key, data, server, tool, rank, serial"
_ORDERS = {"key": "key", "rank": "rank DESC, key", "serial": "serial, kind, key"}

# Each hour and name is looked up: no read passes over what it does not sum.
_HOURS = """
hours (hour) AS (
    SELECT min(hour) FROM totals WHERE workspace = :workspace AND hour >= :since
    UNION ALL
    SELECT (SELECT min(hour) FROM totals WHERE workspace = :workspace AND hour > hours.hour)
    FROM hours WHERE hour < :until
)
"""
_GROUPS = {"hour": "hour", "tool": "server, tool", "what": "what"}

_FEW_KEYS = 100
"""Rows that are read on the event loop, for an answer that waits for them: some 0.5 ms."""


class SqliteKnowledge(files.FileUser):
    """As `mongo.protocol.Knowledge` and `mongo.protocol.Counters`."""

    def __init__(
        self,
        path: Path,
        writer: files.GroupCommitWriter,
        readers: files.ReadPool,
        resources: ExitStack,
    ) -> None:
        super().__init__(writer, readers)
        self.generation = int(path.stem.rpartition("-")[2])
        self._path = path
        self._resources = resources

    async def read_cursors(self) -> dict[str, Cursor]:
        query = "SELECT workspace, position, serial FROM cursors"
        return await self._readers.run(
            lambda c: {
                name: Cursor(position, serial) for name, position, serial in c.execute(query)
            }
        )

    async def commit(self, commit: Commit) -> int:
        serial = await self._writer.run(lambda connection: _commit_rows(connection, commit))
        if commit.lasts:
            await asyncio.to_thread(files.sync_log, self._path)
        return serial

    async def get(self, workspace: str, kind: str, keys: Collection[str]) -> list[Row]:
        query = f"""
        SELECT r.{_COLUMNS.replace(", ", ", r.")} FROM json_each(?) AS wanted CROSS JOIN rows AS r
        ON r.workspace = ? AND r.kind = ? AND r.key = wanted.value
        """  # noqa: S608  # the columns are ours
        parameters = (json.dumps(list(keys)), workspace, kind)
        return await self._readers.run(
            lambda c: [_row_of(workspace, row) for row in c.execute(query, parameters)],
            here=len(keys) <= _FEW_KEYS,
        )

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
            given += files.named_tool(tool)
        query = f"""
        SELECT {_COLUMNS} FROM rows WHERE {" AND ".join(where)} ORDER BY {_ORDERS[by]}
        """  # noqa: S608
        if by != "serial":
            query += " LIMIT ?"
            given.append(limit)
        return await self._readers.run(
            lambda c: files.bound_rows(
                (_row_of(workspace, row) for row in c.execute(query, given)),
                limit,
                attrgetter("serial") if by == "serial" else None,
            )
        )

    async def list_changed(
        self, workspace: str, kinds: Collection[str], after: int, limit: int
    ) -> list[tuple[str, str]]:
        query = """
        SELECT kind, key FROM rows WHERE workspace = ? AND serial > ?
        AND kind IN (SELECT value FROM json_each(?)) LIMIT ?
        """
        given = (workspace, after, json.dumps([*kinds]), limit)
        return await self._readers.run(lambda c: c.execute(query, given).fetchall())

    async def count_rows(self, kind: str, workspace: str | None = None) -> int:
        query = "SELECT coalesce(sum(number), 0) FROM numbers WHERE kind = ?"
        parameters = [kind]
        if workspace is not None:
            query += " AND workspace = ?"
            parameters.append(workspace)
        return await self._readers.run(lambda c: int(c.execute(query, parameters).fetchone()[0]))

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
        if not what:
            return []
        of_tools = "" if tools is None else _OF_TOOLS
        table = "counters" if of_tools or "tool" in by else "totals"
        counted, given = _counter_query(table, what, of_tools)
        given |= {"workspace": workspace, "since": since, "until": until}
        given["tools"] = json.dumps([files.named_tool(each) for each in tools or ()])
        groups = ", ".join(_GROUPS[each] for each in by)
        shown = ", ".join(_shown_column(each, by) for each in ("hour", "server", "tool", "what"))
        query = f"""
        WITH RECURSIVE {_HOURS}
        SELECT sum(number), {shown}
        FROM ({counted}) {f"GROUP BY {groups}" if groups else ""}
        """  # noqa: S608
        return await self._readers.run(
            lambda c: [
                CounterSum(
                    number, hour, ToolKey(workspace, server or None, name) if name else None, each
                )
                for number, hour, server, name, each in c.execute(query, given)
                if number
            ]
        )

    async def top_tools(
        self, workspace: str, what: Sequence[str], *, since: int, until: int, limit: int
    ) -> list[ToolKey]:
        if not what:
            return []
        counted, given = _counter_query("counters", what, "AND tool <> ''")
        given |= {"workspace": workspace, "since": since, "until": until, "limit": limit}
        query = f"""
        WITH RECURSIVE {_HOURS}
        SELECT server, tool FROM ({counted}) GROUP BY server, tool HAVING sum(number) > 0
        ORDER BY sum(number) DESC, server = '', server, tool LIMIT :limit
        """  # noqa: S608
        return await self._readers.run(
            lambda c: [
                ToolKey(workspace, server or None, tool) for server, tool in c.execute(query, given)
            ]
        )

    def close(self) -> None:
        """Finish what was accepted and release everything; blocks; twice does nothing."""
        self._resources.close()


_OF_TOOLS = """
AND (server, tool) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:tools))
"""


def _counter_query(table: str, what: Sequence[str], which: str) -> tuple[str, dict[str, Any]]:
    """Return a query for the counters of these names, hour by hour, and what it is given."""
    parts, given = list[str](), dict[str, Any]()
    for place, name in enumerate(what):
        given[f"n{place}"] = name.removesuffix("*")
        begins = f"what >= :n{place} AND what < :n{place} || char(0x10ffff)"
        parts.append(
            f"SELECT {table}.* FROM hours CROSS JOIN {table} USING (hour) "  # noqa: S608
            f"WHERE workspace = :workspace AND hour <= :until {which} AND "
            + (begins if name.endswith("*") else f"what = :n{place}")
        )
    return " UNION ALL ".join(parts), given


def _shown_column(column: str, by: Collection[CounterDimension]) -> str:
    return column if ("tool" if column == "server" else column) in by else "NULL"


def _commit_rows(connection: sqlite3.Connection, commit: Commit) -> int:
    workspace = commit.workspace
    position, serial = connection.execute(
        "SELECT position, serial FROM cursors WHERE workspace = ?", (workspace,)
    ).fetchone() or (0, 0)
    if commit.moved is not None and commit.moved[0] != position:
        raise StoreFencedError(
            f"{workspace} has been learned to {position} by another process: read anew"
        )
    if commit.lease is not None:
        _check_fence(connection, commit.lease)
    removed = connection.execute(
        """
        DELETE FROM rows WHERE rowid IN (
            SELECT r.rowid FROM json_each(?) AS gone CROSS JOIN rows AS r
            ON r.workspace = ? AND r.kind = gone.value ->> 0 AND r.key = gone.value ->> 1
            WHERE coalesce(gone.value ->> 2, r.rank) = r.rank
        ) RETURNING kind
        """,
        (json.dumps([(e.kind, e.key, e.rank) for e in commit.removed]), workspace),
    ).fetchall()
    numbers = _new_rows(connection, commit)
    numbers.subtract(kind for (kind,) in removed)
    files.insert_rows(
        connection,
        "numbers",
        [(workspace, kind, number) for kind, number in numbers.items() if number],
        "ON CONFLICT DO UPDATE SET number = number + excluded.number",
    )
    files.insert_rows(
        connection,
        "rows",
        sorted(  # in the order of the indexes: neighbours are on one page
            (workspace, e.kind, e.key, *files.named_tool(e.tool), e.rank, serial + 1, e.data)
            for e in commit.put
        ),
        "ON CONFLICT (workspace, kind, key) DO UPDATE SET server = excluded.server, "
        "tool = excluded.tool, rank = excluded.rank, serial = excluded.serial, "
        "data = excluded.data",
    )
    files.insert_rows(
        connection,
        "counters",
        [
            (workspace, counter.what, counter.hour, *files.named_tool(counter.tool), number)
            for counter, number in commit.counters.items()
        ],
        "ON CONFLICT DO UPDATE SET number = number + excluded.number",
    )
    totals = sum_values(((each.what, each.hour), n) for each, n in commit.counters.items())
    files.insert_rows(
        connection,
        "totals",
        [(workspace, *place, number) for place, number in totals.items()],
        "ON CONFLICT DO UPDATE SET number = number + excluded.number",
    )
    if any(number < 0 for number in commit.counters.values()):  # names of agents are no more
        for table in ("counters", "totals"):
            connection.execute(
                f"DELETE FROM {table} WHERE workspace = ? AND number = 0",  # noqa: S608
                (workspace,),
            )
    connection.execute(
        "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)",
        (workspace, position if commit.moved is None else commit.moved[1], serial + 1),
    )
    return int(serial) + 1


def _new_rows(connection: sqlite3.Connection, commit: Commit) -> Counter[str]:
    """Count the rows to write that are not there yet, by kind."""
    places = {(each.kind, each.key) for each in commit.put}
    there = connection.execute(
        """
        SELECT r.kind, count(*) FROM json_each(?) AS put CROSS JOIN rows AS r
        ON r.workspace = ? AND r.kind = put.value ->> 0 AND r.key = put.value ->> 1
        GROUP BY r.kind
        """,
        (json.dumps(sorted(places)), commit.workspace),
    )
    found = Counter(kind for kind, _ in places)
    found.subtract(dict(there.fetchall()))
    return found


def _check_fence(connection: sqlite3.Connection, lease: Lease) -> None:
    found = connection.execute("SELECT token FROM fences WHERE name = ?", (lease.name,)).fetchone()
    if found is not None and found[0] > lease.token:
        raise StoreFencedError(
            f"the lease {lease.name} is held no more: take it again, read anew and do it again"
        )
    if found is None or found[0] < lease.token:
        connection.execute("INSERT OR REPLACE INTO fences VALUES (?, ?)", (lease.name, lease.token))


def _row_of(workspace: str, row: tuple[Any, ...]) -> Row:
    kind, key, data, server, tool, rank, serial = row
    return Row(
        kind, key, data, ToolKey(workspace, server or None, tool) if tool else None, rank, serial
    )
