"""Statements about recommendations that somebody took up."""

import sqlite3

from mongo import codec
from mongo.records import StoredRecommendation
from mongo.sqlite import bulk

_PUT = """
INSERT INTO recommendations (
    workspace, recommendation_id, state, changed_at, data, reason, changed_by
) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, recommendation_id) DO UPDATE SET
    state = excluded.state, changed_at = excluded.changed_at, data = excluded.data,
    reason = excluded.reason, changed_by = excluded.changed_by
"""

_LIST = """
SELECT json_group_array(
    json_array(-changed_at, recommendation_id, state, hex(data), reason, changed_by)
)
FROM recommendations WHERE workspace = ?
"""


def put(connection: sqlite3.Connection, recommendation: StoredRecommendation) -> None:
    """Keep what was done about a recommendation, in the place of what was done before."""
    values = (
        recommendation.workspace,
        recommendation.recommendation_id,
        recommendation.state,
        codec.to_microseconds(recommendation.changed_at),
        recommendation.data,
        recommendation.reason,
        recommendation.changed_by,
    )
    connection.execute(_PUT, values)


def list_all(connection: sqlite3.Connection, workspace: str) -> list[StoredRecommendation]:
    """All of a workspace, the latest touched first."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace,)))
    return [
        StoredRecommendation(
            workspace=workspace,
            recommendation_id=recommendation_id,
            state=state,
            changed_at=codec.from_microseconds(-changed),
            data=bytes.fromhex(data),
            reason=reason,
            changed_by=changed_by,
        )
        for changed, recommendation_id, state, data, reason, changed_by in rows
    ]
