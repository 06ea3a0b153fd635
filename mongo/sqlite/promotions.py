"""Statements about promotions: what holds, how it came to that, and what has no document yet."""

import sqlite3
from collections.abc import Sequence

from aftercall.models import Promotion
from mongo import codec
from mongo.records import PromotionEvent, QueuedPromotion, StoredPromotion
from mongo.sqlite import bulk

_PUT = """
INSERT INTO promotions (workspace, namespace, inherited_quality, data) VALUES (?, ?, ?, ?)
ON CONFLICT (workspace, namespace) DO UPDATE SET
    inherited_quality = excluded.inherited_quality, data = excluded.data
"""

_DELETE = "DELETE FROM promotions WHERE workspace = ? AND namespace = ?"

_REMEMBER = """
INSERT INTO promotion_history (workspace, namespace, at, action, inherited_quality, data)
VALUES (?, ?, ?, ?, ?, ?)
"""

_GET = "SELECT inherited_quality, data FROM promotions WHERE workspace = ? AND namespace = ?"

_LIST = """
SELECT json_group_array(json_array(namespace, inherited_quality, data)) FROM promotions
WHERE workspace = ?
"""

_HISTORY = """
SELECT at, action, inherited_quality, data FROM promotion_history
WHERE workspace = ? AND namespace = ? ORDER BY position DESC LIMIT ?
"""

_PENDING = """
SELECT json_group_array(json_array(position, workspace, namespace, inherited_quality, data)) FROM (
    SELECT h.* FROM pending_promotions AS p
    CROSS JOIN promotion_history AS h ON h.workspace = p.workspace AND h.position = p.position
    WHERE p.workspace = ? ORDER BY p.position LIMIT ?
)
"""

_LEARNED = """
DELETE FROM pending_promotions WHERE workspace = ? AND position IN (SELECT value FROM json_each(?))
"""


def change(connection: sqlite3.Connection, events: Sequence[PromotionEvent]) -> None:
    """Apply changes in their order and remember them; a trigger queues what was promoted."""
    for event in events:
        key = (event.workspace, event.namespace)
        held = event.promoted
        kept = (held.inherited_quality, held.promotion.model_dump_json()) if held else (None, None)
        if held is None:
            connection.execute(_DELETE, key)
        else:
            connection.execute(_PUT, (*key, *kept))
        at = codec.to_microseconds(event.at)
        connection.execute(_REMEMBER, (*key, at, event.action, *kept))


def get(connection: sqlite3.Connection, workspace: str, namespace: str) -> StoredPromotion | None:
    """What holds in a namespace."""
    row = connection.execute(_GET, (workspace, namespace)).fetchone()
    return None if row is None else _stored(workspace, namespace, *row)


def list_all(connection: sqlite3.Connection, workspace: str) -> list[StoredPromotion]:
    """All that hold in a workspace, by namespace."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace,)))
    return [_stored(workspace, *row) for row in rows]


def history(
    connection: sqlite3.Connection, workspace: str, namespace: str, limit: int
) -> list[PromotionEvent]:
    """The latest changes in a namespace, newest first."""
    rows = connection.execute(_HISTORY, (workspace, namespace, max(limit, 0)))
    return [
        PromotionEvent(
            workspace=workspace,
            namespace=namespace,
            at=codec.from_microseconds(at),
            action=action,
            promoted=None if data is None else _stored(workspace, namespace, quality, data),
        )
        for at, action, quality, data in rows.fetchall()
    ]


def pending(connection: sqlite3.Connection, workspace: str, limit: int) -> list[QueuedPromotion]:
    """The oldest that have no document yet, oldest first."""
    rows = sorted(bulk.fetch(connection, _PENDING, (workspace, max(limit, 0))))
    return [QueuedPromotion(position, _stored(*row)) for position, *row in rows]


def mark_learned(connection: sqlite3.Connection, workspace: str, positions: Sequence[int]) -> None:
    """Take promotions off the queue."""
    connection.execute(_LEARNED, (workspace, bulk.values(positions)))


def _stored(workspace: str, namespace: str, quality: float, data: str) -> StoredPromotion:
    return StoredPromotion(workspace, namespace, codec.parse(Promotion, data), quality)
