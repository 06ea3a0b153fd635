"""Statements about a session as a whole, whatever tools it called."""

import sqlite3

from mongo.records import StoredExecution
from mongo.sqlite import executions

_LATEST_ARRIVALS = 50
"""Arrivals among which the latest call is looked for: a recorder sends in about the order of the
calls, and each of these is read, however large it is."""

_MAX_TOOLS = 1_000
"""Tools of one session that are looked at, in the order of their names: far more than an agent is
given, so that a flood of names in one session costs no more than some milliseconds."""

# The session's index is ordered by tool before arrival: from each tool it is one step to the next,
# and to the latest calls of it, however many calls the session made.
_LATEST = """
WITH RECURSIVE first_call (id, server_name, tool_name) AS (
    SELECT * FROM (
        SELECT id, server_name, tool_name FROM executions
        WHERE workspace = :workspace AND session_id = :session
        ORDER BY server_name, tool_name LIMIT 1
    )
    UNION ALL
    SELECT e.id, e.server_name, e.tool_name
    FROM first_call AS last CROSS JOIN executions AS e ON e.id = coalesce(
        (
            SELECT id FROM executions
            WHERE workspace = :workspace AND session_id = :session
            AND server_name = last.server_name AND tool_name > last.tool_name
            ORDER BY tool_name LIMIT 1
        ),
        (
            SELECT id FROM executions
            WHERE workspace = :workspace AND session_id = :session
            AND server_name > last.server_name
            ORDER BY server_name, tool_name LIMIT 1
        )
    )
    LIMIT :tools
), latest (id) AS (
    SELECT e.id FROM first_call AS called CROSS JOIN executions AS e ON e.id IN (
        SELECT id FROM executions
        WHERE workspace = :workspace AND session_id = :session
        AND server_name = called.server_name AND tool_name = called.tool_name
        ORDER BY position DESC LIMIT :arrivals
    )
    WHERE coalesce(called.server_name = :server, TRUE)
    AND coalesce(called.tool_name = :tool, TRUE)
    ORDER BY e.position DESC LIMIT :arrivals
)
SELECT e.position FROM latest CROSS JOIN executions AS e ON e.id = latest.id
ORDER BY e.timestamp DESC, json_extract(e.data, '$.sequence') DESC, e.position DESC LIMIT 1
"""


def latest_call(
    connection: sqlite3.Connection,
    workspace: str,
    session_id: str,
    server_name: str | None,
    tool_name: str | None,
) -> StoredExecution | None:
    """The latest call by its own time and sequence, among the latest arrivals of the session.

    Of calls at one time, one without a sequence comes before all others.
    """
    wanted = {
        "workspace": workspace,
        "session": session_id,
        "server": server_name,
        "tool": tool_name,
        "tools": _MAX_TOOLS,
        "arrivals": _LATEST_ARRIVALS,
    }
    row = connection.execute(_LATEST, wanted).fetchone()
    return None if row is None else executions.at_positions(connection, workspace, row)[0]
