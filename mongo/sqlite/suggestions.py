"""Statements about suggestions that were answered, and their outcomes."""

import sqlite3
from collections.abc import Sequence

from aftercall.wire import Suggestion
from mongo.records import IssuedSuggestion, SuggestionOutcome, ToolKey
from mongo.sqlite import bulk, codec

_INTO_SUGGESTIONS = """
suggestions (
    workspace, suggestion_id, server_name, tool_name, signature, edit_key, issued_at, data
)
"""

_GET = """
SELECT data, server_name, tool_name, signature, edit_key, issued_at FROM suggestions
WHERE workspace = ? AND suggestion_id = ?
"""

_PENDING = """
SELECT json_group_array(
    json_array(position, workspace, suggestion_id, execution_id, outcome)
) FROM (
    SELECT o.* FROM pending_outcomes AS p CROSS JOIN outcomes AS o ON o.position = p.position
    ORDER BY p.position LIMIT ?
)
"""

_LEARNED = """
DELETE FROM pending_outcomes WHERE position IN (
    SELECT o.position FROM json_each(?) AS learned
    CROSS JOIN outcomes AS o
        ON o.workspace = json_extract(learned.value, '$[0]')
        AND o.suggestion_id = json_extract(learned.value, '$[1]')
        AND o.execution_id = json_extract(learned.value, '$[2]')
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
    data, server, tool_name, signature, edit_key, issued_at = row
    return IssuedSuggestion(
        workspace=workspace,
        suggestion=codec.parse(Suggestion, data),
        tool=ToolKey(workspace, codec.server_name(server), tool_name),
        signature=signature,
        edit_key=edit_key,
        issued_at=codec.from_microseconds(issued_at),
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


def pending_outcomes(connection: sqlite3.Connection, limit: int) -> list[SuggestionOutcome]:
    """The oldest outcomes that nothing was learned from yet, oldest first."""
    rows = sorted(bulk.fetch(connection, _PENDING, (max(limit, 0),)))
    return [SuggestionOutcome(*row) for _, *row in rows]


def mark_learned(connection: sqlite3.Connection, outcomes: Sequence[SuggestionOutcome]) -> None:
    """Take outcomes off the queue."""
    learned = bulk.values(
        (each.workspace, each.suggestion_id, each.execution_id) for each in outcomes
    )
    connection.execute(_LEARNED, (learned,))


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
    )
