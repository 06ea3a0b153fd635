"""Small facts about the store as a whole.

Most are records of FACTS. Those that a switch to another generation sets (`adopt`) are fields of
STORE's only record, so that they hold from the same moment on as the generation.
"""

import asyncio

from pymongo.errors import DuplicateKeyError

from mongo.mongodb import bulk
from mongo.mongodb.collections import STORE_ID, Collections, Record
from mongo.records import Lease

_SWITCHED = "facts"


def switched_field(name: str) -> str:
    """Where a fact is in STORE's record: names may hold dots, which fields may not."""
    return f"{_SWITCHED}.{name.encode().hex()}"


async def get(db: Collections, name: str) -> str | None:
    """A fact by its name."""
    store, record = await asyncio.gather(
        # All of them: the test server gives a nested field that is asked for alone another place.
        db.store.find_one({"_id": STORE_ID}, [_SWITCHED]),
        db.facts.find_one({"_id": name}),
    )
    value: str | None = _switched(store).get(name)
    if value is None and record is not None:
        value = record["value"]
    return value


async def put(db: Collections, name: str, value: str, lease: Lease | None = None) -> None:
    """Set a fact.

    Raises:
        StoreFencedError: a later holder of the lease has set it.
    """
    field = switched_field(name)
    result = await db.store.update_one(
        {"_id": STORE_ID, field: {"$exists": True}}, {"$set": {field: value}}
    )
    if result.matched_count:
        return
    if lease is not None:
        await bulk.put_fenced(db.facts, [{"_id": name, "value": value}], lease)
        return
    try:
        await _put(db, name, value)
    except DuplicateKeyError:  # two made it at once; it is there now
        await _put(db, name, value)


async def list_all(db: Collections) -> dict[str, str]:
    """All facts by their names, in order."""
    store, records = await asyncio.gather(
        db.store.find_one({"_id": STORE_ID}, [_SWITCHED]), db.facts.find().to_list()
    )
    found = {record["_id"]: record["value"] for record in records} | _switched(store)
    return dict(sorted(found.items()))


async def _put(db: Collections, name: str, value: str) -> None:
    await db.facts.update_one({"_id": name}, {"$set": {"value": value}}, upsert=True)


def _switched(store: Record | None) -> dict[str, str]:
    fields: dict[str, str] = (store or {}).get(_SWITCHED) or {}
    return {bytes.fromhex(field).decode(): value for field, value in fields.items()}
