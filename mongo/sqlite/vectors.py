"""Statements about documents and the two queues of their vectors: to be made, and to be removed."""

import sqlite3
from collections.abc import Iterable, Sequence

from mongo.records import DocumentRow, RemovedDocument
from mongo.sqlite import bulk

_REPLACE_DOCUMENT = "ON CONFLICT (workspace, document_id) DO UPDATE SET data = excluded.data"

_DELETE_DOCUMENTS = """
DELETE FROM {table} WHERE (workspace, document_id) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
)
"""

# JSON cannot carry bytes, so they travel in hexadecimal.
_PENDING = """
SELECT json_group_array(json_array(position, workspace, document_id, hex(data))) FROM (
    SELECT p.position, d.workspace, d.document_id, d.data
    FROM pending_vectors AS p
    CROSS JOIN documents AS d ON d.workspace = p.workspace AND d.document_id = p.document_id
    WHERE p.workspace = ? ORDER BY p.position LIMIT ?
)
"""

_REMOVED = """
SELECT json_group_array(json_array(position, workspace, document_id)) FROM (
    SELECT * FROM removed_documents WHERE workspace = ? ORDER BY position LIMIT ?
)
"""

# By both: a rebuild may have queued another document where an earlier one waited.
_DONE = """
DELETE FROM {table} WHERE (position, workspace, document_id) IN (
    SELECT
        json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
    FROM json_each(?)
)
"""
_HAS_VECTOR = _DONE.format(table="pending_vectors")
_HAS_NO_VECTOR = _DONE.format(table="removed_documents")


def keep_documents(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    """Keep documents in the place of those of the same id; queue those that are new."""
    bulk.insert(
        connection,
        "documents (workspace, document_id, data)",
        ((row.workspace, row.document_id, row.data) for row in documents),
        _REPLACE_DOCUMENT,
    )
    new = {(row.workspace, row.document_id): None for row in documents if row.is_new}
    if new:
        # One that waits already goes to the end: whoever embeds its old text now must not believe
        # that the new one is done.
        _delete(connection, ("pending_vectors", "removed_documents"), new)
        bulk.insert(connection, "pending_vectors (workspace, document_id)", new)


def remove_documents(connection: sqlite3.Connection, removed: Sequence[tuple[str, str]]) -> None:
    """Forget documents (workspace, id), and queue their vectors to be removed."""
    if not removed:
        return
    _delete(connection, ("documents", "pending_vectors"), removed)
    bulk.insert(
        connection,
        "removed_documents (workspace, document_id)",
        dict.fromkeys(removed),
        "ON CONFLICT (workspace, document_id) DO NOTHING",
    )


def pending(connection: sqlite3.Connection, workspace: str, limit: int) -> list[DocumentRow]:
    """The oldest documents that have no vector yet, oldest first."""
    rows = bulk.fetch(connection, _PENDING, (workspace, max(limit, 0)))
    return [
        DocumentRow(workspace, document_id, bytes.fromhex(data), is_new=True, position=position)
        for position, workspace, document_id, data in sorted(rows)
    ]


def mark_embedded(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    """Take documents off the queue of those without a vector."""
    connection.execute(_HAS_VECTOR, (_places(documents),))


def removed(connection: sqlite3.Connection, workspace: str, limit: int) -> list[RemovedDocument]:
    """The oldest that are gone and may still have a vector, oldest first."""
    rows = bulk.fetch(connection, _REMOVED, (workspace, max(limit, 0)))
    return [RemovedDocument(*row) for row in sorted(rows)]


def mark_removed(connection: sqlite3.Connection, documents: Sequence[RemovedDocument]) -> None:
    """Take documents off the queue of those whose vectors are to go."""
    connection.execute(_HAS_NO_VECTOR, (_places(documents),))


def _places(documents: Iterable[DocumentRow | RemovedDocument]) -> str:
    return bulk.values((each.position, each.workspace, each.document_id) for each in documents)


def _delete(
    connection: sqlite3.Connection, tables: Iterable[str], documents: Iterable[tuple[str, str]]
) -> None:
    wanted = bulk.values(documents)
    for table in tables:
        connection.execute(_DELETE_DOCUMENTS.format(table=table), (wanted,))
