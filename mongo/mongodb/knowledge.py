"""Generations of knowledge and their counters on MongoDB: one commit after the other, each whole.

CURSORS has one record for each workspace and generation: `position`, `serial` (of the last commit),
`fences` (the highest token of each lease that has committed), and `journal`, which is what that
commit changes until all of it is changed. A commit is one compare-and-set on this record. Then its
rows and counters are written, and the journal is taken away. Anyone who reads the cursor and finds
a journal there, the same process or another, writes first what it states.

A removed row stays for a day with the kind '': what a process slept over cannot bring it back.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal
from uuid import uuid4

import bson
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from aftercall.tables import gather_values
from mongo.errors import StoreFencedError
from mongo.mongodb import database, readable
from mongo.mongodb.database import Database, Part, Record, guard_method, record_id
from mongo.protocol import CounterDimension
from mongo.records import Commit, CounterSum, Cursor, Row, ToolKey

BASE = 0
"""The generation that trails at the edge of the retention."""
INLINE_BYTES = 256 << 10
"""A journal up to this size travels in the cursor's record: one round trip less."""
PATTERN = "pattern"
"""The kind of the rows of REFLECTION_PATTERNS."""
_GONE = ""
_OF_A_ROW = ("key", "data", "serverName", "toolName", "rank")
_BATCH = 500
_WITHOUT_BODY = {"journal.body": 0}
_SEPARATOR = "\x03"
_SERIAL: Callable[[Row], int] = attrgetter("serial")
_DIMENSIONS: tuple[CounterDimension, ...] = ("hour", "what", "tool")
_ORDERS: dict[str, list[tuple[str, int]]] = {
    "key": [("_id", 1)],
    "rank": [("rank", -1), ("key", 1)],
    "serial": [("serial", 1)],  # and no more, as the index has it: all of a commit come together
}


