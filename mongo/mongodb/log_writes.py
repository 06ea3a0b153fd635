"""Writing the log on MongoDB: events under the next positions, and commands applied.

What is written is idempotent: a caller that finds a command in a head applies it, any number of
times.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

import bson
from bson.codec_options import CodecOptions
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from aftercall.background import call_aside
from mongo.errors import StateConflictError
from mongo.mongodb import readable
from mongo.mongodb.database import (
    Database,
    Record,
    fenced_update,
    find_and_change,
    insert_records,
    record_id,
    write,
)
from mongo.records import EPOCH, Appended, Event, StateRow

TOMBSTONE = ""
"""The kind of what fills a position that has no event."""
_OWN_TIME = "received_us"
"""Of an event that brings its time, in microseconds since 1970, until the log has placed it."""
_FEW = 4
"""Events that are inserted without a look at which are known: one round trip less, and a tombstone
for each that was."""
_MUCH_BYTES = 256 << 10
_WITH_ZONES = CodecOptions[Record](tz_aware=True)


async def append_events(db: Database, workspace: str, events: Sequence[Event]) -> list[Appended]:
    """Append events; a verdict for each, in order."""
    known, inserted = await _insert_new(db, workspace, await records_of(workspace, events))
    return verdicts_of(workspace, events, known, inserted)


async def _insert_new(
    db: Database, workspace: str, records: Mapping[str, Record]
) -> tuple[dict[str, str], set[str]]:
    """Insert the records that are new: the hashes of those that were there, the names of others."""
    known: dict[str, str] = {}
    if len(records) > _FEW:
        known = await known_hashes(db, workspace, records)
    inserted: set[str] = set()
    while missing := [name for name in records if name not in known and name not in inserted]:
        now = time.time_ns() // 1000
        times = [records[name].get(_OWN_TIME, now) for name in missing]
        position, moment = await _reserve_positions(db, workspace, len(missing), max(times))
        placed = []
        for place, (name, own) in enumerate(zip(missing, times, strict=True), position):
            moment = max(moment, own)
            record = {**records[name], "position": place, **readable.received_fields(moment)}
            record.pop(_OWN_TIME, None)
            placed.append(record)
        taken = await insert_records(db.log, placed)
        inserted.update(name for place, name in enumerate(missing) if place not in taken)
        if taken:
            # Another process inserted the same id, or a tombstone took the place.
            known |= await known_hashes(db, workspace, [missing[place] for place in taken])
            await bury_positions(db, workspace, [position + place for place in taken])
    return known, inserted


def verdicts_of(
    workspace: str, events: Sequence[Event], known: Mapping[str, str], inserted: set[str]
) -> list[Appended]:
    """Return what became of each: `known` are the content hashes of those that were there."""
    held = dict(known)
    verdicts: list[Appended] = []
    for event in events:
        name = record_id(workspace, event.kind, event.id)
        if name in inserted and name not in held:
            held[name] = event.content_hash
            verdicts.append("accepted")
        else:
            verdicts.append("duplicate" if held[name] == event.content_hash else "conflict")
    return verdicts


async def known_hashes(db: Database, workspace: str, names: Iterable[str]) -> dict[str, str]:
    """Return the content hashes of those of the events that exist, by their names."""
    if not (wanted := list(names)):
        return {}
    which = {"_id": {"$in": wanted}, "workspace": workspace}
    return {
        row["_id"]: row["content_hash"] async for row in db.log.find(which, {"content_hash": 1})
    }


async def _reserve_positions(
    db: Database, workspace: str, count: int, latest: int
) -> tuple[int, int]:
    """Return the first of so many positions that no one else is given, and the time before them.

    `latest` is the last of their times.
    """
    while True:
        try:
            head = await db.heads.find_one_and_update(
                {"_id": workspace},
                {"$inc": {"last": count}, "$max": {"time": latest}},
                upsert=True,
                return_document=ReturnDocument.BEFORE,
            )
        except DuplicateKeyError:
            continue  # two made it at once; it is there now
        return (1, 0) if head is None else (head["last"] + 1, head.get("time", 0))


async def bury_positions(db: Database, workspace: str, positions: Iterable[int]) -> None:
    """Fill positions with tombstones, unless something is there."""
    tombstones = [
        {
            "_id": record_id(workspace, TOMBSTONE, str(position)),
            "workspace": workspace,
            "kind": TOMBSTONE,
            "position": position,
        }
        for position in positions
    ]
    await insert_records(db.log, tombstones)


async def records_of(workspace: str, events: Sequence[Event]) -> dict[str, Record]:
    """Return the events by their names, each once; many bytes are read in a thread."""

    def make_records() -> dict[str, Record]:
        records: dict[str, Record] = {}
        for event in events:
            records.setdefault(
                record_id(workspace, event.kind, event.id), _make_record(workspace, event)
            )
        return records

    return await call_aside(
        make_records, when=sum(len(event.data) for event in events) > _MUCH_BYTES
    )


def _make_record(workspace: str, event: Event) -> Record:
    """Return an event as it is stored, but for its position and the log's time.

    None is left out.
    """
    optional: Record = {
        "session": event.session,
        "schema_hash": event.schema_hash,
        _OWN_TIME: None if event.received_at == EPOCH else readable.to_micros(event.received_at),
    }
    return {
        "_id": record_id(workspace, event.kind, event.id),
        "workspace": workspace,
        "kind": event.kind,
        **readable.event_fields(event),
        "principal": event.principal,
        "content_hash": event.content_hash,
        **{name: value for name, value in optional.items() if value is not None},
    }


# Commands: one after the other in each workspace, by a compare-and-set on its head.


async def settled_head(db: Database, workspace: str) -> Record | None:
    """Return a head whose last command is applied; None without one yet."""
    while True:
        head = await find_and_change(db.heads, {"_id": workspace}, "pending")
        if head is None or "pending" not in head:
            return head
        await apply_pending(db, head)


async def check_state(db: Database, workspace: str, state: Sequence[StateRow]) -> None:
    """Raises `StateConflictError` where a row is not as it is expected."""
    wanted = [record_id(workspace, row.kind, row.key) for row in state if row.expected is not None]
    if not wanted:
        return
    rows = db.state.find({"_id": {"$in": wanted}, "workspace": workspace})
    found = {
        (row["kind"], row["key"]): row["position"] async for row in rows if row["data"] is not None
    }
    for row in state:
        if row.expected is not None and found.get((row.kind, row.key), 0) != row.expected:
            raise StateConflictError(
                f"{row.kind} {row.key[:80]!r} was changed by another command meanwhile: try again"
            )


async def apply_pending(db: Database, head: Record) -> None:
    """Do what a head states is pending, and say that it is done; any number of times."""
    workspace, pending = head["_id"], head["pending"]
    if "positions" in pending:
        await _forget_events(db, workspace, pending)
    else:
        await _apply_command(db, head)
    await db.heads.update_one(
        {"_id": workspace, "pending.id": pending["id"]}, {"$unset": {"pending": ""}}
    )


async def _forget_events(db: Database, workspace: str, pending: Record) -> None:
    """Put tombstones in the places of events, and remove schemas that no other event names."""
    which = {"position": {"$in": pending["positions"]}, "kind": {"$gt": TOMBSTONE}}
    await db.log.delete_many({"workspace": workspace, **which})
    for name in pending["schemas"]:
        if await db.log.find_one({"workspace": workspace, "schema_hash": name}, {"_id": 1}) is None:
            await db.schemas.delete_one({"_id": record_id(workspace, name), "workspace": workspace})
    await bury_positions(db, workspace, pending["positions"])


async def _apply_command(db: Database, head: Record) -> None:
    workspace, serial = head["_id"], head["commands"]
    body: Record = bson.decode(head["pending"]["body"], codec_options=_WITH_ZONES)
    records = {record["_id"]: record for record in body["records"]}
    await _insert_new(db, workspace, records)
    which = {"_id": {"$in": list(records)}, "workspace": workspace}
    positions = [row["position"] async for row in db.log.find(which, {"position": 1})]
    position = max(positions, default=head["last"])
    await write(
        db.state,
        [
            fenced_update(
                record_id(workspace, row["kind"], row["key"]),
                workspace,
                serial,
                {"$set": {**row, "position": position}},
            )
            for row in body["rows"]
        ],
    )
