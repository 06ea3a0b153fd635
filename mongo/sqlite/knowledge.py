"""Statements about what was learned, and the indexing that learns it."""

import sqlite3
from collections.abc import Iterable, Sequence

from mongo.records import (
    WITHOUT_STATISTICS,
    DocumentRow,
    IndexCommit,
    KnowledgeRow,
    RemovedDocument,
    RepairRow,
    StatisticsRow,
    ToolKey,
)
from mongo.sqlite import bulk, codec, corrections, health, marks, promotions, suggestions, tools

_MARK = "DELETE FROM pending WHERE position IN (SELECT value FROM json_each(?))"

_RESET = (
    "DELETE FROM knowledge",
    "DELETE FROM documents",
    "DELETE FROM repairs",
    "DELETE FROM pending",
    "DELETE FROM pending_vectors",
    "DELETE FROM pending_outcomes",
    "DELETE FROM statistics",
    "DELETE FROM health",
    "DELETE FROM pending_marks",
    "DELETE FROM pending_corrections",
    "DELETE FROM changed_tools",
    "DELETE FROM pending_promotions",
    f"DELETE FROM facts WHERE name = '{WITHOUT_STATISTICS}'",  # noqa: S608  # a constant of ours
    # Whoever resets throws all vectors away.
    "DELETE FROM removed_documents",
    """
    INSERT INTO pending_marks (position, workspace) SELECT position, workspace FROM marks
    ORDER BY position
    """,
    """
    UPDATE corrections SET server_name = NULL, tool_name = NULL WHERE tool_name IS NOT NULL
    """,
    """
    INSERT INTO pending_corrections (position, workspace)
    SELECT position, workspace FROM corrections ORDER BY position
    """,
    """
    INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
    SELECT workspace, tool_id, server_name, tool_name FROM tools ORDER BY revision
    """,
    """
    INSERT INTO pending_promotions (position, workspace)
    SELECT position, workspace FROM promotion_history WHERE data IS NOT NULL ORDER BY position
    """,
    """
    INSERT INTO pending_outcomes (position, workspace) SELECT position, workspace FROM outcomes
    ORDER BY position
    """,
    """
    INSERT INTO pending (position, workspace) SELECT position, workspace FROM executions
    ORDER BY position
    """,
)

_REPLACE = """
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

_HAS_VECTOR = "DELETE FROM pending_vectors WHERE position IN (SELECT value FROM json_each(?))"

_DELETE_DOCUMENTS = """
DELETE FROM {table} WHERE (workspace, document_id) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
)
"""

_REMOVED = """
SELECT position, workspace, document_id FROM removed_documents ORDER BY position LIMIT ?
"""

_HAS_NO_VECTOR = "DELETE FROM removed_documents WHERE position IN (SELECT value FROM json_each(?))"

# With a place each, since JSON groups come in any order.
_GET_STATISTICS = """
SELECT json_group_array(json_array(wanted.key, hex(s.data)))
FROM json_each(?) AS wanted
CROSS JOIN statistics AS s
    ON s.workspace = json_extract(wanted.value, '$[0]')
    AND s.server_name = json_extract(wanted.value, '$[1]')
    AND s.tool_name = json_extract(wanted.value, '$[2]')
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
    """Keep what a batch learned and take what it learned from off the queues."""
    connection.execute(_MARK, (bulk.values(commit.positions),))
    suggestions.mark_learned(connection, commit.outcomes)
    marks.mark_learned(connection, commit.marks)
    corrections.mark_learned(connection, commit.corrections)
    tools.mark_learned(connection, commit.changed_tools)
    promotions.mark_learned(connection, commit.promotions)
    for table, rows in (("knowledge", commit.knowledge), ("statistics", commit.statistics)):
        bulk.insert(
            connection,
            f"{table} (workspace, server_name, tool_name, data)",
            ((*_key(row.tool), row.data) for row in rows),
            _REPLACE,
        )
    health.put(connection, commit.health)
    _remove_documents(connection, commit.removed)
    _keep_documents(connection, commit.documents)
    bulk.insert(
        connection,
        _INTO_REPAIRS,
        (
            (*_key(row.tool), row.failed_id, row.mended_id, row.signature, row.data)
            for row in commit.repairs
        ),
        _REPLACE_REPAIR,
    )


def _remove_documents(connection: sqlite3.Connection, removed: Sequence[tuple[str, str]]) -> None:
    if not removed:
        return
    _delete_documents(connection, ("documents", "pending_vectors"), removed)
    bulk.insert(
        connection,
        "removed_documents (workspace, document_id)",
        dict.fromkeys(removed),
        "ON CONFLICT (workspace, document_id) DO NOTHING",
    )


def _keep_documents(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
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
        _delete_documents(connection, ("pending_vectors", "removed_documents"), new)
        bulk.insert(connection, "pending_vectors (workspace, document_id)", new)


def _delete_documents(
    connection: sqlite3.Connection, tables: Iterable[str], documents: Iterable[tuple[str, str]]
) -> None:
    wanted = bulk.values(documents)
    for table in tables:
        connection.execute(_DELETE_DOCUMENTS.format(table=table), (wanted,))


def reset_index(connection: sqlite3.Connection) -> None:
    """Forget what was learned and queue all that it was learned from again."""
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


def get_statistics(connection: sqlite3.Connection, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
    """Those of which something is known, in the order of the tools; each once."""
    distinct = list(dict.fromkeys(tools))
    wanted = bulk.values(_key(tool) for tool in distinct)
    rows = sorted(bulk.fetch(connection, _GET_STATISTICS, (wanted,)))
    return [StatisticsRow(distinct[place], bytes.fromhex(data)) for place, data in rows]


def pending_vectors(connection: sqlite3.Connection, limit: int) -> list[DocumentRow]:
    """The oldest documents that have no vector yet, oldest first."""
    rows = bulk.fetch(connection, _PENDING_VECTORS, (max(limit, 0),))
    return [
        DocumentRow(workspace, document_id, bytes.fromhex(data), is_new=True, position=position)
        for position, workspace, document_id, data in sorted(rows)
    ]


def mark_embedded(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    """Take documents off the queue of those without a vector."""
    connection.execute(_HAS_VECTOR, (bulk.values(row.position for row in documents),))


def removed_documents(connection: sqlite3.Connection, limit: int) -> list[RemovedDocument]:
    """The oldest that are gone and may still have a vector, oldest first."""
    rows = connection.execute(_REMOVED, (max(limit, 0),)).fetchall()
    return [RemovedDocument(*row) for row in rows]


def mark_removed(connection: sqlite3.Connection, documents: Sequence[RemovedDocument]) -> None:
    """Take documents off the queue of those whose vectors are to go."""
    connection.execute(_HAS_NO_VECTOR, (bulk.values(each.position for each in documents),))


def list_repairs(connection: sqlite3.Connection, tool: ToolKey, limit: int) -> list[RepairRow]:
    """The latest of one tool, newest first."""
    rows = bulk.fetch(connection, _LIST_REPAIRS, (*_key(tool), max(limit, 0)))
    return [
        RepairRow(tool, failed_id, mended_id, signature, bytes.fromhex(data))
        for _, failed_id, mended_id, signature, data in sorted(rows, reverse=True)
    ]


def _key(tool: ToolKey) -> tuple[str, str, str]:
    return tool.workspace, codec.server_column(tool.server_name), tool.tool_name
