"""The embedded store: the log in one file, each generation of knowledge in another."""

import asyncio
import importlib.resources
import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from aftercall.tables import summed
from mongo.errors import StoreDamagedError, StoreError, StoreFencedError, StoreFullError, closed
from mongo.protocol import CounterDimension, EventLog, Leases, Metadata
from mongo.records import Commit, CounterSum, Cursor, Lease, Row, ToolKey
from mongo.sqlite import files
from mongo.sqlite.events import SqliteEvents
from mongo.sqlite.files import connect_writer

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

    async def cursors(self) -> dict[str, Cursor]:
        query = "SELECT workspace, position, serial FROM cursors"
        return await self._readers.run(
            lambda c: {
                name: Cursor(position, serial) for name, position, serial in c.execute(query)
            }
        )

    async def commit(self, commit: Commit) -> int:
        serial = await self._writer.run(lambda connection: _commit(connection, commit))
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
            lambda c: [_row(workspace, row) for row in c.execute(query, parameters)]
        )

    async def scan(
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
            lambda c: files.bounded(
                (_row(workspace, row) for row in c.execute(query, given)),
                limit,
                attrgetter("serial") if by == "serial" else None,
            )
        )

    async def count(self, kind: str, workspace: str | None = None) -> int:
        query = "SELECT coalesce(sum(number), 0) FROM numbers WHERE kind = ?"
        parameters = [kind]
        if workspace is not None:
            query += " AND workspace = ?"
            parameters.append(workspace)
        return await self._readers.run(lambda c: int(c.execute(query, parameters).fetchone()[0]))

    async def sums(
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
        counted, given = _counted(table, what, of_tools)
        given |= {"workspace": workspace, "since": since, "until": until}
        given["tools"] = json.dumps([files.named_tool(each) for each in tools or ()])
        groups = ", ".join(_GROUPS[each] for each in by)
        query = f"""
        WITH RECURSIVE {_HOURS}
        SELECT sum(number), {_shown("hour", by)}, {_shown("server", by)}, {_shown("tool", by)},
            {_shown("what", by)}
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
        counted, given = _counted("counters", what, "AND tool <> ''")
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


def _counted(table: str, what: Sequence[str], which: str) -> tuple[str, dict[str, Any]]:
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


def _shown(column: str, by: Collection[CounterDimension]) -> str:
    return column if ("tool" if column == "server" else column) in by else "NULL"


def _commit(connection: sqlite3.Connection, commit: Commit) -> int:
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
    files.insert(
        connection,
        "numbers",
        [(workspace, kind, number) for kind, number in numbers.items() if number],
        "ON CONFLICT DO UPDATE SET number = number + excluded.number",
    )
    files.insert(
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
    files.insert(
        connection,
        "counters",
        [
            (workspace, counter.what, counter.hour, *files.named_tool(counter.tool), number)
            for counter, number in commit.counters.items()
        ],
        "ON CONFLICT DO UPDATE SET number = number + excluded.number",
    )
    totals = summed(((each.what, each.hour), n) for each, n in commit.counters.items())
    files.insert(
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


def _row(workspace: str, row: tuple[Any, ...]) -> Row:
    kind, key, data, server, tool, rank, serial = row
    return Row(
        kind, key, data, ToolKey(workspace, server or None, tool) if tool else None, rank, serial
    )


FILE_NAME = "aftercall.sqlite3"
"""The log, the state of commands, leases and metadata."""
APPLICATION_ID = int.from_bytes(b"AftC")
"""Marks a file as ours in its header (`PRAGMA application_id`)."""
LAYOUT = 2
"""Of all files (`PRAGMA user_version`); there are no migrations before the first release."""
_GENERATION = "generation"
"""The fact that says which generation is current."""
_ROOM = 1.2
"""Times the size of the base that has to be free before it is copied."""


class SqliteStore:
    """As `mongo.protocol.Store`."""

    name = "sqlite"

    def __init__(
        self,
        data_dir: Path,
        writer: files.GroupCommitWriter,
        readers: files.ReadPool,
        resources: ExitStack,
        *,
        is_beside: bool,
    ) -> None:
        self._data_dir = data_dir
        self._writer = writer
        self._resources = resources
        self._is_beside = is_beside
        self.events: EventLog = SqliteEvents(writer, readers)
        self.leases: Leases = SqliteLeases(writer, readers)
        self.metadata: Metadata = SqliteMetadata(writer, readers)
        self._generations: dict[int, SqliteKnowledge] = {}
        self._current: SqliteKnowledge | None = None

    @property
    def knowledge(self) -> SqliteKnowledge:
        """The current generation."""
        if self._current is None:
            raise closed()
        return self._current

    counters = knowledge

    async def refresh(self) -> bool:
        number = int(await self.metadata.get(_GENERATION) or 1)
        if (before := self._current) is not None and before.generation == number:
            return False
        self._current = await self._open(number, is_new=False)
        if before is not None:
            await asyncio.to_thread(before.close)
            del self._generations[before.generation]
        if not self._is_beside:
            await asyncio.to_thread(self._remove_unnamed, number)
        return True

    async def open_generation(self, number: int) -> SqliteKnowledge:
        return await self._open(number, is_new=number > self.knowledge.generation)

    async def _open(self, number: int, *, is_new: bool) -> SqliteKnowledge:
        if number not in self._generations:
            self._generations[number] = await asyncio.to_thread(
                _open_generation, self._data_dir, number, is_new=is_new
            )
        return self._generations[number]

    async def switch(self, number: int, facts: Mapping[str, str]) -> None:
        def operation(connection: sqlite3.Connection) -> None:
            if int(current := _get(connection, _GENERATION) or "1") != number - 1:
                raise StoreFencedError(
                    f"generation {current} is current, so {number} cannot follow it: "
                    "another rebuild was faster"
                )
            for name, value in {**facts, _GENERATION: str(number)}.items():
                _put(connection, name, value)

        await self._writer.run(operation)
        await self.refresh()

    async def close(self) -> None:
        self._current = None
        for each in self._generations.values():
            await asyncio.to_thread(each.close)
        self._generations.clear()
        await asyncio.to_thread(self._resources.close)

    def _remove_unnamed(self, current: int) -> None:
        """Remove the files of generations that have passed; a later one may be made beside."""
        for path in self._data_dir.glob("generation-*.sqlite3"):
            number = re.fullmatch(r"generation-(\d+)", path.stem)
            if number and 0 < int(number[1]) < current:
                files.remove_file(path)


class SqliteLeases(files.FileUser):
    """As `mongo.protocol.Leases`."""

    async def read(self, name: str) -> Lease | None:
        return await self._readers.run(lambda connection: _lease(connection, name))

    async def take(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        def operation(connection: sqlite3.Connection) -> Lease | None:
            if _lease(connection, name) != seen:
                return None
            token = 1 if seen is None else seen.token + 1
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, 0, TRUE)", (name, holder, token)
            )
            return Lease(name, holder, token)

        return await self._writer.run(operation)

    async def beat(self, lease: Lease) -> Lease | None:
        def operation(connection: sqlite3.Connection) -> Lease | None:
            changed = connection.execute(
                "UPDATE leases SET beat = beat + 1 WHERE name = ? AND token = ? AND held",
                (lease.name, lease.token),
            ).rowcount
            return _lease(connection, lease.name) if changed else None

        return await self._writer.run(operation)

    async def give_back(self, lease: Lease) -> None:
        await self._writer.run(
            lambda connection: connection.execute(
                "UPDATE leases SET held = FALSE WHERE name = ? AND token = ?",
                (lease.name, lease.token),
            )
        )


class SqliteMetadata(files.FileUser):
    """As `mongo.protocol.Metadata`."""

    async def get(self, name: str) -> str | None:
        return await self._readers.run(lambda connection: _get(connection, name))

    async def put(self, name: str, value: str) -> None:
        await self._writer.run(lambda connection: _put(connection, name, value))

    async def keep(self, name: str, value: str) -> str:
        def operation(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT OR IGNORE INTO metadata VALUES (?, ?)", (name, value))
            return _get(connection, name) or ""

        return await self._writer.run(operation)


async def open_sqlite_store(data_dir: Path, *, beside: bool = False) -> SqliteStore:
    """Open the store in `data_dir`, making both if need be; the caller closes it.

    What is made is private: the folder 0700, the files 0600. They hold what agents sent.

    With `beside` a service may have it open, as for a nightly run; the log has to be there already.

    Raises:
        StoreInUseError: another process (or this one) has the folder open.
        StoreDamagedError: a file is not a store of this version, or is corrupt; it was not changed.
        StoreFullError: no space to open it.
        StoreReadOnlyError: its volume or its files take no writes, without which SQLite cannot
            open it.
        StoreError: the folder or the file cannot be written.
    """
    async with AsyncExitStack() as opened:
        store = await asyncio.to_thread(_open, data_dir, is_beside=beside)
        opened.push_async_callback(store.close)
        await store.refresh()
        opened.pop_all()
        return store


def _open(data_dir: Path, *, is_beside: bool) -> SqliteStore:
    path = data_dir / FILE_NAME
    with ExitStack() as resources:
        if not is_beside:
            files.make_folder(data_dir)
            resources.callback(files.FolderLock(data_dir).release)
        elif not path.exists():
            raise StoreError(
                f"there is no store in {data_dir}: start `aftercall serve` there first, or choose "
                "another data folder (--data-dir)"
            )
        _refuse_lost_log(path)
        writer, readers = open_file(path, "log", resources, synchronous="FULL")
        return SqliteStore(data_dir, writer, readers, resources.pop_all(), is_beside=is_beside)


def _refuse_lost_log(path: Path) -> None:
    """A `StoreDamagedError` where the log is missing beside what was learned from it."""
    known = sorted(path.parent.glob("generation-*.sqlite3"))
    if known and (not path.exists() or path.stat().st_size == 0):
        raise StoreDamagedError(
            f"{path} is missing or empty, and {known[-1].name} holds what was learned from it: "
            "restore it from a backup; or, to begin with an empty store, move the files "
            f"{known[-1].name.rpartition('-')[0]}-*.sqlite3 away, or choose another data folder "
            "(--data-dir)"
        )


def _open_generation(data_dir: Path, number: int, *, is_new: bool) -> SqliteKnowledge:
    path, base = data_dir / f"generation-{number}.sqlite3", data_dir / "generation-0.sqlite3"
    if is_new:
        files.remove_file(path)
        if base.exists():
            _copy(base, path)
    with ExitStack() as resources:
        # What the base holds is gone from the log; another one falls back with its cursor.
        writer, readers = open_file(
            path, "knowledge", resources, synchronous="FULL" if number == 0 else "NORMAL"
        )
        return SqliteKnowledge(path, writer, readers, resources.pop_all())


def _copy(base: Path, path: Path) -> None:
    needed, free = int(_ROOM * base.stat().st_size), shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreFullError(
            f"{path.parent} has {free >> 20} MiB free, and {needed >> 20} MiB are needed: free "
            "space on its volume and try again"
        )
    files.make_file(path)
    try:
        with closing(sqlite3.connect(base)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise files.from_sqlite(error, path) from error


def open_file(
    path: Path, schema: str, resources: ExitStack, *, synchronous: str
) -> tuple[files.GroupCommitWriter, files.ReadPool]:
    """A file of the store, made by `SCHEMA.sql` where there is none: who writes and reads it."""
    statements = importlib.resources.files(__package__).joinpath(f"{schema}.sql").read_text()
    try:
        files.make_file(path)
        _check(path)
        connection = connect_writer(path, "FULL" if synchronous == "FULL" else "NORMAL")
        resources.callback(connection.close)
        if _pragma(connection, "user_version") != LAYOUT:
            connection.execute("BEGIN IMMEDIATE")
            if _pragma(connection, "user_version") != LAYOUT:
                for statement in statements.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise files.from_sqlite(error, path) from error
    writer = files.GroupCommitWriter(connection, path)
    resources.callback(writer.close)
    # Closed first, so that the writer's connection is the last: it folds the log into the file.
    readers = files.ReadPool(path)
    resources.callback(readers.close)
    return writer, readers


def _seen(path: Path, mode: str) -> tuple[tuple[int, int], bool]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        found = _pragma(connection, "application_id"), _pragma(connection, "user_version")
        return found, connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def _check(path: Path) -> None:
    if path.stat().st_size == 0:
        return
    try:
        found, is_empty = _seen(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        found, is_empty = _seen(path, "rw")  # undoes what a killed process had begun
    if found == (0, 0) and is_empty:
        return  # made, and killed before its first commit
    if found[0] != APPLICATION_ID:
        raise files.damaged(path, "it is another program's database")
    if found[1] != LAYOUT:
        raise StoreDamagedError(
            f"{path} has layout {found[1]}, this version of Aftercall has {LAYOUT}, and there was "
            "no release between them: it can neither be read nor imported here. Go on with the "
            "version that wrote it, or begin with another data folder (--data-dir)"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _get(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _put(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))


def _lease(connection: sqlite3.Connection, name: str) -> Lease | None:
    row = connection.execute(
        "SELECT holder, token, beat, held FROM leases WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Lease(name, row[0], row[1], row[2], bool(row[3]))
