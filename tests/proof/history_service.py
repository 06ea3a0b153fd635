"""A service of a history, in its own process: `python -m tests.proof.history_service BROKEN ...`.

It is a command of `aftercall` without vectors, which writes down its commits. BROKEN names what is
wrong with it on purpose (`BREAKS`, between spaces), so that the checker can be seen to find it.
"""

import asyncio
import ctypes
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Any


def main() -> int:
    """A command of `aftercall` without vectors, whose commits are written down; maybe broken."""
    broken, *command = sys.argv[1:]
    if "HISTORY_CLOCK" in os.environ:
        ctypes.CDLL(os.environ["LD_PRELOAD"]).follow_clock()
    from aftercall import cli
    from ingest.indexer import Indexer
    from mongo.mongodb.knowledge import MongoKnowledge
    from mongo.sqlite.knowledge import SqliteKnowledge
    from mongo.sqlite.store import open_sqlite_store
    from retrieval.index import opening
    from service import databases, learning, rebuild

    async def open_index(*_: Any, **__: Any) -> NoVectors:
        return NoVectors()

    async def process(_: Any, *words: str) -> int:
        started = [sys.executable, "-m", "tests.proof.history_service", broken, *words]
        child = await asyncio.create_subprocess_exec(*started)
        try:
            return await child.wait()
        finally:
            if child.returncode is None:
                child.terminate()

    vars(opening)["open_index"] = open_index
    vars(learning)["run_process"] = process
    rebuild.GRACE_S = 1.0
    if "AFTERCALL_MONGO_URI" not in os.environ:
        vars(databases)["_open_store"] = lambda settings, beside: open_sqlite_store(  # noqa: ARG005
            settings.data.dir, beside=True
        )
        vars(learning)["Indexer"] = lambda **given: Indexer(**{**given, "is_shared": True})
    for each in broken.split():
        BREAKS[each]()
    for kind in (SqliteKnowledge, MongoKnowledge):
        kind.commit = _traced(kind.commit)  # type: ignore[method-assign]
    return cli.main(command)


class NoVectors:
    """As `retrieval.index.protocol.VectorIndex`; it finds nothing."""

    name = "none"

    async def upsert_points(self, points: Sequence[Any]) -> None:
        """Nothing."""

    async def delete(self, document_ids: Sequence[str]) -> None:
        """Nothing."""

    async def search_points(self, queries: Sequence[Any]) -> list[list[Any]]:
        """Nothing for each."""
        return [[] for _ in queries]

    async def count_points(self) -> int:
        """As if there were some."""
        return 1

    async def close(self) -> None:
        """Nothing."""


def _traced(commit: Any) -> Any:
    async def traced(self: Any, one: Any) -> int:
        serial: int = await commit(self, one)
        if one.moved is not None:
            token = one.lease.token if one.lease else 0
            line = json.dumps([self.generation, *one.moved, token, serial])
            with open(os.environ["HISTORY_COMMITS"], "ab") as file:  # noqa: ASYNC230, PTH123
                file.write(line.encode() + b"\n")
        return serial

    return traced


# Faults of the product itself, so that the checker can be seen to find them.


def _lose() -> None:
    """Acknowledge now and then what is not stored."""
    from mongo.sqlite.events import SqliteEvents

    append, turns = SqliteEvents.append, iter(range(1 << 30))

    async def lossy(self: Any, workspace: str, events: Any, state: Any = ()) -> Any:
        if next(turns) % 9 == 8 and not state:
            return ["accepted"] * len(events)
        return await append(self, workspace, events, state)

    SqliteEvents.append = lossy  # type: ignore[method-assign]


def _double() -> None:
    """Look into no index for what is known already."""
    from mongo.sqlite import events

    vars(events)["_known"] = lambda *_: {}
    vars(events)["_append_one"] = _without_unique(events._append_one)


def _without_unique(append: Any) -> Any:
    def appended(connection: Any, arrival: Any) -> Any:
        connection.execute("DROP INDEX IF EXISTS events_by_id")
        return append(connection, arrival)

    return appended


def _unfence() -> None:
    """Everybody learns at any time, late enough for another one, and every commit is taken."""
    import asyncio

    from ingest import indexer
    from mongo.records import Lease
    from mongo.sqlite.knowledge import SqliteKnowledge

    commit = SqliteKnowledge.commit

    async def taken(_: Any, workspace: str) -> Lease:
        return Lease(workspace, "anybody", 1)

    async def committed(self: Any, one: Any) -> int:
        if one.moved is not None:
            await asyncio.sleep(0.2)
            at = (await self.read_cursors()).get(one.workspace)
            one = replace(one, moved=(at.position if at else 0, one.moved[1]), lease=None)
        return await commit(self, one)

    indexer.WorkspaceLeases.take_lease = taken  # type: ignore[method-assign,assignment]
    SqliteKnowledge.commit = committed  # type: ignore[method-assign,assignment]


def _stale() -> None:
    """Answer what is registered as it was first read."""
    from service.api import tools

    [route] = [each for each in tools.router.routes if getattr(each, "name", "") == "read_tool"]
    read, known = tools.read_tool, dict[str, Any]()

    @wraps(read)
    async def first(space: Any, tool_id: str, query: Any) -> Any:
        if tool_id not in known:
            known[tool_id] = await read(space, tool_id, query)
        return known[tool_id]

    route.endpoint = route.dependant.call = first  # type: ignore[attr-defined]


def _blind() -> None:
    """Find nothing, every other time that one event is asked for."""
    from mongo.sqlite.events import SqliteEvents

    find_events, turns = SqliteEvents.find_events, iter(range(1 << 30))

    async def found(self: Any, workspace: str, kind: Any, names: Sequence[str]) -> Any:
        if len(names) == 1 and next(turns) % 2:
            return []
        return await find_events(self, workspace, kind, names)

    SqliteEvents.find_events = found  # type: ignore[method-assign]


BREAKS = {
    "lose": _lose, "double": _double, "unfence": _unfence, "stale": _stale, "blind": _blind
}  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
