"""The event log and the state of commands, in the store's first file."""

import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aftercall.json_values import JsonObject, canonical_json
from mongo.errors import StateConflictError
from mongo.records import EPOCH, Appended, Event, EventKind, Head, StateKind, StateRow, ToolKey
from mongo.sqlite.calls import LATEST, LatestCalls
from mongo.sqlite.files import (
    FEW,
    FileUser,
    GroupCommitWriter,
    ReadPool,
    bound_rows,
    insert_rows,
    named_tool,
)

_COLUMNS = """
position, kind, id, server, tool, session, principal, received, content_hash, schema_hash, data
"""
_LARGE = 1024
"""Bytes from which an event is kept compressed: large results shrink to a fifth, at 30 us each."""

_BY_ID = "workspace = ? AND kind = ? AND id IN (SELECT value FROM json_each(?))"
_BY_POSITION = "workspace = ? AND position IN (SELECT value FROM json_each(?))"
_SHORT = 100_000
"""Bytes of stored events that are read on the event loop: some 1 ms to unpack."""
_FEW_EVENTS = 200
"""Whose tools are read sooner than another thread has begun: 0.1 ms."""


class _Arrival(NamedTuple):
    workspace: str
    events: Sequence[Event]
    state: Sequence[StateRow]


class SqliteEvents(FileUser):
    """As `mongo.protocol.EventLog`."""

    def __init__(self, writer: GroupCommitWriter, readers: ReadPool) -> None:
        super().__init__(writer, readers)
        self._calls = LatestCalls()

    async def append(
        self, workspace: str, events: Sequence[Event], state: Sequence[StateRow] = ()
    ) -> list[Appended]:
        return await self._writer.run_together(_append_all, _Arrival(workspace, events, state))

    async def read_after(self, workspace: str, position: int, limit: int) -> list[Event]:
        query = f"""
        SELECT {_COLUMNS} FROM events WHERE workspace = ? AND position > ?
        ORDER BY position LIMIT ?
        """  # noqa: S608  # the columns are ours
        return await self._readers.run(
            lambda c: bound_rows(
                (
                    _event_of(workspace, row)
                    for row in c.execute(query, (workspace, position, limit))
                ),
                limit,
            )
        )

    async def find_events(self, workspace: str, kind: EventKind, ids: Sequence[str]) -> list[Event]:
        query = f"""
        SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN events AS e
        ON e.workspace = ? AND e.kind = ? AND e.id = wanted.value ORDER BY wanted.key
        """.replace(" id,", " e.id,")  # noqa: S608
        parameters = (json.dumps(list(ids)), workspace, kind)
        return await self._readers.run(
            lambda c: [_event_of(workspace, row) for row in c.execute(query, parameters)],
            here=len(ids) <= FEW and await self._are_short(_BY_ID, workspace, kind, parameters[0]),
        )

    async def _are_short(self, where: str, *given: str) -> bool:
        """Return whether a few events are read and unpacked sooner than a thread is there."""
        query = f"SELECT coalesce(sum(length(data)), 0) FROM events WHERE {where}"  # noqa: S608
        size = await self._readers.run(lambda c: c.execute(query, given).fetchone()[0], here=True)
        return bool(size <= _SHORT)

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
        is_short = sessions is not None and len(sessions) == 1  # their calls are few
        if after is not None and tool is not None and kind == "execution" and sessions is None:
            newest = await self.find_newest(workspace)
            if after >= newest - LATEST:
                return await self._latest_calls(tool, newest, after, before, limit)
        where, parameters = ["workspace = ?", "kind = ?"], [workspace, kind]
        if tool is not None:
            where += ["server = ?", "tool = ?"]
            parameters += named_tool(tool)
            if kind != "execution":
                where.append("kind <> 'execution'")  # else SQLite does not take `events_of_tool`
        bounds = [each for each in (before, after) if each is not None]
        if before is not None:
            where.append("position < ?")
        if after is not None:
            where.append("position > ?")
        if sessions is not None:
            where.append("session = ?")
        query = f"""
        SELECT {_COLUMNS} FROM events WHERE {" AND ".join(where)}
        ORDER BY position DESC LIMIT ?
        """  # noqa: S608

        def read(connection: sqlite3.Connection) -> list[Event]:
            found: list[Event] = []
            for session in [None] if sessions is None else sorted(sessions):
                given = bounds if session is None else [*bounds, session]
                rows = connection.execute(query, [*parameters, *given, limit])
                found += bound_rows((_event_of(workspace, row) for row in rows), limit)
            return found if sessions is None else sorted(found, key=lambda e: -e.position)

        return await self._readers.run(read, here=is_short)

    async def _latest_calls(
        self, tool: ToolKey, newest: int, after: int, before: int | None, limit: int
    ) -> list[Event]:
        """Return calls of a tool among the latest events, newest first."""
        positions = await self._readers.run(
            lambda c: self._calls.find_positions(
                c, tool, newest, after=after, before=before, limit=limit
            ),
            here=self._calls.count_unread(tool.workspace, newest) <= _FEW_EVENTS,
        )
        if not positions:
            return []
        query = f"""
        SELECT {_COLUMNS} FROM events WHERE {_BY_POSITION} ORDER BY position DESC
        """  # noqa: S608
        asked = tool.workspace, json.dumps(positions)
        return await self._readers.run(
            lambda c: bound_rows(
                (_event_of(tool.workspace, row) for row in c.execute(query, asked)), limit
            ),
            here=len(positions) <= FEW and await self._are_short(_BY_POSITION, *asked),
        )

    async def read_state(
        self,
        workspace: str,
        kind: StateKind,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[StateRow]:
        query = "SELECT key, position, data FROM state WHERE workspace = ? AND kind = ?"
        parameters: list[Any] = [workspace, kind]
        if keys is not None:
            query += " AND key IN (SELECT value FROM json_each(?))"
            parameters.append(json.dumps(list(keys)))
        query += " ORDER BY key LIMIT ?"
        parameters.append(-1 if limit is None else limit)  # below 0 it is none
        return await self._readers.run(
            lambda c: [
                StateRow(kind, key, data, position=position)
                for key, position, data in c.execute(query, parameters)
            ]
        )

    async def count_state(self, workspace: str, kind: StateKind) -> int:
        query = "SELECT count(*) FROM state WHERE workspace = ? AND kind = ?"
        return await self._readers.run(
            lambda c: int(c.execute(query, (workspace, kind)).fetchone()[0])
        )

    async def read_schemas(self, workspace: str, hashes: Collection[str]) -> dict[str, JsonObject]:
        query = """
        SELECT hash, data FROM schemas
        WHERE workspace = ? AND hash IN (SELECT value FROM json_each(?))
        """
        parameters = (workspace, json.dumps(list(hashes)))
        return await self._readers.run(
            lambda c: {name: json.loads(data) for name, data in c.execute(query, parameters)}
        )

    async def find_newest(self, workspace: str) -> int:
        query = "SELECT position FROM heads WHERE workspace = ?"
        row = await self._readers.run(
            lambda c: c.execute(query, (workspace,)).fetchone(), here=True
        )
        return row[0] if row else 0

    async def read_heads(self) -> dict[str, Head]:
        query = """
        SELECT h.workspace, h.position, c.kind, c.number, s.number
        FROM heads AS h LEFT JOIN counts AS c ON c.workspace = h.workspace AND c.kind <> 'command'
        LEFT JOIN counts AS s ON s.workspace = h.workspace AND s.kind = 'command'
        ORDER BY h.workspace
        """

        def read(connection: sqlite3.Connection) -> dict[str, Head]:
            heads: dict[str, Head] = {}
            counts: dict[str, dict[EventKind, int]] = {}
            for workspace, position, kind, number, commands in connection.execute(query):
                of_kind = counts.setdefault(workspace, {})
                if kind is not None:
                    of_kind[kind] = number
                heads[workspace] = Head(position, of_kind, commands or 0)
            return heads

        return await self._readers.run(read)

    async def erase_events(self, workspace: str, through: int, before: datetime, limit: int) -> int:
        def run_operation(connection: sqlite3.Connection) -> int:
            erased = connection.execute(
                """
                DELETE FROM events WHERE rowid IN (
                    SELECT rowid FROM events
                    WHERE workspace = ? AND position <= ? AND received < ?
                    ORDER BY position LIMIT ?
                ) RETURNING kind
                """,
                (workspace, through, _to_micros(before), limit),
            ).fetchall()
            _count_kinds(connection, workspace, (kind for (kind,) in erased), -1)
            return len(erased)

        return await self._writer.run(run_operation)

    async def forget_events(self, workspace: str, positions: Collection[int]) -> int:
        def run_operation(connection: sqlite3.Connection) -> int:
            connection.execute("PRAGMA secure_delete = ON")  # nothing is left on free pages
            erased = connection.execute(
                """
                DELETE FROM events WHERE workspace = ?
                AND position IN (SELECT value FROM json_each(?)) RETURNING kind
                """,
                (workspace, json.dumps(sorted(positions))),
            ).fetchall()
            _count_kinds(connection, workspace, (kind for (kind,) in erased), -1)
            connection.execute(
                """
                DELETE FROM schemas WHERE workspace = ?1 AND hash NOT IN (SELECT schema_hash
                FROM events WHERE workspace = ?1 AND schema_hash IS NOT NULL)
                """,
                (workspace,),
            )
            return len(erased)

        return await self._writer.run(run_operation)


def _append_all(
    connection: sqlite3.Connection, arrivals: Sequence[_Arrival]
) -> list[list[Appended]]:
    return [_append_one(connection, each) for each in arrivals]


def _append_one(connection: sqlite3.Connection, arrival: _Arrival) -> list[Appended]:
    workspace, events, state = arrival
    known = _known_events(connection, workspace, events)
    position, received = connection.execute(
        "SELECT position, received FROM heads WHERE workspace = ?", (workspace,)
    ).fetchone() or (0, 0)
    now = time.time_ns() // 1000
    verdicts: list[Appended] = []
    rows: list[tuple[Any, ...]] = []
    schemas: dict[str | None, JsonObject] = {}
    for event in events:
        key = (event.kind, event.id)
        if key in known:
            verdicts.append("duplicate" if known[key] == event.content_hash else "conflict")
            continue
        known[key] = event.content_hash
        verdicts.append("accepted")
        position += 1
        own = now if event.received_at == EPOCH else _to_micros(event.received_at)
        received = max(received, own)  # never back, whatever the clock states
        rows.append(_row_of(workspace, position, received, event))
        if event.input_schema is not None:
            schemas[event.schema_hash] = event.input_schema
    insert_rows(
        connection,
        "schemas",
        [(workspace, name, canonical_json(schema)) for name, schema in schemas.items()],
        "ON CONFLICT DO NOTHING",
    )
    if rows:
        insert_rows(connection, "events", rows)
        connection.execute(
            "INSERT INTO heads VALUES (?, ?, ?) ON CONFLICT (workspace) "
            "DO UPDATE SET position = excluded.position, received = excluded.received",
            (workspace, position, received),
        )
    # Commands next to the kinds of events.
    _count_kinds(connection, workspace, [*(row[2] for row in rows), *["command"] * bool(state)], 1)
    for row in state:
        _put_state(connection, workspace, row, position)
    return verdicts


def _known_events(
    connection: sqlite3.Connection, workspace: str, events: Sequence[Event]
) -> dict[tuple[str, str], str]:
    query = """
    SELECT e.id, e.content_hash FROM json_each(?) AS wanted CROSS JOIN events AS e
    ON e.workspace = ? AND e.kind = ? AND e.id = wanted.value
    """
    return {
        (kind, name): content_hash
        for kind in {event.kind for event in events}
        for name, content_hash in connection.execute(
            query, (json.dumps([e.id for e in events if e.kind == kind]), workspace, kind)
        )
    }


def _row_of(workspace: str, position: int, received: int, event: Event) -> tuple[Any, ...]:
    data = event.data if len(event.data) < _LARGE else zlib.compress(event.data, 1)
    return (
        workspace, position, event.kind, event.id, *named_tool(event.tool), event.session,
        event.principal, received, event.content_hash, event.schema_hash, data,
    )  # fmt: skip


def _count_kinds(
    connection: sqlite3.Connection, workspace: str, kinds: Iterable[str], by: int
) -> None:
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (workspace, kind) "
        "DO UPDATE SET number = number + excluded.number",
        [(workspace, kind, number * by) for kind, number in Counter(kinds).items()],
    )


