"""Statements that read what was learned."""

import sqlite3
from collections.abc import Sequence

from mongo import codec
from mongo.records import DocumentRow, KnowledgeRow, RepairRow, StatisticsRow, ToolKey
from mongo.sqlite import bulk

_GET_KNOWLEDGE = """
SELECT data FROM knowledge WHERE workspace = ? AND server_name = ? AND tool_name = ?
"""

# JSON cannot carry bytes, so they travel in hexadecimal.
_GET_DOCUMENTS = """
SELECT json_group_array(json_array(d.document_id, hex(d.data)))
FROM json_each(?) AS wanted
CROSS JOIN documents AS d ON d.workspace = ? AND d.document_id = wanted.value
"""

MAX_SCAN_BYTES = 16 << 20
"""About how many bytes of documents one `scan_documents` reads."""

_SCAN_DOCUMENTS = """
SELECT json_group_array(json_array(d.document_id, hex(d.data))) FROM (
    SELECT id, sum(size) OVER (
        ORDER BY document_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS read_before
    FROM (
        SELECT rowid AS id, document_id, length(data) AS size FROM documents
        WHERE workspace = ? AND document_id > ? ORDER BY document_id LIMIT ?
    )
) AS found
CROSS JOIN documents AS d ON d.rowid = found.id
WHERE coalesce(found.read_before, 0) < ?
"""

# With a place each, since JSON groups come in any order.
_GET_STATISTICS = """
SELECT json_group_array(json_array(wanted.key, hex(s.data)))
FROM json_each(?) AS wanted
CROSS JOIN statistics AS s
    ON s.workspace = json_extract(wanted.value, '$[0]')
    AND s.server_name = json_extract(wanted.value, '$[1]')
    AND s.tool_name = json_extract(wanted.value, '$[2]')
"""

_LIST_REPAIRS = """
SELECT json_group_array(json_array(position, failed_id, mended_id, signature, hex(data))) FROM (
    SELECT * FROM repairs
    WHERE workspace = ? AND server_name = ? AND tool_name = ? ORDER BY position DESC LIMIT ?
)
"""


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


def scan_documents(
    connection: sqlite3.Connection, workspace: str, after: str, limit: int
) -> list[DocumentRow]:
    """Those of ids above `after`, in that order: at most `limit`, and about `MAX_SCAN_BYTES`."""
    bounds = (workspace, after, max(limit, 0), MAX_SCAN_BYTES)
    rows = bulk.fetch(connection, _SCAN_DOCUMENTS, bounds)
    return [
        DocumentRow(workspace, document_id, bytes.fromhex(data))
        for document_id, data in sorted(rows)
    ]


def get_statistics(connection: sqlite3.Connection, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
    """Those of which something is known, in the order of the tools; each once."""
    distinct = list(dict.fromkeys(tools))
    wanted = bulk.values(_key(tool) for tool in distinct)
    rows = sorted(bulk.fetch(connection, _GET_STATISTICS, (wanted,)))
    return [StatisticsRow(distinct[place], bytes.fromhex(data)) for place, data in rows]


def list_repairs(connection: sqlite3.Connection, tool: ToolKey, limit: int) -> list[RepairRow]:
    """The latest of one tool, newest first."""
    rows = bulk.fetch(connection, _LIST_REPAIRS, (*_key(tool), max(limit, 0)))
    return [
        RepairRow(tool, failed_id, mended_id, signature, bytes.fromhex(data))
        for _, failed_id, mended_id, signature, data in sorted(rows, reverse=True)
    ]


def _key(tool: ToolKey) -> tuple[str, str, str]:
    return tool.workspace, codec.server_column(tool.server_name), tool.tool_name
