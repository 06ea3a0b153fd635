"""Statements about suggestions that were answered, and their outcomes."""

import sqlite3
from collections.abc import Sequence

from aftercall.wire import Suggestion
from mongo import codec
from mongo.records import IssuedSuggestion, JudgedSuggestion, SuggestionOutcome, ToolKey
from mongo.sqlite import bulk

_INTO_SUGGESTIONS = """
suggestions (
    workspace, suggestion_id, server_name, tool_name, signature, edit_key, issued_at, data, estimate
)
"""

_GET = """
SELECT data, server_name, tool_name, signature, edit_key, issued_at, estimate FROM suggestions
WHERE workspace = ? AND suggestion_id = ?
"""

_PENDING = """
SELECT json_group_array(
    json_array(position, workspace, suggestion_id, execution_id, outcome)
) FROM (
    SELECT o.* FROM pending_outcomes AS p
    CROSS JOIN outcomes AS o ON o.workspace = p.workspace AND o.position = p.position
    WHERE p.workspace = ? ORDER BY p.position LIMIT ?
)
"""

_JUDGED = """
SELECT estimate, outcome, agent FROM (
    SELECT *, row_number() OVER (PARTITION BY agent ORDER BY position DESC) AS rank FROM (
        SELECT o.position, s.estimate, o.outcome, json_extract(e.data, '$.agent') AS agent
        FROM outcomes AS o
        JOIN suggestions AS s ON s.workspace = o.workspace AND s.suggestion_id = o.suggestion_id
        LEFT JOIN executions AS e ON e.workspace = o.workspace AND e.execution_id = o.execution_id
        WHERE o.workspace = :workspace AND s.estimate IS NOT NULL
    )
)
WHERE rank <= :most ORDER BY position DESC LIMIT :limit
"""
_LEAST_OF_AN_AGENT = 50
_SHARE_OF_AN_AGENT = 10
"""No agent fills more than this part of the limit, so that a flood leaves the others in sight."""

_LEARNED = """
DELETE FROM pending_outcomes WHERE workspace = :workspace AND position IN (
    SELECT o.position FROM json_each(:learned) AS learned
    CROSS JOIN outcomes AS o
        ON o.workspace = :workspace
        AND o.suggestion_id = json_extract(learned.value, '$[0]')
        AND o.execution_id = json_extract(learned.value, '$[1]')
)
"""


def save(connection: sqlite3.Connection, calls: Sequence[Sequence[IssuedSuggestion]]) -> list[None]:
    """Keep those that are new; one None per call."""
    bulk.insert(
        connection,
        _INTO_SUGGESTIONS,
        (_row(issued) for call in calls for issued in call),
        on_conflict="ON CONFLICT (workspace, suggestion_id) DO NOTHING",
    )
    return [None] * len(calls)


def get(
    connection: sqlite3.Connection, workspace: str, suggestion_id: str
) -> IssuedSuggestion | None:
    """A suggestion by its id."""
    row = connection.execute(_GET, (workspace, suggestion_id)).fetchone()
    if row is None:
        return None
    data, server, tool_name, signature, edit_key, issued_at, estimate = row
    return IssuedSuggestion(
        workspace=workspace,
        suggestion=codec.parse(Suggestion, data),
        tool=ToolKey(workspace, codec.server_name(server), tool_name),
        signature=signature,
        edit_key=edit_key,
        issued_at=codec.from_microseconds(issued_at),
        estimate=estimate,
    )


def add_outcomes(connection: sqlite3.Connection, outcomes: Sequence[SuggestionOutcome]) -> int:
    """Keep those that are new; how many that were. A trigger queues them."""
    return bulk.insert(
        connection,
        "outcomes (workspace, suggestion_id, execution_id, outcome)",
        (
            (each.workspace, each.suggestion_id, each.execution_id, each.outcome)
            for each in outcomes
        ),
        on_conflict="ON CONFLICT (workspace, suggestion_id, execution_id) DO NOTHING",
    )


def pending_outcomes(
    connection: sqlite3.Connection, workspace: str, limit: int
) -> list[SuggestionOutcome]:
    """The oldest outcomes that nothing was learned from yet, oldest first."""
    rows = sorted(bulk.fetch(connection, _PENDING, (workspace, max(limit, 0))))
    return [SuggestionOutcome(*row) for _, *row in rows]


def judged(connection: sqlite3.Connection, workspace: str, limit: int) -> list[JudgedSuggestion]:
    """The latest outcomes of suggestions with an estimate, latest first, some of each agent."""
    limit = max(limit, 0)
    most = max(_LEAST_OF_AN_AGENT, limit // _SHARE_OF_AN_AGENT)
    rows = connection.execute(_JUDGED, {"workspace": workspace, "limit": limit, "most": most})
    return [JudgedSuggestion(*row) for row in rows]


def workspaces(connection: sqlite3.Connection) -> list[str]:
    """Workspaces in which an outcome was said, in order."""
    rows = connection.execute("SELECT DISTINCT workspace FROM outcomes ORDER BY workspace")
    return [workspace for (workspace,) in rows]


def mark_learned(
    connection: sqlite3.Connection, workspace: str, outcomes: Sequence[SuggestionOutcome]
) -> None:
    """Take outcomes off the queue."""
    learned = bulk.values((each.suggestion_id, each.execution_id) for each in outcomes)
    connection.execute(_LEARNED, {"workspace": workspace, "learned": learned})


def _row(issued: IssuedSuggestion) -> tuple[bulk.SqlValue, ...]:
    return (
        issued.workspace,
        issued.suggestion.suggestion_id,
        codec.server_column(issued.tool.server_name),
        issued.tool.tool_name,
        issued.signature,
        issued.edit_key,
        codec.to_microseconds(issued.issued_at),
        issued.suggestion.model_dump_json(),
        issued.estimate,
    )
