"""What other processes are told: a short list in the store, which each of them follows."""

import json
import sqlite3
from collections.abc import Iterable

from mongo.records import Change, Changes, IndexCommit, ToolKey
from mongo.sqlite import commits
from mongo.sqlite.readers import ReadPool, snapshot

KEPT = 10_000
"""Changes that stay told: whoever polls each half second is never that far behind."""

_INSERT = "INSERT INTO changes (workspace, data) VALUES (?, ?)"

_PRUNE = "DELETE FROM changes WHERE id <= ?"

_LATEST = "SELECT coalesce(max(id), 0) FROM changes"

_OLDEST = "SELECT min(id) FROM changes"

_SINCE = "SELECT id, workspace, data FROM changes WHERE id > ? ORDER BY id"

_KNOWN = """
SELECT workspace FROM counters UNION SELECT workspace FROM learned_counters ORDER BY workspace
"""


class SqliteChangeFeed:
    """A `mongo.upkeep.ChangeFeed` over the list; it tells what the same process wrote there too.

    `last` is the id of the latest change that is known.
    """

    def __init__(self, readers: ReadPool, last: int) -> None:
        self._readers = readers
        self._last = last

    async def poll(self) -> Changes:
        """What happened since the last call, or since the feed was made."""
        last, changes = await self._readers.run(self._read)
        self._last = last
        return changes

    def _read(self, connection: sqlite3.Connection) -> tuple[int, Changes]:
        with snapshot(connection):
            generation = commits.generation(connection)
            last = latest(connection)
            if last == self._last:
                return last, Changes(generation)
            (oldest,) = connection.execute(_OLDEST).fetchone()
            if oldest > self._last + 1:  # some are gone that were not told
                return last, Changes(generation, list(of_everything(connection)))
            rows = connection.execute(_SINCE, (self._last,)).fetchall()
            return last, Changes(generation, [_change(name, data) for _, name, data in rows])


def latest(connection: sqlite3.Connection) -> int:
    """The id of the latest change; 0 before the first."""
    (last,) = connection.execute(_LATEST).fetchone()
    return int(last)


def tell(connection: sqlite3.Connection, changes: Iterable[Change]) -> None:
    """Add changes to the list, and drop what is too old to be told."""
    last: int | None = None
    for change in changes:
        last = connection.execute(_INSERT, (change.workspace, _data(change))).lastrowid
    if last is not None:
        connection.execute(_PRUNE, (last - KEPT,))


def of_everything(connection: sqlite3.Connection) -> Iterable[Change]:
    """That nothing is as it was, for every workspace there is."""
    for (workspace,) in connection.execute(_KNOWN).fetchall():
        yield Change(workspace, everything=True)


def of_commit(commit: IndexCommit) -> Change:
    """What an indexing batch changed."""
    learned = (
        *(row.tool for row in commit.knowledge),
        *(row.tool for row in commit.statistics),
        *(row.tool for row in commit.health),
    )
    documents = (
        *(row.document_id for row in commit.documents),
        *(document_id for _, document_id in commit.removed),
    )
    return Change(
        commit.workspace,
        learned=tuple(dict.fromkeys(learned)),
        documents=tuple(dict.fromkeys(documents)),
    )


def _data(change: Change) -> str:
    said = {
        "learned": [list(tool) for tool in change.learned],
        "documents": change.documents,
        "registry": change.registry,
        "facts": change.facts,
        "everything": change.everything,
    }
    return json.dumps({name: value for name, value in said.items() if value})


def _change(workspace: str, data: str) -> Change:
    said = json.loads(data)
    return Change(
        workspace,
        learned=tuple(ToolKey(*tool) for tool in said.get("learned", ())),
        documents=tuple(said.get("documents", ())),
        registry=said.get("registry", False),
        facts=tuple(said.get("facts", ())),
        everything=said.get("everything", False),
    )