def _put_state(
    connection: sqlite3.Connection, workspace: str, row: StateRow, position: int
) -> None:
    key = (workspace, row.kind, row.key)
    if row.expected is not None:
        found = connection.execute(
            "SELECT position FROM state WHERE workspace = ? AND kind = ? AND key = ?", key
        ).fetchone()
        if (found[0] if found else 0) != row.expected:
            raise StateConflictError(
                f"{row.kind} {row.key[:80]!r} was changed by another command meanwhile: try again"
            )
    if row.data is None:
        connection.execute("DELETE FROM state WHERE workspace = ? AND kind = ? AND key = ?", key)
    else:
        connection.execute(
            "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?)", (*key, position, row.data)
        )


def _event_of(workspace: str, row: tuple[Any, ...]) -> Event:
    (
        position, kind, name, server, tool, session, principal, received, content_hash,
        schema_hash, data,
    ) = row  # fmt: skip
    return Event(
        kind=kind,
        id=name,
        # JSON begins with a brace, what zlib makes with 0x78.
        data=zlib.decompress(data) if data[:1] == b"\x78" else data,
        tool=ToolKey(workspace, server or None, tool) if tool else None,
        session=session,
        principal=principal,
        content_hash=content_hash,
        schema_hash=schema_hash,
        workspace=workspace,
        position=position,
        received_at=datetime.fromtimestamp(received / 1e6, UTC),
    )


def _to_micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1e6)
