"""The tools of the latest calls, read once for all tools and then kept.

It stands in for an index, which would take a third of the time of each recorded call in the store.
"""

import sqlite3
import threading
from collections import deque
from dataclasses import dataclass, field

from cachetools import LRUCache

from mongo.records import ToolKey
from mongo.sqlite.files import named_tool

LATEST = 21_000
"""Events of a workspace whose calls are known: some 12 ms to read, and 1 MB."""
_MAX_WORKSPACES = 20


@dataclass(slots=True)
class _OfWorkspace:
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Of its own: a first question, which reads long, holds up no other workspace."""
    head: int = 0
    """Position up to which the log was looked through."""
    order: deque[tuple[str, str]] = field(default_factory=deque)
    """The tool of each call, the latest last."""
    positions: dict[tuple[str, str], tuple[tuple[str, str], deque[int]]] = field(
        default_factory=dict
    )
    """By tool, next to its name as `order` has it: one text for all its calls."""

    def add_calls(self, connection: sqlite3.Connection, workspace: str, newest: int) -> None:
        """Add the calls up to the `newest` event, and drop those that are no longer among them."""
        rows = connection.execute(
            """
            SELECT position, server, tool FROM events
            WHERE workspace = ? AND position > ? AND kind = 'execution' ORDER BY position
            """,
            (workspace, max(self.head, newest - LATEST)),
        ).fetchall()  # before anything is changed: a read that fails is done again
        for position, *name in rows:
            key = name[0], name[1]
            tool, own = self.positions.setdefault(key, (key, deque()))
            own.append(position)
            self.order.append(tool)
            newest = max(newest, position)
        self.head = newest
        while self.order and (own := self.positions[self.order[0]][1])[0] <= newest - LATEST:
            own.popleft()
            tool = self.order.popleft()
            if not own:
                del self.positions[tool]


class LatestCalls:
    """The positions of the latest calls, by tool; for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[str, _OfWorkspace] = LRUCache(_MAX_WORKSPACES)

    def count_unread(self, workspace: str, newest: int) -> int:
        """Return how many events a question has to look through up to the `newest`."""
        return min(LATEST, newest - self._workspace(workspace).head)

    def find_positions(
        self,
        connection: sqlite3.Connection,
        tool: ToolKey,
        newest: int,
        *,
        after: int,
        before: int | None,
        limit: int,
    ) -> list[int]:
        """Return positions of the latest calls of a tool, newest first, at most `limit`.

        They are above `after`, which is at least `newest - LATEST`, and below `before`.
        """
        known = self._workspace(tool.workspace)
        with known.lock:
            known.add_calls(connection, tool.workspace, newest)
            found: list[int] = []
            _, calls = known.positions.get(named_tool(tool), ("", ()))
            for position in reversed(calls):
                if position <= after or len(found) == limit:
                    break
                if before is None or position < before:
                    found.append(position)
        return found

    def _workspace(self, workspace: str) -> _OfWorkspace:
        with self._lock:
            return self._known.setdefault(workspace, _OfWorkspace())
