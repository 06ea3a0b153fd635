"""The field `queued`: how it changes when a generation has learned, is begun, or is given up.

What each value says is in `mongo.mongodb.collections`. Each change here may be repeated, and only
ever touches values that belong to the generation that makes it: one that comes late, after a
switch, takes nothing off the queues of the next.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo import UpdateMany

from mongo.mongodb import tools, vectors
from mongo.mongodb.collections import NEW, Collection, Collections, Record

QUEUES = (
    "executions", "outcomes", "marks", "corrections", "changed_tools", "promotion_history",
)  # fmt: skip
"""Attributes of `Collections` whose records wait to be learned from."""

AT_ONCE = 10_000
"""Records that one statement changes: far below what a server does within its time."""


def collection(db: Collections, queue: str) -> Collection:
    """The collection of a queue."""
    found: Collection = getattr(db, queue)
    return found


def done(
    which: Record, generation: int, shadow: int | None, at: datetime | None = None
) -> list[UpdateMany]:
    """Statements that take records off the queue of the generation that learned from them.

    Args:
        which: filter of the records.
        generation: that learned from them: the one that holds, or its shadow.
        shadow: the one that is being learned beside the one that holds, if any.
        at: for records that expire, the moment from which that is counted.
    """
    off: Record = {"$unset": {"queued": ""}}
    if at is not None:
        off["$set"] = {"learned_since": at}
    if generation == shadow:
        return [
            UpdateMany(
                {**which, "queued": NEW}, {"$set": {"queued": -generation, **off.get("$set", {})}}
            ),
            UpdateMany({**which, "queued": generation}, {"$unset": {"queued": ""}}),
        ]
    if shadow is None:
        waiting = [NEW, generation, -(generation + 1)]
        return [UpdateMany({**which, "queued": {"$in": waiting}}, off)]
    kept: Record = {"$set": {"queued": shadow, **off.get("$set", {})}}
    return [
        UpdateMany({**which, "queued": {"$in": [generation, -shadow]}}, off),
        UpdateMany({**which, "queued": NEW}, kept),
    ]


async def queue_all(db: Collections, workspace: str, shadow: int) -> None:
    """Queue for a shadow what the generation of `db` has learned from."""
    others = [NEW, db.generation, -shadow, shadow]
    await tools.queue_all(db, workspace, shadow, others)
    for queue in QUEUES:
        if queue == "changed_tools":
            continue
        records = collection(db, queue)
        # A namespace's promotion that was taken away has no document to be made.
        said: Record = {"data": {"$ne": None}} if queue == "promotion_history" else {}
        after = 0
        while True:
            last = await _nth_position(
                records, {"workspace": workspace, "position": {"$gt": after}}
            )
            if last is None:
                break
            await records.update_many(
                {
                    "workspace": workspace,
                    "position": {"$gt": after, "$lte": last},
                    "queued": {"$nin": others},
                    **said,
                },
                {"$set": {"queued": shadow}},
            )
            after = last


async def change_all(db: Collections, workspace: str, value: int, change: Record) -> None:
    """Apply a change that takes `value` away to all records that have it."""
    for queue in QUEUES:
        records = collection(db, queue)
        which: Record = {"workspace": workspace, "queued": value}
        while (last := await _nth_position(records, which)) is not None:
            await records.update_many({**which, "position": {"$lte": last}}, change)


async def _nth_position(records: Collection, which: Record) -> int | None:
    """The position of the `AT_ONCE`-th of these records, or of the last; None when none is left."""
    one: dict[str, Any] = {"position": 1, "_id": 0}
    found = await records.find(which, one).sort("position", 1).skip(AT_ONCE - 1).limit(1).to_list()
    if not found:
        found = await records.find(which, one).sort("position", -1).limit(1).to_list()
    return int(found[0]["position"]) if found else None


async def workspaces(db: Collections) -> list[str]:
    """Workspaces in which anything waits to be learned from, or for its vector, in order."""
    waiting = await asyncio.gather(*(has_waiting(db, queue) for queue in QUEUES))
    # One value at a time: the server steps from workspace to workspace in the index.
    names = await asyncio.gather(
        *(
            collection(db, queue).distinct("workspace", {"queued": value})
            for queue, has_any in zip(QUEUES, waiting, strict=True)
            if has_any
            for value in db.waiting
        ),
        db.documents.distinct("workspace", {"waits": {"$gte": vectors.FOR_VECTOR}}),
    )
    return sorted({name for each in names for name in each})


async def has_waiting(db: Collections, queue: str) -> bool:
    """Whether anything waits in a queue, in any workspace."""
    return await collection(db, queue).find_one({"queued": db.pending}, {"_id": 1}) is not None


def taken(positions: Sequence[int], workspace: str) -> Record:
    """The filter of records at these positions."""
    return {"workspace": workspace, "position": {"$in": list(positions)}}
