"""Keys and the audit in MongoDB: collections KEYS and AUDIT.

Without transactions: an entry is written first, under the next position, which only one writer can
take; then the key that it is about, then the head. The next writer moves a head on that lags.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pymongo import DESCENDING, UpdateOne
from pymongo.errors import DuplicateKeyError

from mongo.errors import KeyChangedError
from mongo.mongodb.database import Part, Record, guard_method, write
from mongo.mongodb.readable import to_micros
from mongo.mongodb.store import MongoOptions, open_database
from mongo.protocol import ControlStore
from mongo.records import AuditEntry, AuditHead, StoredKey, decode_json, encode_json

_HEAD = "head"
"""The record of KEYS that is no key: ids of keys have a prefix."""
_KEY = "key:"


class MongoControl(Part):
    """As `mongo.protocol.ControlStore`."""

    @guard_method
    async def read_head(self) -> AuditHead:
        row = await self._db.keys.find_one({"_id": _HEAD})
        return AuditHead(row["position"], row["hash"]) if row else AuditHead()

    @guard_method
    async def list_keys(self) -> list[StoredKey]:
        return [
            replace(
                decode_json(StoredKey, row["data"].encode()),
                used_at=(used := row.get("used_at")) and datetime.fromtimestamp(used / 1e6, UTC),
            )
            async for row in self._db.keys.find({"_id": {"$gt": _KEY}}).sort("created_at")
        ]

    @guard_method
    async def append(
        self, entry: AuditEntry, key: StoredKey | None = None, before: StoredKey | None = None
    ) -> AuditEntry:
        if key is not None:
            there = await self._db.keys.find_one({"_id": _KEY + key.id}, {"data": 1})
            if (there and there["data"]) != (before and before.to_data().decode()):
                raise KeyChangedError(key.id)
        entry = await self._add_entry(entry)
        if key is not None:
            await self._put_key(key, before)
        await self._move_head(entry)
        return entry

    async def _add_entry(self, entry: AuditEntry) -> AuditEntry:
        while True:
            chained = entry.chain_to(await self.read_head())
            try:
                fields: Record = json.loads(encode_json(chained))
                await self._db.audit.insert_one({"_id": chained.position, **fields})
            except DuplicateKeyError:  # of a writer that was faster, or was killed then
                if (taken := await self._db.audit.find_one({"_id": chained.position})) is not None:
                    await self._move_head(_entry_of(taken))
                await asyncio.sleep(0)
            else:
                return chained

    async def _put_key(self, key: StoredKey, before: StoredKey | None) -> None:
        name = _KEY + key.id
        data = key.to_data().decode()
        if before is None:
            created = {"_id": name, "data": data, "created_at": to_micros(key.created_at)}
            try:
                await self._db.keys.insert_one(created)
            except DuplicateKeyError:
                raise KeyChangedError(key.id) from None
            return
        which = {"_id": name, "data": before.to_data().decode()}
        done = await self._db.keys.update_one(which, {"$set": {"data": data}})
        if not done.matched_count:
            raise KeyChangedError(key.id)

    async def _move_head(self, entry: AuditEntry) -> None:
        moved = {"position": entry.position, "hash": entry.hash}
        which = {"_id": _HEAD, "position": {"$lt": entry.position}}
        # Where it is there already the filter matches nothing, and the upsert fails by its key.
        await write(self._db.keys, [UpdateOne(which, {"$set": moved}, upsert=True)])

    @guard_method
    async def note_used(self, moments: Mapping[str, datetime]) -> None:
        await write(
            self._db.keys,
            [
                UpdateOne({"_id": _KEY + name}, {"$max": {"used_at": to_micros(moment)}})
                for name, moment in moments.items()
            ],
        )

    @guard_method
    async def list_entries(
        self, limit: int, *, before: int | None = None, workspace: str | None = None
    ) -> list[AuditEntry]:
        which: Record = {} if before is None else {"position": {"$lt": before}}
        if workspace is not None:
            which["workspace"] = workspace
        cursor = self._db.audit.find(which).sort("position", DESCENDING).limit(limit)
        return [_entry_of(row) async for row in cursor]

    async def close(self) -> None:
        await self._db.close()


async def open_mongo_control(options: MongoOptions) -> ControlStore:
    """Open the control store of a database as `open_mongo_store` does; the caller closes it."""
    return MongoControl(await open_database(options))


def _entry_of(row: Record) -> AuditEntry:
    return decode_json(AuditEntry, json.dumps({k: row[k] for k in row if k != "_id"}).encode())
