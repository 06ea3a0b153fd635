"""Many records in few round trips; what is known already is no failure."""

from collections.abc import Sequence
from typing import TypeAlias

from pymongo import DeleteOne, UpdateOne
from pymongo.errors import BulkWriteError

from mongo.mongodb import faults, leases
from mongo.mongodb.collections import Collection, Record
from mongo.records import Lease

Operation: TypeAlias = UpdateOne | DeleteOne


async def insert_new(collection: Collection, records: Sequence[Record]) -> int:
    """Insert those whose keys are not taken; how many that were."""
    if not records:
        return 0
    try:
        result = await collection.insert_many(records, ordered=False)
    except BulkWriteError as error:
        return len(records) - _taken(error)
    return len(result.inserted_ids)


async def upsert(collection: Collection, operations: Sequence[Operation]) -> int:
    """Do all, in any order; how many records came into being.

    An upsert whose filter misses a record of the same `_id` is passed over.
    """
    if not operations:
        return 0
    try:
        result = await collection.bulk_write(operations, ordered=False)
    except BulkWriteError as error:
        _taken(error)
        return int(error.details["nUpserted"])
    return result.upserted_count


async def put(collection: Collection, records: Sequence[Record]) -> None:
    """Set all fields of records, new or not; of several of one `_id` the last counts."""
    waiting = {record["_id"]: record for record in records}
    # Two who upsert one record at once: one of them may be told that it is there meanwhile.
    for _ in range(2):
        if not waiting:
            return
        operations = [_setting(each) for each in waiting.values()]
        try:
            await collection.bulk_write(operations, ordered=False)
        except BulkWriteError as error:
            _taken(error)
            places = {each["index"] for each in error.details["writeErrors"]}
            waiting = {
                name: record
                for place, (name, record) in enumerate(waiting.items())
                if place in places
            }
        else:
            return


async def put_fenced(collection: Collection, records: Sequence[Record], lease: Lease) -> None:
    """Set all fields of records, new or not, unless a later holder of the lease has set one.

    Raises:
        StoreFencedError: one was set by a later holder; that one is as it was.
    """
    unfenced: Record = {"$or": [{"fence": None}, {"fence": {"$lte": lease.token}}]}
    operations = []
    for record in records:
        named: Record = {name: record[name] for name in ("_id", "workspace") if name in record}
        fields = {name: value for name, value in record.items() if name not in named}
        fields["fence"] = lease.token
        operations.append(UpdateOne({**named, **unfenced}, {"$set": fields}, upsert=True))
    if not operations:
        return
    try:
        await collection.bulk_write(operations, ordered=False)
    except BulkWriteError as error:
        _taken(error)
        raise leases.lost(lease) from error


def _setting(record: Record) -> UpdateOne:
    named = {"_id": record["_id"], "workspace": record["workspace"]}
    fields = {name: value for name, value in record.items() if name not in named}
    return UpdateOne(named, {"$set": fields}, upsert=True)


def _taken(error: BulkWriteError) -> int:
    """How many were there already; raises the error when it is about anything else."""
    if not faults.only_duplicates(error):
        raise error
    return len(error.details["writeErrors"])
