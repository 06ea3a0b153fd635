"""Statements that write a store out record by record, and put such records back.

A restored row keeps its place in a column of its own (`kept_position`), since another workspace of
this store may have given it out already; the triggers leave such rows alone.
"""

import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Execution, Tool
from mongo import codec
from mongo.archive import KINDS, LOCAL_FACTS, ArchiveKind
from mongo.errors import StoreError
from mongo.records import Change, DocumentRow
from mongo.sqlite import bulk, changes, vectors
from mongo.sqlite.upkeep_tables import LOG_QUEUES
from mongo.upkeep import ArchiveRow

MAX_SCAN_BYTES = 16 << 20
"""About how many bytes of `data` one `scan` reads."""

_BY_NAME = {kind.name: kind for kind in KINDS}

_QUEUES = {table: queue for queue, table in LOG_QUEUES.items()}

_PLACES = ("position", "revision")

_SCAN = """
SELECT json_group_array(json_array({columns})) FROM (
    SELECT {key}, sum(size) OVER (
        ORDER BY {key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS read_before
    FROM (
        SELECT {key}, {size} AS size FROM {table} AS t WHERE {condition} ORDER BY {key} LIMIT ?
    )
) AS found
CROSS JOIN {table} AS t ON {same}
{tied}
WHERE coalesce(found.read_before, 0) < ?
"""

_IS_QUEUED = """
EXISTS (SELECT 1 FROM {queue} AS q WHERE q.workspace = t.workspace AND q.position = t.position)
"""

_TIED = """
LEFT JOIN correction_tools AS tied
ON tied.workspace = t.workspace AND tied.position = t.position
"""

_LAST_ID = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)"

_RAISE = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"

_QUEUE_NEW = """
INSERT INTO {queue} (workspace, position)
SELECT t.workspace, t.position FROM json_each(?) AS wanted
CROSS JOIN {table} AS t
    ON t.workspace = json_extract(wanted.value, '$[0]')
    AND t.position = json_extract(wanted.value, '$[1]')
WHERE t.id > ?
ON CONFLICT (workspace, position) DO NOTHING
"""

_TIE_NEW = """
INSERT INTO correction_tools (workspace, position, server_name, tool_name)
SELECT
    c.workspace, c.position,
    json_extract(tied.value, '$[2]'), json_extract(tied.value, '$[3]')
FROM json_each(?) AS tied
CROSS JOIN corrections AS c
    ON c.workspace = json_extract(tied.value, '$[0]')
    AND c.position = json_extract(tied.value, '$[1]')
WHERE c.id > ?
ON CONFLICT (workspace, position) DO NOTHING
"""

_KNOWN_DOCUMENTS = """
SELECT json_group_array(json_array(d.workspace, d.document_id))
FROM json_each(?) AS wanted
CROSS JOIN documents AS d
    ON d.workspace = json_extract(wanted.value, '$[0]')
    AND d.document_id = json_extract(wanted.value, '$[1]')
"""


def scan(
    connection: sqlite3.Connection, kind: str, after: JsonObject | None, limit: int
) -> list[ArchiveRow]:
    """Records of a kind in the order of their keys: at most `limit`, about `MAX_SCAN_BYTES`."""
    wanted = _kind(kind)
    behind = () if after is None else tuple(_bound(after[name]) for name in wanted.key)
    query = _scan(kind, is_first=after is None)
    rows = bulk.fetch(connection, query, (*behind, max(limit, 0), MAX_SCAN_BYTES))
    names = list(wanted.fields)
    places = [names.index(name) for name in wanted.key]
    rows.sort(key=lambda row: [row[place] for place in places])
    return [
        ArchiveRow(
            kind, {name: _told(wanted, name, value) for name, value in zip(names, row, strict=True)}
        )
        for row in rows
    ]


def restore(connection: sqlite3.Connection, rows: Sequence[ArchiveRow], *, is_told: bool) -> int:
    """Put records of one kind back; how many were new. `is_told`: to other processes."""
    kinds = {row.kind for row in rows}
    if len(kinds) > 1:
        raise StoreError(f"records of one kind are restored at once, not of {sorted(kinds)}")
    kind = _kind(kinds.pop())
    records = [
        {name: _read(kind, name, row.fields.get(name)) for name in kind.fields} for row in rows
    ]
    if kind.name == "documents":
        new = _restore_documents(connection, records)
    elif set(kind.fields) & set(_PLACES):
        new = _restore_placed(connection, kind, records)
    else:
        new = _restore_plain(connection, kind, records)
    if new and is_told:
        workspaces = dict.fromkeys(str(record.get("workspace", "")) for record in records)
        names = [str(record["name"]) for record in records] if kind.name == "facts" else []
        everything = not names
        changes.tell(
            connection,
            (Change(each, everything=everything, facts=tuple(names)) for each in workspaces),
        )
    return new


Record = dict[str, bulk.SqlValue]


def _restore_plain(
    connection: sqlite3.Connection, kind: ArchiveKind, records: Sequence[Record]
) -> int:
    kept = (r for r in records if kind.name != "facts" or r["name"] not in LOCAL_FACTS)
    return _insert(connection, kind.name, list(kind.fields), kept)


