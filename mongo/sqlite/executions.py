"""Statements about executions and their input schemas."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, islice
from typing import TypeAlias

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.models import Execution
from mongo import codec
from mongo.records import Appended, NewExecution, StoredExecution, ToolKey
from mongo.sqlite import bulk
from mongo.sqlite.readers import snapshot

MAX_PENDING_BYTES = 32 << 20
"""About how much JSON one `pending` or `scan` reads, so that huge results fit in memory."""

Arrival: TypeAlias = tuple[str, NewExecution]
"""A workspace, and an execution to be stored in it."""

_HELD = """
SELECT json_group_array(json_array(e.workspace, e.execution_id, e.content_hash))
FROM json_each(?) AS wanted
CROSS JOIN executions AS e
    ON e.workspace = json_extract(wanted.value, '$[0]')
    AND e.execution_id = json_extract(wanted.value, '$[1]')
"""

_INTO_EXECUTIONS = """
executions (
    workspace, execution_id, server_name, tool_name, session_id, outcome,
    timestamp, received_at, content_hash, schema_hash, size, data, stands_for
)
"""

_ONE = """
SELECT e.data, s.data FROM executions AS e
LEFT JOIN schemas AS s ON s.workspace = e.workspace AND s.schema_hash = e.schema_hash
WHERE e.workspace = ? AND e.execution_id = ?
"""

_SEVERAL = """
SELECT json_group_array(
    json_array(e.position, e.workspace, e.data, e.schema_hash, e.received_at, e.stands_for)
)
FROM json_each(?) AS wanted
CROSS JOIN executions AS e ON e.workspace = ? AND e.execution_id = wanted.value
WHERE ? OR e.position NOT IN (SELECT position FROM pending)
"""

_SESSIONS = """
SELECT json_group_array(
    json_array(e.position, e.workspace, e.data, e.schema_hash, e.received_at, e.stands_for)
)
FROM json_each(?) AS wanted
CROSS JOIN executions AS e ON e.id IN (
    SELECT id FROM executions
    WHERE workspace = json_extract(wanted.value, '$[0]')
    AND session_id = json_extract(wanted.value, '$[1]')
    AND server_name = json_extract(wanted.value, '$[2]')
    AND tool_name = json_extract(wanted.value, '$[3]')
    AND position < ?
    AND (? OR position NOT IN (SELECT position FROM pending))
    ORDER BY position DESC LIMIT ?
)
"""

_PENDING_SIZES = """
SELECT json_group_array(json_array(position, size)) FROM (
    SELECT p.position, e.size FROM pending AS p
    CROSS JOIN executions AS e ON e.workspace = p.workspace AND e.position = p.position
    WHERE p.workspace = ? ORDER BY p.position LIMIT ?
)
"""

_SCAN_SIZES = """
SELECT json_group_array(json_array(position, size)) FROM (
    SELECT position, size FROM executions
    WHERE workspace = ? AND position > ? AND received_at < ?
    ORDER BY position LIMIT ?
)
"""

_AT_POSITIONS = """
SELECT json_group_array(
    json_array(e.position, e.workspace, e.data, e.schema_hash, e.received_at, e.stands_for)
)
FROM json_each(?) AS wanted
CROSS JOIN executions AS e ON e.workspace = ? AND e.position = wanted.value
"""

_SCHEMA = "SELECT data FROM schemas WHERE workspace = ? AND schema_hash = ?"


def judge(
    held: Mapping[tuple[str, str], str], arrivals: Iterable[Arrival]
) -> tuple[list[Appended], list[Arrival]]:
    """One verdict per arrival, in order, and those that are to be inserted.

    `held` is the content hash by workspace and execution id of what the store has.
    """
    known = dict(held)
    verdicts: list[Appended] = []
    fresh: list[Arrival] = []
    for workspace, new in arrivals:
        key = (workspace, new.execution.execution_id)
        if key not in known:
            known[key] = new.content_hash
            fresh.append((workspace, new))
            verdicts.append("accepted")
        elif known[key] == new.content_hash:
            verdicts.append("duplicate")
        else:
            verdicts.append("conflict")
    return verdicts, fresh


def append(
    connection: sqlite3.Connection, calls: Sequence[Sequence[Arrival]]
) -> list[list[Appended]]:
    """Insert what is new; the triggers queue and count it. Verdicts per call."""
    arrivals = [arrival for call in calls for arrival in call]
    verdicts, fresh = judge(_held(connection, arrivals), arrivals)
    received_at = time.time_ns() // 1000
    bulk.insert(
        connection,
        _INTO_EXECUTIONS,
        (_row(workspace, new, received_at) for workspace, new in fresh),
    )
    save_schemas(
        connection,
        ((workspace, new.schema_hash, new.input_schema) for workspace, new in fresh),
    )
    remaining = iter(verdicts)
    return [list(islice(remaining, len(call))) for call in calls]


def save_schemas(
    connection: sqlite3.Connection, schemas: Iterable[tuple[str, str | None, JsonObject | None]]
) -> None:
    """Keep input schemas under workspace and hash; without both there is nothing to keep."""
    distinct = {
        (workspace, schema_hash): schema
        for workspace, schema_hash, schema in schemas
        if schema_hash is not None and schema is not None
    }
    bulk.insert(
        connection,
        "schemas (workspace, schema_hash, data)",
        (
            # Not canonical: the order of properties is the tool maker's, and shown to people.
            (*key, json.dumps(schema, separators=(",", ":"), ensure_ascii=False))
            for key, schema in distinct.items()
        ),
        on_conflict="ON CONFLICT (workspace, schema_hash) DO NOTHING",
    )


def get(connection: sqlite3.Connection, workspace: str, execution_id: str) -> Execution | None:
    """One execution with its input schema."""
    row = connection.execute(_ONE, (workspace, execution_id)).fetchone()
    if row is None:
        return None
    data, schema = row
    execution = codec.parse(Execution, data)
    if schema is None:
        return execution
    return execution.model_copy(update={"input_schema": json.loads(schema)})


def get_several(
    connection: sqlite3.Connection,
    workspace: str,
    execution_ids: Sequence[str],
    *,
    learned: bool,
) -> list[StoredExecution]:
    """Those that exist, in the order of the ids; with `learned`, that were learned from."""
    distinct = dict.fromkeys(execution_ids)
    found = {
        stored.execution.execution_id: stored
        for stored in _fetch(connection, _SEVERAL, (bulk.values(distinct), workspace, not learned))
    }
    return [found[execution_id] for execution_id in distinct if execution_id in found]


def session_calls(
    connection: sqlite3.Connection,
    sessions: Sequence[tuple[ToolKey, str]],
    limit: int,
    before: int,
    *,
    learned: bool,
) -> list[StoredExecution]:
    """The latest `limit` below position `before`, by tool and session, oldest arrival first."""
    wanted = [
        (tool.workspace, session_id, codec.server_column(tool.server_name), tool.tool_name)
        for tool, session_id in dict.fromkeys(sessions)
    ]
    return _fetch(connection, _SESSIONS, (bulk.values(wanted), before, not learned, max(limit, 0)))


def pending(connection: sqlite3.Connection, workspace: str, limit: int) -> list[StoredExecution]:
    """The oldest that are not indexed: at most `limit`, and about `MAX_PENDING_BYTES`."""
    sizes = bulk.fetch(connection, _PENDING_SIZES, (workspace, max(limit, 0)))
    return at_positions(connection, workspace, _that_fit(sizes))


def scan(
    connection: sqlite3.Connection,
    workspace: str,
    after: int,
    limit: int,
    before: datetime | None,
) -> list[StoredExecution]:
    """Those behind a position that arrived before a moment, bounded as `pending` is."""
    until = MAX_INTEGER if before is None else codec.to_microseconds(before)
    with snapshot(connection):
        sizes = bulk.fetch(connection, _SCAN_SIZES, (workspace, after, until, max(limit, 0)))
        return at_positions(connection, workspace, _that_fit(sizes))


def at_positions(
    connection: sqlite3.Connection, workspace: str, positions: Iterable[int]
) -> list[StoredExecution]:
    """Those at these positions of a workspace, oldest arrival first."""
    return _fetch(connection, _AT_POSITIONS, (bulk.values(positions), workspace))


def get_schema(
    connection: sqlite3.Connection, workspace: str, schema_hash: str
) -> JsonObject | None:
    """An input schema by its hash."""
    row = connection.execute(_SCHEMA, (workspace, schema_hash)).fetchone()
    if row is None:
        return None
    schema: JsonObject = json.loads(row[0])
    return schema


def _that_fit(sizes: Iterable[list[int]]) -> list[int]:
    """Of positions with their sizes the first ones, one at least, up to the bound of bytes."""
    ordered = sorted(sizes)
    read_before = accumulate((size for _, size in ordered), initial=0)
    return [
        position
        for (position, _), total in zip(ordered, read_before, strict=False)
        if total < MAX_PENDING_BYTES
    ]


def _held(
    connection: sqlite3.Connection, arrivals: Iterable[Arrival]
) -> dict[tuple[str, str], str]:
    wanted = bulk.values((workspace, new.execution.execution_id) for workspace, new in arrivals)
    return {
        (workspace, execution_id): content_hash
        for workspace, execution_id, content_hash in bulk.fetch(connection, _HELD, (wanted,))
    }


def _fetch(
    connection: sqlite3.Connection, query: str, parameters: tuple[bulk.SqlValue, ...]
) -> list[StoredExecution]:
    """Oldest arrival first."""
    return [_stored(*row) for row in sorted(bulk.fetch(connection, query, parameters))]


def _row(workspace: str, new: NewExecution, received_at: int) -> tuple[bulk.SqlValue, ...]:
    execution = new.execution
    data = execution.model_dump_json()
    return (
        workspace,
        execution.execution_id,
        codec.server_column(execution.server_name),
        execution.tool_name,
        execution.session_id,
        execution.outcome,
        codec.to_microseconds(execution.timestamp),
        received_at,
        new.content_hash,
        new.schema_hash,
        len(data),
        data,
        new.stands_for,
    )


def _stored(
    position: int,
    workspace: str,
    data: str,
    schema_hash: str | None,
    received_at: int,
    stands_for: int,
) -> StoredExecution:
    return StoredExecution(
        position=position,
        workspace=workspace,
        execution=codec.parse(Execution, data),
        schema_hash=schema_hash,
        received_at=codec.from_microseconds(received_at),
        stands_for=stands_for,
    )
