"""Statements about what was learned, and the indexing that learns it."""

import sqlite3
from collections.abc import Sequence

from mongo.records import DocumentRow, IndexCommit, KnowledgeRow, RepairRow, ToolKey
from mongo.sqlite import bulk, codec, suggestions

_MARK = "DELETE FROM pending WHERE position IN (SELECT value FROM json_each(?))"

_RESET = (
    "DELETE FROM knowledge",
    "DELETE FROM documents",
    "DELETE FROM repairs",
    "DELETE FROM pending",
    "DELETE FROM pending_vectors",
    "DELETE FROM pending_outcomes",
    """
    INSERT INTO pending_outcomes (position, workspace) SELECT position, workspace FROM outcomes
    ORDER BY position
    """,
    """
    INSERT INTO pending (position, workspace) SELECT position, workspace FROM executions
    ORDER BY position
    """,
)

_REPLACE_KNOWLEDGE = """
ON CONFLICT (workspace, server_name, tool_name) DO UPDATE SET data = excluded.data
"""

_GET_KNOWLEDGE = """
SELECT data FROM knowledge WHERE workspace = ? AND server_name = ? AND tool_name = ?
"""

_REPLACE_DOCUMENT = "ON CONFLICT (workspace, document_id) DO UPDATE SET data = excluded.data"

# JSON cannot carry bytes, so they travel in hexadecimal.
_GET_DOCUMENTS = """
SELECT json_group_array(json_array(d.document_id, hex(d.data)))
FROM json_each(?) AS wanted
CROSS JOIN documents AS d ON d.workspace = ? AND d.document_id = wanted.value
"""

_PENDING_VECTORS = """
SELECT json_group_array(json_array(position, workspace, document_id, hex(data))) FROM (
    SELECT p.position, d.workspace, d.document_id, d.data
    FROM pending_vectors AS p
    CROSS JOIN documents AS d ON d.workspace = p.workspace AND d.document_id = p.document_id
    ORDER BY p.position LIMIT ?
)
"""

_HAS_VECTOR = """
DELETE FROM pending_vectors WHERE (workspace, document_id) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
)
"""

_INTO_REPAIRS = """
repairs (workspace, server_name, tool_name, failed_id, mended_id, signature, data)
"""

_REPLACE_REPAIR = """
ON CONFLICT (workspace, failed_id, mended_id) DO UPDATE SET
    server_name = excluded.server_name, tool_name = excluded.tool_name,
    signature = excluded.signature, data = excluded.data
"""

_LIST_REPAIRS = """
SELECT json_group_array(json_array(position, failed_id, mended_id, signature, hex(data))) FROM (
    SELECT * FROM repairs
    WHERE workspace = ? AND server_name = ? AND tool_name = ? ORDER BY position DESC LIMIT ?
)
"""


def commit_index(connection: sqlite3.Connection, commit: IndexCommit) -> None:
    """Keep what a batch learned and take its executions and outcomes off the queue."""
    connection.execute(_MARK, (bulk.values(commit.positions),))
    suggestions.mark_learned(connection, commit.outcomes)
    bulk.insert(
        connection,
        "knowledge (workspace, server_name, tool_name, data)",
        ((*_key(row.tool), row.data) for row in commit.knowledge),
        _REPLACE_KNOWLEDGE,
    )
    bulk.insert(
        connection,
        "documents (workspace, document_id, data)",
        ((row.workspace, row.document_id, row.data) for row in commit.documents),
        _REPLACE_DOCUMENT,
    )
    bulk.insert(
        connection,
        "pending_vectors (workspace, document_id)",
        ((row.workspace, row.document_id) for row in commit.documents if row.is_new),
        "ON CONFLICT (workspace, document_id) DO NOTHING",
    )
    bulk.insert(
        connection,
        _INTO_REPAIRS,
        (
            (*_key(row.tool), row.failed_id, row.mended_id, row.signature, row.data)
            for row in commit.repairs
        ),
        _REPLACE_REPAIR,
    )


def reset_index(connection: sqlite3.Connection) -> None:
    """Forget what was learned and queue every execution and outcome again."""
    for statement in _RESET:
        connection.execute(statement)


def get_knowledge(connection: sqlite3.Connection, tool: ToolKey) -> KnowledgeRow | None:
    """What is known of one tool."""
    row = connection.execute(_GET_KNOWLEDGE, _key(tool)).fetchone()
    return None if row is None else KnowledgeRow(tool, row[0])


def get_documents(
    connection: sqlite3.Connection, workspace: str, document_ids: Sequence[str]
) -> list[DocumentRow]:
    """Those that exist, in the order of the ids."""
    distinct = dict.fromkeys(document_ids)
    found = {
        document_id: bytes.fromhex(data)
        for document_id, data in bulk.fetch(
            connection, _GET_DOCUMENTS, (bulk.values(distinct), workspace)
        )
    }
    return [
        DocumentRow(workspace, document_id, found[document_id])
        for document_id in distinct
        if document_id in found
    ]


def pending_vectors(connection: sqlite3.Connection, limit: int) -> list[DocumentRow]:
    """The oldest documents that have no vector yet, oldest first."""
    rows = bulk.fetch(connection, _PENDING_VECTORS, (max(limit, 0),))
    return [
        DocumentRow(workspace, document_id, bytes.fromhex(data), is_new=True)
        for _, workspace, document_id, data in sorted(rows)
    ]


def mark_embedded(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    """Take documents off the queue of those without a vector."""
    wanted = bulk.values((row.workspace, row.document_id) for row in documents)
    connection.execute(_HAS_VECTOR, (wanted,))


def list_repairs(connection: sqlite3.Connection, tool: ToolKey, limit: int) -> list[RepairRow]:
    """The latest of one tool, newest first."""
    rows = bulk.fetch(connection, _LIST_REPAIRS, (*_key(tool), max(limit, 0)))
    return [
        RepairRow(tool, failed_id, mended_id, signature, bytes.fromhex(data))
        for _, failed_id, mended_id, signature, data in sorted(rows, reverse=True)
    ]


def _key(tool: ToolKey) -> tuple[str, str, str]:
    return tool.workspace, codec.server_column(tool.server_name), tool.tool_name