def _restore_placed(
    connection: sqlite3.Connection, kind: ArchiveKind, records: Sequence[Record]
) -> int:
    table = kind.name
    (place,) = set(kind.fields) & set(_PLACES)
    (last,) = connection.execute(_LAST_ID, (table,)).fetchone()
    columns = {name: name for name in kind.fields if name != "queued"}
    columns[place] = f"kept_{place}"
    if table == "corrections":
        del columns["server_name"], columns["tool_name"]
    further = [_further(table, record) for record in records]
    new = _insert(
        connection,
        table,
        [*columns.values(), *(further[0] if further else ())],
        (
            {columns[name]: record[name] for name in columns} | more
            for record, more in zip(records, further, strict=True)
        ),
    )
    highest = max((int(record[place] or 0) for record in records), default=0)
    connection.execute(_RAISE, (highest, table))
    if "queued" in kind.fields:
        queued = bulk.values(
            (record["workspace"], record[place]) for record in records if record["queued"]
        )
        statement = _QUEUE_NEW.format(queue=_QUEUES[table], table=table)
        connection.execute(statement, (queued, last))
    if table == "corrections":
        tied = bulk.values(
            tuple(record[name] for name in ("workspace", place, "server_name", "tool_name"))
            for record in records
            if record["tool_name"] is not None
        )
        connection.execute(_TIE_NEW, (tied, last))
    return new


def _restore_documents(connection: sqlite3.Connection, records: Sequence[Record]) -> int:
    """Those that are new wait for their vectors."""
    given = {
        (str(record["workspace"]), str(record["document_id"])): record["data"] for record in records
    }
    known = {(w, d) for w, d in bulk.fetch(connection, _KNOWN_DOCUMENTS, (bulk.values(given),))}
    new = [
        DocumentRow(workspace, document_id, data, is_new=True)
        for (workspace, document_id), data in given.items()
        if (workspace, document_id) not in known and isinstance(data, bytes)
    ]
    vectors.keep_documents(connection, new)
    return len(new)


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    records: Iterable[Record],
) -> int:
    return bulk.insert(
        connection,
        f"{table} ({', '.join(columns)})",
        (tuple(record[name] for name in columns) for record in records),
        "ON CONFLICT DO NOTHING",
    )


def _further(table: str, record: Record) -> Record:
    """Columns that a table has for its queries, from the record's JSON."""
    data = str(record.get("data"))
    if table == "executions":
        execution = codec.parse(Execution, data)
        return {
            "server_name": codec.server_column(execution.server_name),
            "tool_name": execution.tool_name,
            "session_id": execution.session_id,
            "outcome": execution.outcome,
            "timestamp": codec.to_microseconds(execution.timestamp),
            "size": len(data),
        }
    if table == "tools":
        tool = codec.parse(Tool, data)
        return {
            "server_name": codec.server_column(tool.server_name),
            "tool_name": tool.name,
        }
    return {}


@cache
def _scan(name: str, *, is_first: bool) -> str:
    kind = _kind(name)
    key = ", ".join(kind.key)
    condition = f"name NOT IN ({', '.join(map(repr, LOCAL_FACTS))})" if name == "facts" else "TRUE"
    if not is_first:
        condition += f" AND ({key}) > ({', '.join('?' * len(kind.key))})"
    if name == "executions":
        size = "t.size"
    elif "data" in kind.fields:
        size = "coalesce(length(t.data), 0)"
    else:
        size = "0"
    return _SCAN.format(
        columns=", ".join(_column(kind, field) for field in kind.fields),
        key=key,
        size=size,
        table=name,
        condition=condition,
        same=" AND ".join(f"t.{field} = found.{field}" for field in kind.key),
        tied=_TIED if name == "corrections" else "",
    )


def _column(kind: ArchiveKind, field: str) -> str:
    if field == "queued":
        return _IS_QUEUED.format(queue=_QUEUES[kind.name])
    if kind.name == "corrections" and field in ("server_name", "tool_name"):
        return f"tied.{field}"
    return f"hex(t.{field})" if kind.fields[field] == "bytes" else f"t.{field}"


def _kind(name: str) -> ArchiveKind:
    kind = _BY_NAME.get(name)
    if kind is None:
        raise StoreError(f"an archive has no records of the kind {name!r}, only {list(_BY_NAME)}")
    return kind


def _bound(value: JsonValue) -> bulk.SqlValue:
    return value if isinstance(value, str | int | float) else None


def _told(kind: ArchiveKind, name: str, value: Any) -> JsonValue:
    """A value as archives carry it, from what the query gives."""
    if value is None:
        return None
    if kind.fields[name] == "bytes":
        return b64encode(bytes.fromhex(value)).decode()
    if kind.fields[name] == "flag":
        return bool(value)
    told: JsonValue = value
    return told


def _read(kind: ArchiveKind, name: str, value: JsonValue) -> bulk.SqlValue:
    """The reverse of `_told`, as the tables have it."""
    if kind.fields[name] == "bytes" and isinstance(value, str):
        return b64decode(value)
    return _bound(value)
