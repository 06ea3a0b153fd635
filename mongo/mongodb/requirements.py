"""What the store asks of a server: collections, indexes, and what its statements must do.

All of it is tried at start, in here, so that a server that lacks something is refused before
anything rests on it. The store does without what is not needed, and noted in `Abilities`. The
operations page has a table of the servers that were tried.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pymongo import ASCENDING, DESCENDING, IndexModel, ReturnDocument, UpdateOne
from pymongo import errors as driver

from mongo import errors
from mongo.mongodb.database import UNKNOWN, Abilities, Collection, Database, Record, record_id

log = logging.getLogger(__name__)
_GONE_S = 86_400
"""Seconds that the fence of a removed row outlives it: far longer than a process can sleep with a
write under way."""
_EXISTS = 48  # NamespaceExists
_EXPIRES = "expireAfterSeconds"


def _make_index(*fields: str, unique: bool = False) -> IndexModel:
    """Return an index on fields, `-` before one for descending."""
    keys = [
        (each.removeprefix("-"), DESCENDING if each.startswith("-") else ASCENDING)
        for each in fields
    ]
    options: dict[str, Any] = {"name": "_".join(name for name, _ in keys)[:100]}
    if unique:
        options["unique"] = True
    return IndexModel(keys, **options)


_OF_ROWS = [
    _make_index("workspace", "generation", "kind", "-rank", "key"),
    _make_index("workspace", "generation", "kind", "serverName", "toolName", "-rank", "key"),
    _make_index("workspace", "generation", "serial"),
    IndexModel([("gone_at", ASCENDING)], name="gone_at", expireAfterSeconds=_GONE_S),
]

# An `_id` begins with the workspace and is unique: no index is needed to find a record by its name.
# None is partial: nearly all records of the log are executions, and some servers have no such ones.
INDEXES = {
    "TOOL_EXECUTION_LOG": [
        _make_index("workspace", "position", unique=True),
        _make_index("workspace", "kind", "position"),
        _make_index("workspace", "kind", "serverName", "toolName", "position"),
        _make_index("workspace", "kind", "session", "position"),
        _make_index("workspace", "outcome", "timestamp"),  # for people's own queries
    ],
    "LOG_HEADS": [],
    "COMMAND_STATE": [],
    "INPUT_SCHEMAS": [],
    "CURSORS": [_make_index("generation")],
    "KNOWLEDGE": _OF_ROWS,
    "REFLECTION_PATTERNS": _OF_ROWS,
    "TOOL_STATISTICS": [
        _make_index("workspace", "generation", "what", "hour", "tool", "number"),
        _make_index("workspace", "generation", "tool", "what", "hour", "number"),
    ],
    "JOURNAL": [_make_index("workspace", "generation", "serial")],
    "LEASES": [],
    "KEYS": [],
    "AUDIT": [_make_index("position", unique=True), _make_index("workspace", "-position")],
}


async def make_collections(db: Database) -> None:
    """Make the collections and indexes that are missing; a `StoreError` names what cannot be made.

    Also collections without an index: some servers fail to aggregate over what is not there.
    """
    for name in {*INDEXES} - set(await db.database.list_collection_names()):
        try:
            await db.database.create_collection(name, check_exists=False)
        except (driver.CollectionInvalid, driver.OperationFailure) as error:
            if getattr(error, "code", _EXISTS) != _EXISTS:
                raise  # else another process was faster
    await asyncio.gather(
        *(_make_indexes(db, db.database[name], each) for name, each in INDEXES.items() if each)
    )


async def _make_indexes(db: Database, collection: Collection, indexes: list[IndexModel]) -> None:
    async with _require_statement(db, "an index on several fields, and a unique one"):
        needed = [each for each in indexes if _EXPIRES not in each.document]
        await collection.create_indexes(needed)
    expiring = [each for each in indexes if _EXPIRES in each.document]
    try:
        if expiring:
            await collection.create_indexes(expiring)
    except driver.OperationFailure as error:
        if error.code not in UNKNOWN:
            raise
        log.warning(
            "MongoDB at %s expires no records: those of removed rows in %s stay until the next "
            "`aftercall rebuild`", db.where, collection.name,
        )  # fmt: skip


async def ask_abilities(db: Database) -> Abilities:
    """Try each kind of statement on records of its own, which are removed; what is not needed.

    A `StoreError` that names the first thing which a server must do and does not.
    """
    probe = _Probe(db, uuid4().hex)
    try:
        for what, step in (
            ("a second record under one _id, refused", probe.insert_twice),
            ("an upsert with $set, $inc, $unset, $setOnInsert and $currentDate", probe.update),
            ("a write under a condition that fails by its key (a fence)", probe.try_fence),
            ("findAndModify that returns the record as it was", probe.find_and_modify),
            ("a find with $in and ranges, sorted", probe.try_find),
            ("aggregation by $match, and $group with $sum and $max", probe.try_group),
        ):
            async with _require_statement(db, what):
                if not await step():
                    raise _lacking_error(db, what)
        return Abilities(joins_in_groups=await probe.join_in_group())
    finally:
        await probe.remove()


@dataclass(frozen=True, slots=True)
class _Probe:
    """Statements on records of one workspace that no name of a workspace can be."""

    db: Database
    id: str

    @property
    def _named(self) -> Record:
        return {"_id": record_id("", self.id), "workspace": ""}

    @property
    def _journal(self) -> Collection:
        return self.db.journal

    async def insert_twice(self) -> bool:
        await self._journal.insert_one({**self._named, "serial": 1, "parts": [{"a": "x"}]})
        try:
            await self._journal.insert_one({**self._named, "serial": 2})
        except driver.DuplicateKeyError:
            return True
        return False

    async def update(self) -> bool:
        changes = {
            "$set": {"kind": "a"}, "$inc": {"number": 2}, "$unset": {"parts": ""},
            "$setOnInsert": {"made": 1}, "$currentDate": {"at": True},
        }  # fmt: skip
        await self._journal.bulk_write([UpdateOne(self._named, changes, upsert=True)])
        found = await self._journal.find_one(self._named) or {}
        return (found.get("number"), "parts" in found, "made" in found) == (2, False, False)

    async def try_fence(self) -> bool:
        which = {**self._named, "serial": {"$lt": 1}}
        try:
            await self._journal.update_one(which, {"$set": {"serial": 9}}, upsert=True)
        except driver.DuplicateKeyError:
            return True
        return False

    async def find_and_modify(self) -> bool:
        before = await self._journal.find_one_and_update(
            self._named,
            {"$inc": {"number": 1}, "$max": {"serial": 3}},
            upsert=True,
            return_document=ReturnDocument.BEFORE,
        )
        return before is not None and (before["number"], before["serial"]) == (2, 1)

    async def try_find(self) -> bool:
        which = {"_id": {"$in": [self._named["_id"]]}, "workspace": "", "number": {"$gte": 3}}
        found = await self._journal.find(which).sort("serial", -1).limit(2).to_list()
        return [each["serial"] for each in found] == [3]

    async def try_group(self) -> bool:
        grouped = {"_id": "$kind", "sum": {"$sum": "$number"}, "last": {"$max": "$serial"}}
        found = await self._run_aggregate(grouped)
        return found == [{"_id": "a", "sum": 3, "last": 3}]

    async def join_in_group(self) -> bool:
        joined = {"$concat": ["$kind", "-", "$kind"]}
        try:
            found = await self._run_aggregate({"_id": joined, "sum": {"$sum": "$number"}})
        except driver.OperationFailure as error:
            if error.code not in UNKNOWN:
                raise
            return False
        return found == [{"_id": "a-a", "sum": 3}]

    async def remove(self) -> None:
        await self._journal.delete_many(self._named)

    async def _run_aggregate(self, grouped: Record) -> list[Record]:
        stages = [{"$match": self._named}, {"$group": grouped}]
        return await (await self._journal.aggregate(stages)).to_list()


@asynccontextmanager
async def _require_statement(db: Database, what: str) -> AsyncIterator[None]:
    """Say what a server cannot do, where it answers that it does not know a statement."""
    try:
        yield
    except driver.OperationFailure as error:
        if error.code not in UNKNOWN:
            raise
        raise _lacking_error(db, what) from error


def _lacking_error(db: Database, what: str) -> errors.StoreError:
    return errors.StoreError(
        f"MongoDB at {db.where} cannot do what Aftercall needs: {what}. Use MongoDB 4.4 or later, "
        "or another server that can; docs/operations.md lists those that were tried"
    )