class MongoKnowledge(Part):
    """As `mongo.protocol.Knowledge` and `mongo.protocol.Counters`.

    `building` names the attempt to make a generation that is not current yet: a commit is refused
    from when another attempt has begun.
    """

    def __init__(self, db: Database, generation: int, building: str | None = None) -> None:
        super().__init__(db)
        self.generation = generation
        self._building = building

    @guard_method
    async def read_cursors(self) -> dict[str, Cursor]:
        rows = await self._db.cursors.find({"generation": self.generation}, _WITHOUT_BODY).to_list()
        for row in rows:
            if "journal" in row:
                await settled_cursor(self._db, row["workspace"], self.generation)
        return {row["workspace"]: Cursor(row["position"], row["serial"]) for row in rows}

    @guard_method
    async def commit(self, commit: Commit) -> int:
        db = self._db
        workspace = commit.workspace
        pieces = [
            bson.encode({"changes": piece})
            for piece in database.batch_records(self._commit_changes(commit))
        ]
        is_small = len(pieces) <= 1 and sum(map(len, pieces)) <= INLINE_BYTES
        while True:
            mark, row = await asyncio.gather(
                db.mark.find_one({"_id": database.MARK}),
                settled_cursor(db, workspace, self.generation),
            )
            self._check_commit(commit, mark or {}, row)
            serial = 1 if row is None else row["serial"] + 1
            journal: Record = {"id": uuid4().hex, "pieces": 0}
            if is_small:
                journal["body"] = pieces[0] if pieces else bson.encode({"changes": []})
            else:
                journal["pieces"] = len(pieces)
                for number, piece in enumerate(pieces):  # means nothing until the cursor names it
                    await db.journal.insert_one(
                        {
                            "_id": self._record_id(workspace, journal["id"], f"{number:06d}"),
                            "workspace": workspace,
                            "generation": self.generation,
                            "serial": serial,
                            "body": piece,
                        }
                    )
            if (done := await self._name_journal(commit, row, serial, journal)) is not None:
                # What was written down is for others who come after a failure.
                await finish_commit(db, done, pieces)
                return serial

    @guard_method
    async def get(self, workspace: str, kind: str, keys: Collection[str]) -> list[Row]:
        if not keys:
            return []
        wanted = [self._record_id(workspace, kind, each) for each in set(keys)]
        which = {"_id": {"$in": wanted}, "workspace": workspace, "kind": kind}
        return [_row_of(row) async for row in self._rows_of(kind).find(which)]

    @guard_method
    async def scan_rows(
        self,
        workspace: str,
        kind: str | None,
        limit: int,
        *,
        by: Literal["key", "rank", "serial"] = "key",
        after: str | int | None = None,
        tool: ToolKey | None = None,
    ) -> list[Row]:
        which: Record = {"workspace": workspace, "generation": self.generation, "kind": kind}
        if tool is not None:
            which |= database.tool_fields(tool)
        if by == "key":
            which["_id"] = database.ids_within(workspace, str(self.generation), str(kind))
            if after is not None:
                which["_id"]["$gt"] = self._record_id(workspace, str(kind), str(after))
        elif by == "rank":
            which["rank"] = {"$exists": True}
        else:
            which["serial"] = {"$gt": after or 0}
        if kind is not None:
            rows = self._rows_of(kind).find(which).sort(_ORDERS[by])
            together = _SERIAL if by == "serial" else None
            found, _ = await database.bound_records(rows, _row_of, limit, together)
            if by == "serial":
                return sorted(found, key=_by_serial)
            return found
        which["kind"] = {"$gt": _GONE}
        pages = await asyncio.gather(
            *(
                database.bound_records(
                    collection.find(which).sort(_ORDERS[by]), _row_of, limit, _SERIAL
                )
                for collection in (self._db.rows, self._db.patterns)
            )
        )
        # As far as all pages go; at least one commit, since that which ends first is not empty.
        last = min((rows[-1].serial for rows, is_cut in pages if is_cut), default=None)
        return sorted(
            (row for rows, _ in pages for row in rows if last is None or row.serial <= last),
            key=_by_serial,
        )

    @guard_method
    async def list_changed(
        self, workspace: str, kinds: Collection[str], after: int, limit: int
    ) -> list[tuple[str, str]]:
        which = {"workspace": workspace, "generation": self.generation, "serial": {"$gt": after}}
        names = {"_id": 0, "kind": 1, "key": 1}
        found: list[tuple[str, str]] = []
        for rows, own in gather_values((self._rows_of(kind), kind) for kind in kinds).items():
            records = rows.find({**which, "kind": {"$in": own}}, names).limit(limit - len(found))
            found += [(record["kind"], record["key"]) async for record in records]
            if len(found) >= limit:
                break
        return found

    @guard_method
    async def count_rows(self, kind: str, workspace: str | None = None) -> int:
        names = [workspace]
        if workspace is None:
            rows = self._db.cursors.find({"generation": self.generation}, {"workspace": 1})
            names = [row["workspace"] async for row in rows]
        counts = await asyncio.gather(
            *(
                self._rows_of(kind).count_documents(
                    {"workspace": name, "generation": self.generation, "kind": kind}
                )
                for name in names
            )
        )
        return sum(counts)

    @guard_method
    async def sum_counters(
        self,
        workspace: str,
        what: Sequence[str],
        *,
        since: int,
        until: int,
        by: Collection[CounterDimension] = (),
        tools: Collection[ToolKey] | None = None,
    ) -> list[CounterSum]:
        if not what:
            return []
        dimensions = [each for each in _DIMENSIONS if each in by]
        found = []
        matched = self._match_stages(workspace, what, since, until, tools)
        for values, number in (await self._sum_groups(matched, dimensions)).items():
            of = dict(zip(dimensions, values, strict=True))
            if number:
                hour = int(of["hour"]) if "hour" in of else None
                tool_key = _tool_of(workspace, of.get("tool", ""))
                found.append(CounterSum(number, hour, tool_key, of.get("what")))
        return found

    async def top_tools(
        self, workspace: str, what: Sequence[str], *, since: int, until: int, limit: int
    ) -> list[ToolKey]:
        sums = await self.sum_counters(workspace, what, since=since, until=until, by=["tool"])
        counted = {each.tool: each.number for each in sums if each.tool and each.number > 0}
        return sorted(
            counted,
            key=lambda tool: (
                -counted[tool], tool.server_name is None, tool.server_name, tool.tool_name
            ),
        )[:limit]  # fmt: skip

    def _match_stages(
        self,
        workspace: str,
        what: Sequence[str],
        since: int,
        until: int,
        tools: Collection[ToolKey] | None,
    ) -> list[Record]:
        which: Record = {
            "workspace": workspace,
            "generation": self.generation,
            "hour": {"$gte": _hour_text(since), "$lte": _hour_text(until)},
        }
        named: list[Record] = [
            {"what": {"$gte": name[:-1], "$lt": f"{name[:-1]}\U0010ffff"}}
            if name.endswith("*")
            else {"what": name}
            for name in what
        ]
        if tools is not None:
            which["tool"] = {"$in": [_tool_name(each) for each in tools]}
        # Matched in two stages: `nx-27017` forgets what stands next to `$or`.
        return [{"$match": which}, {"$match": {"$or": named}}]

    async def _sum_groups(
        self, matched: Sequence[Record], dimensions: Sequence[str]
    ) -> Mapping[tuple[str, ...], int]:
        """Sums by the values of dimensions, made by the server where it can.

        Grouped by one text: `nx-27017` groups by no record of several fields.
        """
        counters = self._db.counters
        if len(dimensions) > 1 and not self._db.abilities.joins_in_groups:
            sums: Counter[tuple[str, ...]] = Counter()
            async for row in await counters.aggregate(matched):
                sums[tuple(row[each] for each in dimensions)] += row["number"]
            return sums
        parts = [text for each in dimensions for text in (f"${each}", _SEPARATOR)][:-1]
        key: Record | str | None = {"$concat": parts} if len(parts) > 1 else None
        if len(parts) == 1:
            key = parts[0]
        grouped = {"$group": {"_id": key, "number": {"$sum": "$number"}}}
        groups = await counters.aggregate([*matched, grouped])
        most = len(dimensions) - 1
        return {
            tuple(str(group["_id"]).split(_SEPARATOR, most)) if dimensions else (): group["number"]
            async for group in groups
        }

    def _rows_of(self, kind: str) -> database.Collection:
        if kind == PATTERN:
            return self._db.patterns
        return self._db.rows

    def _record_id(self, workspace: str, *parts: str) -> str:
        return record_id(workspace, str(self.generation), *parts)

    def _check_commit(self, commit: Commit, mark: Record, row: Record | None) -> None:
        current = mark.get("generation")
        building = mark.get("building", {}).get("id")
        if self.generation not in (BASE, current) and (
            self._building is None or self._building != building
        ):
            raise StoreFencedError(
                f"generation {self.generation} is not current any more, {current} is: read anew"
            )
        position, fences = (0, {}) if row is None else (row["position"], _read_fences(row))
        if commit.moved is not None and commit.moved[0] != position:
            raise StoreFencedError(
                f"{commit.workspace} has been learned to {position} by another process: read anew"
            )
        if (lease := commit.lease) is not None and fences.get(lease.name, 0) > lease.token:
            raise StoreFencedError(
                f"the lease {lease.name} is held no more: take it again, read anew and do it again"
            )

    async def _name_journal(
        self, commit: Commit, row: Record | None, serial: int, journal: Record
    ) -> Record | None:
        before = row or {"position": 0, "fences": []}
        fences = _read_fences(before)
        if commit.lease is not None:
            fences[commit.lease.name] = commit.lease.token
        changed: Record = {
            "position": before["position"] if commit.moved is None else commit.moved[1],
            "serial": serial,
            "fences": [{"lease": name, "token": token} for name, token in fences.items()],
            "journal": journal,
        }
        named: Record = {"_id": self._record_id(commit.workspace), "workspace": commit.workspace}
        made = {**named, "generation": self.generation, **changed}
        if row is None:
            try:
                await self._db.cursors.insert_one(made)
            except DuplicateKeyError:
                return None
        else:
            which = {**named, "serial": row["serial"]}  # so it has no journal
            done = await self._db.cursors.update_one(which, {"$set": changed})
            if not done.matched_count:
                return None
        return made

    def _commit_changes(self, commit: Commit) -> Iterator[Record]:
        workspace = commit.workspace
        put = {(row.kind, row.key) for row in commit.put}
        for removal in commit.removed:
            if (removal.kind, removal.key) not in put:
                yield {
                    "into": self._rows_of(removal.kind).name,
                    "_id": self._record_id(workspace, removal.kind, removal.key),
                    "removed": True,
                    "rank": removal.rank,
                }
        # The last of several of one key is what counts, as if they were written one by one.
        for row in {(row.kind, row.key): row for row in commit.put}.values():
            fields: Record = {
                "generation": self.generation,
                "kind": row.kind,
                "key": row.key,
                "data": row.data,
                **database.tool_fields(row.tool),
                "rank": row.rank or None,
                **(readable.pattern_fields(row) if row.kind == PATTERN else {}),
            }
            yield {
                "into": self._rows_of(row.kind).name,
                "_id": self._record_id(workspace, row.kind, row.key),
                "set": {name: value for name, value in fields.items() if value is not None},
                "unset": ["gone_at", *(name for name, value in fields.items() if value is None)],
            }
        for counter, number in commit.counters.items():
            tool_name = _tool_name(counter.tool)
            hour = _hour_text(counter.hour)
            yield {
                "into": self._db.counters.name,
                "_id": self._record_id(workspace, counter.what, hour, tool_name),
                "add": number,
                "set": {
                    "generation": self.generation,
                    "what": counter.what,
                    "hour": hour,
                    "tool": tool_name,
                    **readable.counter_fields(counter.hour, counter.tool),
                },
            }


