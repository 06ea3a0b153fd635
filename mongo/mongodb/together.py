"""Changes of several small records, all or none of them, without transactions.

What is to be done is written down as one record of CHANGE_STEPS first: that is the moment from
which it counts as done. Then it is done, and its record is deleted. When the process dies in
between, whoever comes next (`complete`) does it. Doing it twice changes nothing: every step carries
a position, and a record is only ever changed by a step of a higher one. (A deleted record keeps
none. So a process that sleeps between writing down and doing, while another completes that and then
deletes what it put, puts it back; the callers that delete hold a lease.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

import bson
from pymongo import DeleteOne, UpdateOne

from mongo.mongodb import bulk
from mongo.mongodb.collections import Collections, Record, key

Changed = Literal["promotions", "promotion_history", "patterns"]
"""Collections, by the names of their attributes, whose records are changed by steps only."""

_MAX_BYTES = 12 << 20
"""What one record of steps may hold; MongoDB's limit is 16 MiB."""


@dataclass(frozen=True, slots=True)
class Step:
    """A record to be put under an `_id`, or to be deleted (`fields` is None)."""

    collection: Changed
    record_id: str
    workspace: str
    position: int
    fields: Record | None


async def change(db: Collections, workspace: str, steps: Sequence[Step]) -> None:
    """Do the steps in their order, all or none; more than 12 MiB of them in pieces of that size.

    `workspace` is the one under which they are written down.

    Raises:
        UnicodeEncodeError: a text is none; nothing was done.
    """
    await complete(db, workspace)
    for data in _pieces(steps):
        name = key(workspace, uuid4().hex)
        await db.steps.insert_one({"_id": name, "workspace": workspace, "data": data})
        await _apply(db, workspace, name, data)


async def complete(db: Collections, workspace: str | None = None) -> None:
    """Do what others wrote down and did not get done, in one workspace or in all."""
    wanted = {} if workspace is None else {"workspace": workspace}
    async for record in db.steps.find(wanted, batch_size=4):
        await _apply(db, record["workspace"], record["_id"], record["data"])


async def _apply(db: Collections, workspace: str, name: str, data: bytes) -> None:
    by_collection: dict[Changed, list[bulk.Operation]] = {}
    for step in bson.decode(data)["steps"]:
        by_collection.setdefault(step["collection"], []).append(_operation(step))
    for collection, operations in by_collection.items():
        await bulk.upsert(getattr(db, collection), operations)
    await db.steps.delete_one({"_id": name, "workspace": workspace})


def _operation(step: dict[str, Any]) -> bulk.Operation:
    record = {"_id": step["record_id"], "workspace": step["workspace"]}
    position = step["position"]
    if step["fields"] is None:
        return DeleteOne({**record, "position": {"$lt": position}})
    # Where a later step was first, this finds nothing, and its upsert fails by the `_id`.
    return UpdateOne(
        {**record, "position": {"$lt": position}},
        {"$set": {**step["fields"], "position": position}},
        upsert=True,
    )


def _pieces(steps: Sequence[Step]) -> list[bytes]:
    """Encoded before the first is written, so that what cannot be is known by then."""
    return [bson.encode({"steps": piece}) for piece in _cut(steps)]


def _cut(steps: Sequence[Step]) -> Iterable[list[Record]]:
    piece: list[Record] = []
    size = 0
    for step in steps:
        record = {
            "collection": step.collection,
            "record_id": step.record_id,
            "workspace": step.workspace,
            "position": step.position,
            "fields": step.fields,
        }
        length = len(bson.encode(record))
        if piece and size + length > _MAX_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(record)
        size += length
    if piece:
        yield piece
