"""The event log and the state of commands on MongoDB.

LOG_HEADS has one record for each workspace:

============ =======================================================================
last         the position that was given out last
time         when, by the clocks of all processes: it never goes back
through      all positions up to here are taken, and `counts` and `position` say by what
counts       events up to `through` that were not erased, by kind
position     of the last event up to `through`
first        the first position that was not erased
commands     the serial number of the last command
pending      that command, until its event is in the log and its state in COMMAND_STATE; or
             positions whose events are to be forgotten, until they are tombstones
============ =======================================================================

Positions are reserved before events are inserted. One that its writer finds no use for it fills
with a tombstone (a record of the kind ''). Where a writer was killed in between, a reader waits
for two seconds, and then inserts the tombstone; the writer, should it live, finds its place taken
and takes another. So a reader never passes an event that is still to come.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

import bson
from cachetools import TTLCache
from pymongo import UpdateOne
from pymongo.errors import DocumentTooLarge

from aftercall.json_values import JsonObject
from mongo.mongodb import database, log_writes, readable
from mongo.mongodb.database import Database, Part, Record, guard_method, record_id
from mongo.records import Appended, Event, EventKind, Head, StateKind, StateRow, ToolKey

GAP_S = 2.0
"""Seconds that a reader waits for the writer that reserved a position."""
_MAX_GROUP = 2_000
"""Events that are inserted together, so that no one waits long for others."""
_MAX_FORGOTTEN = 50_000
"""Events that are forgotten together: a head holds their positions meanwhile."""
_MAX_EVENT_BYTES = 15 << 20
"""MongoDB's limit is 16 MiB; checked alone, so that one event does not fail its whole group."""
_KNOWN_SCHEMAS = 10_000
"""Hashes that are remembered for a minute, so that a schema is not sent with every call."""
_FIELDS = {"_id": 0, "workspace": 0}
_WITHOUT_BODY = {"pending.body": 0}


class _Arrival(NamedTuple):
    events: Sequence[Event]
    answer: "asyncio.Future[list[Appended]]"


