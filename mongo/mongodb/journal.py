"""The redo journal: what one commit changes, kept until all of it is changed.

A part is what changes in one collection; all parts may be applied again and again. Records that
were learned carry as `fence` the number of the commit that wrote them last. Commits of a workspace
are numbered one after the other, so a write that comes late finds a higher fence and does nothing.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from pymongo import UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError

from mongo import codec
from mongo.mongodb import changes, faults, layout, leases, queues
from mongo.mongodb.collections import Collection, Collections, Record, key, within

INLINE_BYTES = 256 << 10
"""A journal up to this size travels in the record of the lease: one round trip less."""

CHUNK_BYTES = 12 << 20
"""About how large a chunk of a larger one is: below the 16 MiB of a document."""

_UNNAMED = timedelta(hours=1)
"""Age from which a chunk is thrown away that no lease names: its writer was killed before that."""

_ROW_BYTES = 200
"""About what a row's names and ids take beside its data."""


class Row(TypedDict):
    """What becomes of one learned record."""

    id: str
    set: Record
    unset: list[str]
    first: Record
    """What is set only when the record comes into being."""


class Part(TypedDict, total=False):
    """What changes in one collection: rows that are put, or records that leave a queue."""

    into: str
    """The attribute of `Collections`."""
    rows: list[Row]
    positions: list[int]
    ids: list[str]


class Entry(TypedDict):
    """A journal as the lease's record names it."""

    id: str
    generation: int
    told: Record
    """The change that is told to others (`mongo.mongodb.changes.record`)."""
    chunks: int
    """Chunks in JOURNAL; 0 when `parts` has it all."""
    parts: list[Part]


def chunked(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """The parts in lists of at most about `CHUNK_BYTES`; large parts are divided."""
    chunk: list[Part] = []
    size = 0
    for part in parts:
        rows = part.get("rows")
        if rows is None:
            chunk.append(part)
            size += size_of(part)
            continue
        piece: list[Row] = []
        for row in rows:
            if size >= CHUNK_BYTES:
                if piece:
                    chunk.append({"into": part["into"], "rows": piece})
                yield chunk
                chunk, piece, size = [], [], 0
            piece.append(row)
            size += _row_size(row)
        if piece:
            chunk.append({"into": part["into"], "rows": piece})
    if chunk:
        yield chunk


def size_of(part: Part) -> int:
    """About how many bytes it takes."""
    return (
        sum(map(_row_size, part.get("rows", ())))
        + 16 * len(part.get("positions", ()))
        + 200 * len(part.get("ids", ()))
    )


def _row_size(row: Row) -> int:
    return _ROW_BYTES + len(row["id"]) + len(row["set"].get("data", b""))


async def write_chunks(
    db: Collections, workspace: str, entry_id: str, chunks: Sequence[list[Part]]
) -> None:
    """Keep a large journal; it means nothing until a lease's record names it."""
    for number, parts in enumerate(chunks):
        await db.journal.insert_one(
            {
                "_id": key(workspace, entry_id, f"{number:06d}"),
                "workspace": workspace,
                "written_us": codec.to_microseconds(datetime.now(UTC)),
                "parts": parts,
            }
        )


async def settle(db: Collections, name: str) -> None:
    """Apply the journal that a lease's record names, if any, and take its name away."""
    row = await db.leases.find_one(leases.place(name), {"journal": 1, "commits": 1})
    if row is None or "journal" not in row:
        return
    await finish(db, name, row["journal"], row["commits"], await layout.read_state(db))


async def finish(db: Collections, name: str, entry: Entry, fence: int, state: layout.State) -> None:
    """Apply a journal, tell others, and take its name away."""
    workspace = leases.workspace_of(name)
    # What was learned for a generation that was given up or has passed concerns nobody.
    if entry["generation"] in (state.generation, state.shadow):
        of = db.of_generation(entry["generation"])
        at = datetime.now(UTC)
        if entry["chunks"]:
            for number in range(entry["chunks"]):
                chunk = await db.journal.find_one(
                    {"_id": key(workspace, entry["id"], f"{number:06d}"), "workspace": workspace}
                )
                if chunk is None:
                    break  # another process has finished it meanwhile, and cleared it away
                await apply(of, workspace, chunk["parts"], fence, state.shadow, at)
        else:
            await apply(of, workspace, entry["parts"], fence, state.shadow, at)
    await all_of(changes.tell(db, entry["told"]), _clear(db, name, entry["id"]))
    if entry["chunks"]:
        await clear_chunks(db, workspace, entry["id"])


async def clear_unnamed(db: Collections, workspace: str) -> None:
    """Throw away old chunks that were never named; to be called by who has settled the lease."""
    which = {
        "workspace": workspace,
        "_id": within(workspace),
        "written_us": {"$lt": codec.to_microseconds(datetime.now(UTC) - _UNNAMED)},
    }
    await db.journal.delete_many(which)


async def clear_chunks(db: Collections, workspace: str, entry_id: str) -> None:
    """Throw away the chunks of a journal that was applied, or never named."""
    which = {"workspace": workspace, "_id": within(workspace, entry_id)}
    await db.journal.delete_many(which)


async def _clear(db: Collections, name: str, entry_id: str) -> None:
    await db.leases.update_one(
        {**leases.place(name), "journal.id": entry_id}, {"$unset": {"journal": ""}}
    )


async def apply(
    db: Collections,
    workspace: str,
    parts: Sequence[Part],
    fence: int,
    shadow: int | None,
    at: datetime,
) -> None:
    """Make the changes of these parts, all collections at once."""
    waiting: dict[str, list[UpdateOne | UpdateMany]] = {}
    for part in parts:
        statements = _statements(workspace, part, fence, db.generation, shadow, at)
        waiting.setdefault(part["into"], []).extend(statements)
    await all_of(
        *(write(queues.collection(db, into), each) for into, each in waiting.items() if each)
    )


async def all_of(*works: Coroutine[Any, Any, None]) -> None:
    """Do all at once, and all to their end; then raise the first error, if any."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _statements(
    workspace: str, part: Part, fence: int, generation: int, shadow: int | None, at: datetime
) -> Iterator[UpdateOne | UpdateMany]:
    for row in part.get("rows", ()):
        update: Record = {"$set": {**row["set"], "fence": fence}}
        if row["unset"]:
            update["$unset"] = dict.fromkeys(row["unset"], "")
        if row["first"]:
            update["$setOnInsert"] = row["first"]
        which = {"_id": row["id"], "workspace": workspace, "fence": {"$lte": fence}}
        yield UpdateOne(which, update, upsert=True)
    expires = at if part["into"] == "executions" else None
    if positions := part.get("positions"):
        which = queues.taken(positions, workspace)
        yield from queues.done(which, generation, shadow, expires)
    if ids := part.get("ids"):
        which = {"workspace": workspace, "_id": {"$in": ids}}
        yield from queues.done(which, generation, shadow, expires)


async def write(collection: Collection, statements: Sequence[UpdateOne | UpdateMany]) -> None:
    """A key that is there already has a higher fence: a newer commit wrote it."""
    try:
        await collection.bulk_write(list(statements), ordered=False)
    except BulkWriteError as error:
        if not faults.only_duplicates(error):
            raise
