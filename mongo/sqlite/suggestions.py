"""Statements about suggestions that were answered, and their outcomes."""

import sqlite3
from collections.abc import Sequence

from aftercall.json_values import MAX_INTEGER
from aftercall.models import Suggestion
from mongo import codec
from mongo.judging import PAGE, LatestJudged
from mongo.records import IssuedSuggestion, JudgedSuggestion, SuggestionOutcome, ToolKey
from mongo.sqlite import bulk
from mongo.sqlite.readers import snapshot

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

# JSON numbers in these groups would have 15 digits: an estimate travels as text of all its digits,
# a confidence as it stands in the suggestion.
_JUDGED = """
SELECT json_group_array(
    json_array(
        o.position, quote(s.estimate), s.data -> '$.confidence', o.outcome, e.data ->> '$.agent'
    )
)
FROM (
    SELECT position, suggestion_id, execution_id, outcome FROM outcomes
    WHERE workspace = ? AND position < ? ORDER BY position DESC LIMIT ?
) AS o
LEFT JOIN suggestions AS s
    ON s.workspace = ? AND s.suggestion_id = o.suggestion_id AND s.estimate IS NOT NULL
LEFT JOIN executions AS e ON e.workspace = ? AND e.execution_id = o.execution_id
"""

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
    latest = LatestJudged(limit)
    before = MAX_INTEGER
    with snapshot(connection):
        for _ in range(latest.pages):
            if latest.is_full:
                break
            page = (workspace, before, PAGE, workspace, workspace)
            rows = sorted(bulk.fetch(connection, _JUDGED, page), reverse=True)
            if not rows:
                break
            before = rows[-1][0]
            for _, estimate, confidence, outcome, agent in rows:
                if confidence is not None:
                    latest.add(JudgedSuggestion(float(estimate), outcome, agent, confidence))
    return latest.found


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