class MongoEvents(Part):
    """As `mongo.protocol.EventLog`."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._waiting: dict[str, list[_Arrival]] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}
        self._known_schemas = TTLCache[tuple[str, str], bool](_KNOWN_SCHEMAS, ttl=60)

    @guard_method
    async def append(
        self, workspace: str, events: Sequence[Event], state: Sequence[StateRow] = ()
    ) -> list[Appended]:
        for event in events:
            if len(event.data) > _MAX_EVENT_BYTES:
                raise DocumentTooLarge(f"an event of {len(event.data)} bytes")
        await self._keep_schemas(workspace, events)
        if state:
            return await self._append_command(workspace, events, state)
        if not events:
            return []
        answer: asyncio.Future[list[Appended]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace, []).append(_Arrival(events, answer))
        if workspace not in self._writers:
            self._writers[workspace] = asyncio.create_task(self._write_waiting(workspace))
        return await answer

    async def _write_waiting(self, workspace: str) -> None:
        while waiting := self._waiting.get(workspace):
            group = [waiting.pop(0)]
            number = 0
            while waiting and (number := number + len(group[-1].events)) < _MAX_GROUP:
                group.append(waiting.pop(0))
            events = [event for arrival in group for event in arrival.events]
            try:
                with self._db.guard_call():
                    verdicts = await log_writes.append_events(self._db, workspace, events)
            except Exception as error:  # noqa: BLE001  # its callers raise it
                for _, answer in group:
                    if not answer.done():  # cancelled meanwhile
                        answer.set_exception(error)
                continue
            for mine, answer in group:
                answers = verdicts[: len(mine)]
                verdicts = verdicts[len(mine) :]
                if not answer.done():
                    answer.set_result(answers)
        del self._waiting[workspace], self._writers[workspace]

    @guard_method
    async def read_after(self, workspace: str, position: int, limit: int) -> list[Event]:
        first_look = (position, time.monotonic())
        while True:
            page = await _read_page(self._db, workspace, position, limit)
            if page.events or page.gap is None:
                if page.events or page.through == position:
                    return page.events
                position = page.through  # nothing but tombstones so far
                continue
            if first_look[0] != page.gap[0]:
                first_look = (page.gap[0], time.monotonic())
            if time.monotonic() - first_look[1] < GAP_S:
                await asyncio.sleep(0.02)
            else:
                await log_writes.bury_positions(self._db, workspace, range(*page.gap))
            position = page.through

    @guard_method
    async def find_events(self, workspace: str, kind: EventKind, ids: Sequence[str]) -> list[Event]:
        if not ids:
            return []
        wanted = [record_id(workspace, kind, each) for each in dict.fromkeys(ids)]
        rows = self._db.log.find({"_id": {"$in": wanted}, "workspace": workspace}, _FIELDS)
        events = [_event_of(workspace, row) async for row in rows]
        found = {event.id: event for event in events}
        return [found[each] for each in dict.fromkeys(ids) if each in found]

    @guard_method
    async def latest_events(
        self,
        workspace: str,
        kind: EventKind,
        limit: int,
        *,
        tool: ToolKey | None = None,
        sessions: Collection[str] | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        which: Record = {"workspace": workspace, "kind": kind}
        if tool is not None:
            which |= database.tool_fields(tool)
        bounds = {"$lt": before, "$gt": after}
        position = {sign: bound for sign, bound in bounds.items() if bound is not None}
        if position:
            which["position"] = position
        if limit < 1:
            return []

        async def read(condition: Record) -> list[Event]:
            rows = self._db.log.find({**which, **condition}, _FIELDS)
            rows = rows.sort("position", -1).limit(limit)
            return (await database.bound_records(rows, partial(_event_of, workspace), limit))[0]

        if sessions is None:
            return await read({})
        pages = await asyncio.gather(*(read({"session": name}) for name in set(sessions)))
        return sorted(chain.from_iterable(pages), key=lambda event: -event.position)

    @guard_method
    async def read_state(
        self,
        workspace: str,
        kind: StateKind,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[StateRow]:
        await log_writes.settled_head(self._db, workspace)
        if limit is not None and limit < 1:
            return []
        which: Record = {
            "workspace": workspace,
            "kind": kind,
            "_id": database.ids_within(workspace, kind),
            "data": {"$ne": None},
        }
        if keys is not None:
            which["_id"] = {
                "$in": [record_id(workspace, kind, each) for each in dict.fromkeys(keys)]
            }
        return [
            StateRow(kind, row["key"], row["data"], position=row["position"])
            async for row in self._db.state.find(which).sort("_id", 1).limit(limit or 0)
        ]

    @guard_method
    async def count_state(self, workspace: str, kind: StateKind) -> int:
        await log_writes.settled_head(self._db, workspace)
        which = {
            "workspace": workspace,
            "kind": kind,
            "_id": database.ids_within(workspace, kind),
            "data": {"$ne": None},
        }
        return await self._db.state.count_documents(which)

    @guard_method
    async def read_schemas(self, workspace: str, hashes: Collection[str]) -> dict[str, JsonObject]:
        if not hashes:
            return {}
        wanted = [record_id(workspace, each) for each in set(hashes)]
        rows = self._db.schemas.find({"_id": {"$in": wanted}, "workspace": workspace})
        return {row["hash"]: json.loads(row["data"]) async for row in rows}

    @guard_method
    async def find_newest(self, workspace: str) -> int:
        rows = self._db.log.find({"workspace": workspace}, {"position": 1})
        newest = await rows.sort("position", -1).limit(1).to_list()
        return newest[0]["position"] if newest else 0

    @guard_method
    async def read_heads(self) -> dict[str, Head]:
        rows = await self._db.heads.find({}, _WITHOUT_BODY).to_list()
        heads = await asyncio.gather(*(_read_head(self._db, row) for row in rows))
        return {row["_id"]: head for row, head in zip(rows, heads, strict=True) if head.position}

    @guard_method
    async def erase_events(self, workspace: str, through: int, before: datetime, limit: int) -> int:
        while True:
            if (row := await _counted_head(self._db, workspace)) is None:
                return 0
            first = row.get("first", 1)
            upto = min(through, row.get("through", 0))
            last, erased = await _oldest_events(self._db, workspace, first, upto, before, limit)
            if erased:
                counts = {f"counts.{kind}": -number for kind, number in erased.items()}
                moved = await self._db.heads.update_one(
                    {"_id": workspace, "first": row.get("first")},
                    {"$set": {"first": last + 1}, "$inc": counts},
                )
                if not moved.matched_count:
                    continue
                first = last + 1
            # With those whose eraser was killed before it deleted them.
            await self._db.log.delete_many({"workspace": workspace, "position": {"$lt": first}})
            return sum(erased.values())

    @guard_method
    async def forget_events(self, workspace: str, positions: Collection[int]) -> int:
        wanted = sorted(positions)
        parts = [wanted[at : at + _MAX_FORGOTTEN] for at in range(0, len(wanted), _MAX_FORGOTTEN)]
        return sum([await self._forget_part(workspace, part) for part in parts])

    async def _forget_part(self, workspace: str, positions: Sequence[int]) -> int:
        while True:
            if (row := await _counted_head(self._db, workspace)) is None:
                return 0
            which = {
                "workspace": workspace,
                "position": {"$in": positions},
                "kind": {"$gt": log_writes.TOMBSTONE},
            }
            named = {"kind": 1, "position": 1, "schema_hash": 1}
            if not (found := await self._db.log.find(which, named).to_list()):
                return 0
            schemas = {each["schema_hash"] for each in found if "schema_hash" in each}
            counted = Counter(
                each["kind"] for each in found if each["position"] <= row.get("through", 0)
            )
            serial = row.get("commands", 0) + 1
            pending = {
                "id": uuid4().hex,
                "positions": [each["position"] for each in found],
                "schemas": list(schemas),
            }
            as_read = {name: row.get(name) for name in ("commands", "through", "first")}
            done = await self._db.heads.update_one(
                {"_id": workspace, **as_read, "pending": None},
                {
                    "$set": {"commands": serial, "pending": pending},
                    "$inc": {"last": 0, **{f"counts.{kind}": -n for kind, n in counted.items()}},
                },
            )
            if done.matched_count:
                await log_writes.apply_pending(self._db, {"_id": workspace, "pending": pending})
                for name in schemas:
                    self._known_schemas.pop((workspace, name), None)
                return len(found)

    async def _keep_schemas(self, workspace: str, events: Iterable[Event]) -> None:
        """Before the events that name them."""
        unknown = {
            event.schema_hash: event.input_schema
            for event in events
            if event.schema_hash is not None
            and event.input_schema is not None
            and (workspace, event.schema_hash) not in self._known_schemas
        }
        operations = [
            UpdateOne(
                {"_id": record_id(workspace, name), "workspace": workspace},
                # Not canonical: the order of properties is the tool maker's, shown to people.
                {"$setOnInsert": {"hash": name, "data": json.dumps(schema, ensure_ascii=False)}},
                upsert=True,
            )
            for name, schema in unknown.items()
        ]
        await database.write(self._db.schemas, operations)
        self._known_schemas.update(((workspace, name), True) for name in unknown)

    async def _append_command(
        self, workspace: str, events: Sequence[Event], state: Sequence[StateRow]
    ) -> list[Appended]:
        records = await log_writes.records_of(workspace, events)
        body = bson.encode(
            {
                "records": list(records.values()),
                "rows": [{"kind": row.kind, "key": row.key, "data": row.data} for row in state],
            }
        )
        while True:
            if (head := await log_writes.settled_head(self._db, workspace)) is None:
                fresh = UpdateOne({"_id": workspace}, {"$setOnInsert": {"last": 0}}, upsert=True)
                await database.write(self._db.heads, [fresh])
                continue
            await log_writes.check_state(self._db, workspace, state)
            known = await log_writes.known_hashes(self._db, workspace, records)
            serial = head.get("commands", 0) + 1
            pending = {"id": uuid4().hex, "body": body}
            done = await self._db.heads.update_one(
                {"_id": workspace, "commands": head.get("commands")},  # so nothing is pending
                {"$set": {"commands": serial, "pending": pending}},
            )
            if done.matched_count:
                await log_writes.apply_pending(
                    self._db, {**head, "commands": serial, "pending": pending}
                )
                return log_writes.verdicts_of(workspace, events, known, set(records) - set(known))


# Reading.


class _Page(NamedTuple):
    events: list[Event]
    through: int
    gap: tuple[int, int] | None
    """Positions that no one has filled yet: from, and up to but without."""


async def _read_page(db: Database, workspace: str, position: int, limit: int) -> _Page:
    if limit < 1:
        return _Page([], position, None)
    events: list[Event] = []
    size = 0
    first: int | None = None
    which = {"workspace": workspace, "position": {"$gt": position}}
    async with db.log.find(which, _FIELDS).sort("position", 1).limit(limit) as rows:
        async for row in rows:
            if row["position"] != position + 1:
                if first is None:
                    head = await db.heads.find_one({"_id": workspace}, {"first": 1}) or {}
                    first = int(head.get("first", 1))
                position = max(position, first - 1)
                if row["position"] > position + 1:
                    return _Page(events, position, (position + 1, row["position"]))
            position = max(position, row["position"])
            if row["kind"] == log_writes.TOMBSTONE:
                continue
            events.append(_event_of(workspace, row))
            size += len(events[-1].data)
            if size >= database.MAX_BYTES:
                break
    return _Page(events, position, None)


def _event_of(workspace: str, row: Mapping[str, Any]) -> Event:
    return Event(
        row["kind"],
        readable.event_id(row),
        readable.event_content(row["kind"], row),
        database.tool_in(workspace, row),
        row.get("session"),
        row["principal"],
        row["content_hash"],
        row.get("schema_hash"),
        None,
        workspace,
        row["position"],
        readable.received_at(row),
    )


async def _read_head(db: Database, row: Record) -> Head:
    """Return how far a log goes; what was counted is kept, so that it is not counted again."""
    workspace = row["_id"]
    if "pending" in row:
        row = await log_writes.settled_head(db, workspace) or row
    through = row.get("through", 0)
    position = row.get("position", 0)
    counts: dict[EventKind, int] = dict(row.get("counts", {}))
    commands = row.get("commands", 0)
    if row["last"] == through:
        return Head(position, counts, commands)
    which = {"workspace": workspace, "position": {"$gt": through}}
    by_kind = {"_id": "$kind", "number": {"$sum": 1}, "position": {"$max": "$position"}}
    groups = await db.log.aggregate([{"$match": which}, {"$group": by_kind}])
    found = {group["_id"]: (group["number"], group["position"]) async for group in groups}
    if not found:
        return Head(position, counts, commands)
    number = sum(number for number, _ in found.values())
    last = max(position for _, position in found.values())
    found.pop(log_writes.TOMBSTONE, None)
    position = max((each for _, each in found.values()), default=position)
    if number == last - through:  # without a gap, so nothing will come in between
        await db.heads.update_one(
            {"_id": workspace, "through": row.get("through")},
            {
                "$set": {"through": last, "position": position},
                "$inc": {"last": 0, **{f"counts.{kind}": n for kind, (n, _) in found.items()}},
            },
        )
    for kind, (each, _) in found.items():
        counts[kind] = counts.get(kind, 0) + each
    return Head(position, counts, commands)


async def _counted_head(db: Database, workspace: str) -> Record | None:
    """Return a head that has counted all it can; what is erased then is counted no more."""
    if (row := await log_writes.settled_head(db, workspace)) is not None:
        await _read_head(db, row)
        row = await db.heads.find_one({"_id": workspace}, _WITHOUT_BODY) or row
    return row


async def _oldest_events(
    db: Database, workspace: str, first: int, upto: int, before: datetime, limit: int
) -> tuple[int, dict[str, int]]:
    last = first - 1
    counts = dict[str, int]()
    which = {"workspace": workspace, "position": {"$gte": first, "$lte": upto}}
    named = dict.fromkeys(("position", "kind", "receivedAt", "receivedUs"), 1)
    rows = db.log.find(which, named).sort("position", 1)
    async with rows:
        async for row in rows:
            if row["kind"] != log_writes.TOMBSTONE:
                if readable.received_at(row) >= before or sum(counts.values()) >= limit:
                    break
                counts[row["kind"]] = counts.get(row["kind"], 0) + 1
            last = row["position"]
    return last, counts