# Applying what was committed.


async def settled_cursor(db: Database, workspace: str, generation: int) -> Record | None:
    """Return a cursor's record whose last commit is applied; None without one yet."""
    which = {"_id": record_id(workspace, str(generation)), "workspace": workspace}
    while True:
        if (
            row := await database.find_and_change(db.cursors, which, "journal")
        ) is None or "journal" not in row:
            return row
        await finish_commit(db, row, await _journal_pieces(db, row))


async def finish_commit(db: Database, row: Record, pieces: Iterable[bytes]) -> None:
    """Write what a commit changes, and take its journal away; any number of times."""
    workspace = row["workspace"]
    serial = row["serial"]
    journal = row["journal"]
    for piece in pieces:
        operations = gather_values(
            (change["into"], _change_operation(workspace, serial, change))
            for change in bson.decode(piece)["changes"]
        )
        await asyncio.gather(
            *(database.write(db.database[name], each) for name, each in operations.items())
        )
    await db.cursors.update_one(
        {"_id": row["_id"], "workspace": workspace, "journal.id": journal["id"]},
        {"$unset": {"journal": ""}},
    )
    if journal["pieces"]:
        # With those of commits that were killed before they were named: they can be no more.
        old = {"workspace": workspace, "generation": row["generation"], "serial": {"$lte": serial}}
        await db.journal.delete_many(old)


