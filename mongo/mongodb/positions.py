"""Positions: numbers that grow with arrival, one row of them per workspace and kind."""

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from mongo.mongodb.collections import Collections, key


async def reserve(db: Collections, workspace: str, kind: str, count: int = 1) -> int:
    """The first of `count` positions that nobody else is given; they begin at 1.

    `kind` is the name of the attribute of `Collections` that they are for. What is reserved and
    not used leaves a gap, which harms nobody.
    """
    while True:
        try:
            counter = await db.counters.find_one_and_update(
                {"_id": key(workspace, kind), "workspace": workspace},
                {"$inc": {"last": count}},
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        except DuplicateKeyError:
            continue  # two made the counter at once; it is there now
        return int(counter["last"]) - count + 1  # type: ignore[index]  # upserted: never None


async def raise_to(db: Collections, workspace: str, kind: str, position: int) -> None:
    """See that only positions above this one are given out from now on."""
    await db.counters.update_one(
        {"_id": key(workspace, kind), "workspace": workspace},
        {"$max": {"last": position}},
        upsert=True,
    )
