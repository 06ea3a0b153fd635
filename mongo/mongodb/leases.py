"""Leases: who may do a thing, decided by compare-and-set on one record each.

The record of a `learning:` lease is also the place where commits of its workspace take effect
(`mongo.mongodb.journal`): `commits` counts them, `journal` names the one that is being applied.
"""

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from mongo.errors import StoreFencedError
from mongo.mongodb.collections import STORE_ID, Collections, Record
from mongo.records import Lease

LEARNING = "learning:"
"""What the names of leases begin with whose holders learn and commit; the workspace follows."""


def workspace_of(name: str) -> str:
    """The workspace of a `learning:` lease; '' for any other."""
    return name.removeprefix(LEARNING) if name.startswith(LEARNING) else ""


def place(name: str) -> Record:
    """The filter of a lease's record."""
    return {"_id": name, "workspace": workspace_of(name)}


async def read(db: Collections, name: str) -> Lease | None:
    """The lease as it is now; None when nobody ever held it."""
    row = await db.leases.find_one(place(name))
    return None if row is None or row["token"] == 0 else _lease(row)


async def take(db: Collections, name: str, holder: str, seen: Lease | None) -> Lease | None:
    """Take a lease if it is still as it was seen; None when somebody was faster."""
    mine = Lease(name, holder, 1 if seen is None else seen.token + 1)
    if seen is None:
        await ensure(db, name)
    row = await db.leases.find_one_and_update(
        {**place(name), "token": 0} if seen is None else _as_seen(seen),
        {
            "$set": {"holder": holder, "token": mine.token, "beat": 0, "held": True},
            "$unset": {"switching": ""},
        },
        return_document=ReturnDocument.BEFORE,
    )
    if row is None:
        return None
    if "switching" in row:
        await _stop_switch(db, row["switching"])
    return mine


async def ensure(db: Collections, name: str) -> None:
    """Make the record of a lease that nobody ever held: its token is 0."""
    fresh = {"holder": "", "token": 0, "beat": 0, "held": False, "commits": 0}
    try:
        await db.leases.update_one(place(name), {"$setOnInsert": fresh}, upsert=True)
    except DuplicateKeyError:
        return  # two made it at once


async def beat(db: Collections, lease: Lease) -> Lease | None:
    """Say that its holder lives; None when it is not the holder's any more."""
    row = await db.leases.find_one_and_update(
        holding(lease), {"$inc": {"beat": 1}}, return_document=ReturnDocument.AFTER
    )
    return None if row is None else _lease(row)


async def give_back(db: Collections, lease: Lease) -> None:
    """Let others have it at once; one that was lost is left alone."""
    await db.leases.update_one(holding(lease), {"$set": {"held": False}})


async def bind(db: Collections, lease: Lease, epoch: int) -> bool:
    """See that whoever takes the lease from now on stops the switch of this epoch.

    False when it is not held any more.
    """
    bound = await db.leases.update_one(holding(lease), {"$set": {"switching": epoch}})
    return bound.matched_count > 0


async def is_held(db: Collections, lease: Lease) -> bool:
    """Whether it is still the holder's."""
    return await db.leases.find_one(holding(lease), ["_id"]) is not None


def lost(lease: Lease) -> StoreFencedError:
    """It is held no more."""
    return StoreFencedError(
        f"the lease {lease.name} is held no more: take it again, read anew and do it again"
    )


def holding(lease: Lease) -> Record:
    """The filter of a lease's record as long as it is the holder's."""
    return {**place(lease.name), "holder": lease.holder, "token": lease.token, "held": True}


def _as_seen(lease: Lease) -> Record:
    return {
        **place(lease.name),
        "holder": lease.holder,
        "token": lease.token,
        "beat": lease.beat,
        "held": lease.held,
    }


async def _stop_switch(db: Collections, epoch: int) -> None:
    """One that has not happened yet may not happen any more."""
    await db.store.update_one({"_id": STORE_ID, "epoch": epoch}, {"$inc": {"epoch": 1}})


def _lease(row: Record) -> Lease:
    return Lease(row["_id"], row["holder"], row["token"], row["beat"], bool(row["held"]))