async def _journal_pieces(db: Database, row: Record) -> list[bytes]:
    journal = row["journal"]
    if not journal["pieces"]:
        return [journal["body"]]
    pieces = []
    for number in range(journal["pieces"]):
        name = record_id(row["workspace"], str(row["generation"]), journal["id"], f"{number:06d}")
        piece = await db.journal.find_one({"_id": name, "workspace": row["workspace"]})
        if piece is None:
            return []  # another process has written all of it meanwhile, and cleared it away
        pieces.append(piece["body"])
    return pieces


def _change_operation(workspace: str, serial: int, change: Record) -> UpdateOne:
    name = change["_id"]
    if "removed" in change:
        which: Record = {"_id": name, "workspace": workspace, "serial": {"$lt": serial}}
        which["kind"] = {"$gt": _GONE}
        if change["rank"] is not None:
            which["rank"] = change["rank"] or None
        gone = {"kind": _GONE, "serial": serial}
        emptied = dict.fromkeys((*_OF_A_ROW, *readable.PATTERN_FIELDS), "")
        at = {"gone_at": True}  # by the clock that expires it
        return UpdateOne(which, {"$set": gone, "$unset": emptied, "$currentDate": at})
    if "add" in change:
        update = {"$inc": {"number": change["add"]}, "$setOnInsert": change["set"]}
        return database.fenced_update(name, workspace, serial, update)
    update = {"$set": change["set"], "$unset": dict.fromkeys(change["unset"], "")}
    return database.fenced_update(name, workspace, serial, update)


