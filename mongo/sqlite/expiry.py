"""Statements that let old executions go, and the schemas that only they named."""

import sqlite3
from dataclasses import dataclass

from mongo.sqlite import bulk
from mongo.sqlite.readers import snapshot

AT_ONCE = 500
"""Executions deleted in one transaction: it holds up appends for some 20 ms."""

_LOOKED_AT_ONCE = 20_000
"""Executions that are asked for their schemas at once."""

# Positions and arrivals grow together, but for a clock that was put back. So the search ends at
# the first that is young enough, instead of looking at all that are.
_OLD = """
SELECT json_group_array(e.id) FROM (
    SELECT e.id FROM executions AS e
    WHERE e.workspace = :workspace AND e.position < coalesce(
        (
            SELECT position FROM executions
            WHERE workspace = :workspace AND received_at >= :before
            ORDER BY position LIMIT 1
        ),
        9223372036854775807
    )
    AND NOT EXISTS (
        SELECT 1 FROM pending AS p WHERE p.workspace = e.workspace AND p.position = e.position
    )
    ORDER BY e.position LIMIT :limit
) AS e
"""

_DOUBT = """
INSERT INTO doubtful_schemas (workspace, schema_hash)
SELECT DISTINCT workspace, schema_hash FROM executions
WHERE id IN (SELECT value FROM json_each(?)) AND schema_hash IS NOT NULL
ON CONFLICT (workspace, schema_hash) DO NOTHING
"""

_DELETE = "DELETE FROM executions WHERE id IN (SELECT value FROM json_each(?))"

_DOUBTFUL = "SELECT schema_hash FROM doubtful_schemas WHERE workspace = ?"

_LATEST = "SELECT coalesce(max(position), 0) FROM executions WHERE workspace = ?"

_NAMED = """
SELECT DISTINCT schema_hash, min(position) OVER () FROM (
    SELECT schema_hash, position FROM executions WHERE workspace = ? AND position <= ?
    ORDER BY position DESC LIMIT ?
)
"""

_FORGET = """
DELETE FROM schemas WHERE workspace = :workspace
AND schema_hash IN (SELECT value FROM json_each(:unnamed))
AND NOT EXISTS (
    SELECT 1 FROM executions AS e
    WHERE e.workspace = :workspace AND e.position > :looked AND e.schema_hash = schemas.schema_hash
)
AND NOT EXISTS (
    SELECT 1 FROM tools AS t
    WHERE t.workspace = :workspace AND t.data ->> '$.schemaHash' = schemas.schema_hash
)
"""

_SETTLED = """
DELETE FROM doubtful_schemas
WHERE workspace = ? AND schema_hash IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class DoubtfulSchemas:
    """Schemas that were looked for, those that no execution names, and how far was looked."""

    looked_for: list[str]
    unnamed: list[str]
    up_to: int


def expire(connection: sqlite3.Connection, workspace: str, before: int, limit: int) -> int:
    """Delete the oldest that arrived before a moment and were learned from; how many."""
    bounds = {"workspace": workspace, "before": before, "limit": min(limit, AT_ONCE)}
    (ids,) = connection.execute(_OLD, bounds).fetchone()
    connection.execute(_DOUBT, (ids,))
    return connection.execute(_DELETE, (ids,)).rowcount


def unnamed_schemas(connection: sqlite3.Connection, workspace: str) -> DoubtfulSchemas | None:
    """Which of the doubtful schemas no execution names; None when none is doubtful.

    Executions are read from the latest on, and no further than until each schema is found.
    """
    with snapshot(connection):
        looked_for = [name for (name,) in connection.execute(_DOUBTFUL, (workspace,))]
        if not looked_for:
            return None
        doubtful = set(looked_for)
        (latest,) = connection.execute(_LATEST, (workspace,)).fetchone()
        position = latest
        while doubtful:
            page = (workspace, position, _LOOKED_AT_ONCE)
            rows = connection.execute(_NAMED, page).fetchall()
            if not rows:
                break
            doubtful -= {name for name, _ in rows}
            position = rows[0][1] - 1
        return DoubtfulSchemas(looked_for, sorted(doubtful), latest)


def forget_schemas(
    connection: sqlite3.Connection, workspace: str, doubtful: DoubtfulSchemas
) -> None:
    """Delete schemas that no execution names, nor a tool, nor what arrived since."""
    unnamed = bulk.values(doubtful.unnamed)
    wanted = {"workspace": workspace, "unnamed": unnamed, "looked": doubtful.up_to}
    connection.execute(_FORGET, wanted)
    connection.execute(_SETTLED, (workspace, bulk.values(doubtful.looked_for)))
