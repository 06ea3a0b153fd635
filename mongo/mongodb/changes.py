"""What other processes must know: a numbered list that each of them follows.

A number is reserved before a thing is done, and its record is written after it. So a process that
is killed in between leaves a hole: whoever follows waits a while for it, and then takes it that
anything may have changed.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from pymongo.errors import DuplicateKeyError

from mongo import codec
from mongo.mongodb import counting, layout, positions
from mongo.mongodb.collections import Collections, Record, key
from mongo.records import Change, ToolKey

HOLE_S = 60.0
"""Seconds for which a follower waits for a hole to be filled: longer than one operation takes."""

_LOOK_BACK = 64
"""Numbers before the first that a new follower waits for, too, where they are holes: what is under
way while it begins. Old holes among them make it forget what it has at hand once."""

_AT_ONCE = 1_000

_MOST_AWAITED = 10_000
"""Holes that are waited for, the latest; older ones are told at once as lost."""

_MOST_NAMES = 10_000
"""Names in one change; where there are more, it says everything."""


async def reserve(db: Collections, count: int = 1) -> int:
    """The number of a change that is about to be made, or the first of several."""
    return await positions.reserve(db, "", "changes", count)


async def tell(db: Collections, told: Record) -> None:
    """Let others know what was done: a `record`. Telling it again does nothing."""
    try:
        await db.changes.insert_one({**told, "at": datetime.now(UTC)})
    except DuplicateKeyError:
        return


async def tell_all(db: Collections, first: int, changes: Sequence[Change]) -> None:
    """Let others know several, under numbers from `first` on."""
    await db.changes.insert_many(
        [record(first + place, change, "") for place, change in enumerate(changes)], ordered=False
    )


@asynccontextmanager
async def announced(db: Collections, change: Change) -> AsyncIterator[None]:
    """Tell a change that the body makes, also where it fails: it may have been made."""
    number = await reserve(db)
    try:
        yield
    finally:
        await tell(db, record(number, change, ""))


def record(number: int, change: Change, source: str) -> Record:
    """The record of a change.

    `source` names the store that made it, which need not be told by its own feeds; '' for none.
    """
    fields: Record = {
        "_id": number,
        "workspace": change.workspace,
        "at": datetime.now(UTC),
        "source": source,
    }
    if change.everything or len(change.learned) + len(change.documents) > _MOST_NAMES:
        return {**fields, "everything": True}
    return {
        **fields,
        "learned": [
            [codec.server_column(tool.server_name), tool.tool_name] for tool in change.learned
        ],
        "documents": list(change.documents),
        "registry": change.registry,
        "facts": list(change.facts),
        "everything": False,
    }


def tool(workspace: str, names: Sequence[str]) -> ToolKey:
    """A tool from how a record names it: its server, '' for none, and its name."""
    server_name, tool_name = names
    return ToolKey(workspace, codec.server_name(server_name), tool_name)


def _change(row: Record) -> Change:
    workspace = row["workspace"]
    if row["everything"]:
        return Change(workspace, everything=True)
    return Change(
        workspace,
        learned=tuple(tool(workspace, each) for each in row["learned"]),
        documents=tuple(row["documents"]),
        registry=bool(row["registry"]),
        facts=tuple(row["facts"]),
    )


def _wait_for(awaited: dict[int, float], first: int, end: int, now: float) -> bool:
    """Wait for numbers from `first` to before `end`; whether it gives some of all up for that."""
    begin = max(first, end - _MOST_AWAITED)
    awaited.update(dict.fromkeys(range(begin, end), now))
    if len(awaited) > _MOST_AWAITED:
        for number in sorted(awaited)[:-_MOST_AWAITED]:
            del awaited[number]
        return True
    return begin > first


class Feed:
    """What was told since this was made; see `begin`.

    Args:
        db: the collections.
        source: the store whose own changes are left out where they say that they are.
        clock: monotonic, in seconds.
    """

    def __init__(
        self, db: Collections, source: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._source = source
        self._clock = clock
        self._last = 0
        self._awaited: dict[int, float] = {}

    async def begin(self) -> None:
        """Follow from now on."""
        counter = await self._db.counters.find_one({"_id": key("", "changes"), "workspace": ""})
        self._last = 0 if counter is None else int(counter["last"])
        recent = range(max(1, self._last - _LOOK_BACK + 1), self._last + 1)
        told = self._db.changes.find({"_id": {"$in": list(recent)}}, {"_id": 1})
        there = {row["_id"] async for row in told}
        now = self._clock()
        self._awaited = {number: now for number in recent if number not in there}

    async def read(self) -> tuple[layout.State, list[Change]]:
        """What holds now, and what was told since the last call, in about its order.

        What is read is taken as told only when all of it was read.
        """
        counter = await self._db.counters.find_one({"_id": key("", "changes"), "workspace": ""})
        reserved = 0 if counter is None else int(counter["last"])
        last, awaited = self._last, dict(self._awaited)
        changes: list[Change] = []
        lost = False
        now = self._clock()
        while reserved > last or awaited:
            rows = await self._rows(last, awaited)
            for row in rows:
                number = row["_id"]
                awaited.pop(number, None)
                if number > last:
                    lost |= _wait_for(awaited, last + 1, number, now)
                    last = number
                if not self._source or row["source"] != self._source:
                    changes.append(_change(row))
            if len(rows) < _AT_ONCE:
                break
        # What was reserved behind the last that is there is a hole as well.
        lost |= _wait_for(awaited, last + 1, reserved + 1, now)
        last = max(last, reserved)
        for number in [number for number, since in awaited.items() if now - since >= HOLE_S]:
            del awaited[number]
            lost = True
        state = await layout.read_state(self._db)
        if lost:
            # Nobody can tell which workspace it was about; '' is the store as a whole.
            everywhere = ["", *await counting.workspaces(self._db)]
            changes = [Change(workspace, everything=True) for workspace in everywhere]
        self._last, self._awaited = last, awaited
        return state, changes

    async def _rows(self, last: int, awaited: dict[int, float]) -> list[Record]:
        which: Record = {"_id": {"$gt": last}}
        if awaited:
            which = {"$or": [which, {"_id": {"$in": sorted(awaited)}}]}
        return await self._db.changes.find(which).sort("_id", 1).limit(_AT_ONCE).to_list()
