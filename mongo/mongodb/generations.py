"""Learning everything anew beside what is known, and switching to it in one write.

The record of STORE says which generation holds and which is a shadow. A switch changes both and
sets facts at once. It must not happen after one of the rebuild's leases has passed to another: the
leases are bound to the switch's epoch first, and whoever takes one of them raises that epoch.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from mongo.errors import StoreError, StoreFencedError
from mongo.mongodb import changes, counting, facts, journal, layout, leases, queues
from mongo.mongodb.collections import DERIVED_NAMES, NEW, STORE_ID, Collections, derived_name
from mongo.records import Change, Lease


async def open_shadow(db: Collections) -> Collections:
    """The collections of a new shadow: nothing learned, everything queued."""
    await drop_shadow(db)
    state = await layout.read_state(db)
    number = state.generation + 1
    opened = await db.store.update_one(
        {
            "_id": STORE_ID,
            "generation": state.generation,
            "epoch": state.epoch,
            "shadow": {"$exists": False},
        },
        {"$set": {"shadow": number}, "$inc": {"epoch": 1}},
    )
    if not opened.matched_count:
        raise StoreError("another rebuild has begun at the same moment: let one of them run")
    current, shadow = db.of_generation(state.generation), db.of_generation(number)
    await layout.prepare_generation(shadow)
    for workspace in await _queued_workspaces(db):
        # What an earlier shadow had still in its queues when it was adopted.
        await queues.change_all(db, workspace, state.generation, {"$set": {"queued": NEW}})
        await queues.queue_all(current, workspace, number)
    return shadow


async def drop_shadow(db: Collections) -> None:
    """Throw away what a shadow left, and what was known before the last switch."""
    state = await layout.read_state(db)
    if state.shadow is not None:
        for workspace in await _queued_workspaces(db):
            await queues.change_all(db, workspace, state.shadow, {"$unset": {"queued": ""}})
            await queues.change_all(db, workspace, -state.shadow, {"$set": {"queued": NEW}})
    await drop_others(db, state.generation)
    if state.shadow is not None:
        await db.store.update_one(
            {"_id": STORE_ID, "shadow": state.shadow},
            {"$unset": {"shadow": ""}, "$inc": {"epoch": 1}},
        )


async def adopt(
    db: Collections,
    shadow: Collections,
    new_facts: Mapping[str, str],
    held: Sequence[Lease],
) -> int:
    """Let the shadow's generation hold from now on; returns it.

    Raises:
        StoreFencedError: a lease is not held any more, or the shadow is not the store's; nothing
            was changed.
    """
    number = shadow.generation
    before = await layout.read_state(db)
    for lease in held:
        await journal.settle(db, lease.name)
        if not await leases.bind(db, lease, before.epoch):
            raise StoreFencedError(
                f"the lease {lease.name} is not held by {lease.holder} any more: the switch did "
                "not take place; begin the rebuild anew"
            )
    told = [
        Change("", facts=tuple(new_facts)),
        *(Change(workspace, everything=True) for workspace in await counting.workspaces(db)),
    ]
    first = await changes.reserve(db, len(told))
    # A fact that was set by a switch stays where a switch can set it.
    placed = {facts.switched_field(name): value for name, value in new_facts.items()}
    switched = await db.store.update_one(
        {
            "_id": STORE_ID,
            "generation": before.generation,
            "shadow": number,
            "epoch": before.epoch,
        },
        {
            "$set": {"generation": number, **placed},
            "$unset": {"shadow": ""},
            "$inc": {"epoch": 1},
        },
    )
    await changes.tell_all(db, first, told)
    if not switched.matched_count:
        raise StoreFencedError(
            "the shadow is not the store's any more, or one of its leases has passed to another: "
            "the switch did not take place; begin the rebuild anew"
        )
    await _tidy(db, number)
    return number


async def _tidy(db: Collections, generation: int) -> None:
    """What only the generation before had not learned waits for nobody any more.

    Nothing depends on it: such records are not in the queues of the generation that holds.
    """
    for workspace in await _queued_workspaces(db):
        await queues.change_all(db, workspace, -generation, {"$unset": {"queued": ""}})


async def drop_others(db: Collections, generation: int) -> None:
    """Drop the collections of all generations but one."""
    there = await db.database.list_collection_names()
    kept = {derived_name(name, generation) for name in DERIVED_NAMES}
    await asyncio.gather(*(db.database.drop_collection(name) for name in _derived(there) - kept))


def _derived(names: Iterable[str]) -> set[str]:
    """Those of the names that belong to what some generation learned."""
    bases = set(DERIVED_NAMES.values())
    found = set()
    for name in names:
        base, _, suffix = name.rpartition("_")
        if name in bases or (base in bases and suffix.isdecimal()):
            found.add(name)
    return found


async def _queued_workspaces(db: Collections) -> list[str]:
    """All workspaces that may have records in a queue."""
    names = await asyncio.gather(
        counting.workspaces(db),
        *(queues.collection(db, queue).distinct("workspace") for queue in queues.QUEUES),
    )
    return sorted({name for each in names for name in each})