# Whole generations.


async def copy_base(db: Database, generation: int) -> None:
    """Fill a generation that is empty with what the base has."""
    names = db.cursors.find({"generation": BASE}, {"workspace": 1})
    for workspace in [row["workspace"] async for row in names]:
        while True:
            # What an attempt that was killed has copied, or one that the base was moved on next to.
            await _drop_generation(db, workspace, generation)
            before = await settled_cursor(db, workspace, BASE)
            for collection in (db.rows, db.patterns, db.counters):
                await _copy_generation(collection, workspace, generation)
            after = await settled_cursor(db, workspace, BASE)
            if before is None or after is None or before["serial"] == after["serial"]:
                break
        if after is not None:
            name = record_id(workspace, str(generation))
            await db.cursors.insert_one({**after, "_id": name, "generation": generation})


async def _copy_generation(
    collection: database.Collection, workspace: str, generation: int
) -> None:
    old = len(record_id(workspace, str(BASE)))
    new = record_id(workspace, str(generation))
    which = {"workspace": workspace, "generation": BASE}
    batch: list[Record] = []
    size = 0
    async for row in collection.find(which, {"gone_at": 0}):
        if row.get("kind") == _GONE:
            continue
        batch.append({**row, "_id": new + row["_id"][old:], "generation": generation})
        size += database.size_of(row)
        if len(batch) >= _BATCH or size >= database.MAX_BYTES >> 1:
            await collection.insert_many(batch, ordered=False)
            batch, size = [], 0
    if batch:
        await collection.insert_many(batch, ordered=False)


async def drop_generations(db: Database, which: Mapping[str, Any]) -> None:
    """Remove what generations have whose numbers are as `which` states; their cursors last."""
    rows = db.cursors.find({"generation": dict(which)}, {"workspace": 1, "generation": 1})
    for row in [row async for row in rows]:
        await _drop_generation(db, row["workspace"], row["generation"])
        await db.cursors.delete_one({"_id": row["_id"], "workspace": row["workspace"]})


async def _drop_generation(db: Database, workspace: str, generation: int) -> None:
    which = {"workspace": workspace, "generation": generation}
    for collection in (db.rows, db.patterns, db.counters, db.journal):
        await collection.delete_many(which)


# Records.


def _row_of(row: Record) -> Row:
    tool = database.tool_in(row["workspace"], row)
    return Row(row["kind"], row["key"], row["data"], tool, row.get("rank", 0), row["serial"])


def _read_fences(row: Record) -> dict[str, int]:
    return {each["lease"]: each["token"] for each in row["fences"]}


def _by_serial(row: Row) -> tuple[int, str, str]:
    return row.serial, row.kind, row.key


def _hour_text(hour: int) -> str:
    """Return an hour as text, whose order is that of its number."""
    return f"{hour:09d}"


def _tool_name(tool: ToolKey | None) -> str:
    """Return a tool as one text: the length of its server's name first; '' for none."""
    if tool is None:
        return ""
    server = tool.server_name or ""
    return f"{len(server)}:{server}{tool.tool_name}"


def _tool_of(workspace: str, name: str) -> ToolKey | None:
    if not name:
        return None
    length, _, names = name.partition(":")
    return ToolKey(workspace, names[: int(length)] or None, names[int(length) :])
