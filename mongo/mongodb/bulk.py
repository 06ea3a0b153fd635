"""Many records in few round trips; what is known already is no failure."""

from collections.abc import Sequence
from typing import TypeAlias

from pymongo import DeleteOne, UpdateOne
from pymongo.errors import BulkWriteError

from mongo.mongodb import faults
from mongo.mongodb.collections import Collection, Record

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


def _setting(record: Record) -> UpdateOne:
    named = {"_id": record["_id"], "workspace": record["workspace"]}
    fields = {name: value for name, value in record.items() if name not in named}
    return UpdateOne(named, {"$set": fields}, upsert=True)


def _taken(error: BulkWriteError) -> int:
    """How many were there already; raises the error when it is about anything else."""
    if not faults.only_duplicates(error):
        raise error
    return len(error.details["writeErrors"])
