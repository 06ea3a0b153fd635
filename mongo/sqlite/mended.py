"""The statement that reads when failures happened and when they were mended."""

import sqlite3

from mongo import codec
from mongo.records import MendedFailure
from mongo.sqlite import bulk

# The text is searched first, which is much faster than reading large JSON for nothing.
_LATEST = """
SELECT json_group_array(
    json_array(
        r.position, failed.timestamp, mended.timestamp,
        instr(mended.data, ?) > 0 AND mended.data ->> '$.suggestionId' IS NOT NULL
    )
)
FROM (
    SELECT position, failed_id, mended_id FROM repairs
    WHERE workspace = ? ORDER BY position DESC LIMIT ?
) AS r
CROSS JOIN executions AS failed ON failed.workspace = ? AND failed.execution_id = r.failed_id
CROSS JOIN executions AS mended ON mended.workspace = ? AND mended.execution_id = r.mended_id
"""

# The same of the latest outcomes: a success that followed a suggestion is not mined as a repair.
_FOLLOWED = """
SELECT json_group_array(json_array(o.position, failed.timestamp, mended.timestamp))
FROM (
    SELECT max(position) AS position, execution_id FROM (
        SELECT position, execution_id, outcome FROM outcomes
        WHERE workspace = ? ORDER BY position DESC LIMIT ?
    ) WHERE outcome = 'success' GROUP BY execution_id
) AS o
CROSS JOIN executions AS mended
    ON mended.workspace = ? AND mended.execution_id = o.execution_id
    AND instr(mended.data, ?) > 0
CROSS JOIN executions AS failed
    ON failed.workspace = ? AND failed.execution_id = mended.data ->> '$.repairOf'
"""


def latest(connection: sqlite3.Connection, workspace: str, limit: int) -> list[MendedFailure]:
    """Of the latest repairs of a workspace those whose executions are there, latest first."""
    bounds = (codec.FOLLOWS, workspace, max(limit, 0), workspace, workspace)
    rows = sorted(bulk.fetch(connection, _LATEST, bounds), reverse=True)
    return [
        MendedFailure(
            codec.from_microseconds(failed_at), codec.from_microseconds(mended_at), bool(follows)
        )
        for _, failed_at, mended_at, follows in rows
    ]


def latest_followed(
    connection: sqlite3.Connection, workspace: str, limit: int
) -> list[MendedFailure]:
    """Of the latest outcomes the successes that name a failure which is there, latest first.

    One that was reported of several suggestions is there once.
    """
    bounds = (workspace, max(limit, 0), workspace, codec.MENDS, workspace)
    rows = sorted(bulk.fetch(connection, _FOLLOWED, bounds), reverse=True)
    return [
        MendedFailure(
            codec.from_microseconds(failed_at),
            codec.from_microseconds(mended_at),
            followed_suggestion=True,
        )
        for _, failed_at, mended_at in rows
    ]
