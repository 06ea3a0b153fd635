"""Executions and their input schemas."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime

from pymongo import UpdateOne
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.errors import BulkWriteError

from aftercall.json_values import JsonObject
from aftercall.models import Execution, Tool
from mongo import codec
from mongo.mongodb import faults, positions
from mongo.mongodb.collections import NEW, Collection, Collections, Record, key
from mongo.records import Appended, NewExecution, StoredExecution, ToolKey

MAX_BYTES = 32 << 20
"""About how much JSON is read at once, so that a queue of huge results fits in memory."""

_LATEST_ARRIVALS = 50
"""Arrivals among which the latest call is looked for: a recorder sends in about the order of the
calls, and each of these is read, however large it is."""

_MAX_CALLS = 20_000
"""Calls of all sessions of a batch that are looked through at once, the latest: their names only.
"""

_STORED = {
    "workspace": 1, "position": 1, "data": 1, "schema_hash": 1, "received_us": 1, "stands_for": 1,
}  # fmt: skip


def record(workspace: str, new: NewExecution, position: int, received_us: int) -> Record:
    """A new execution's record: fields for analysts, and its JSON text as it is.

    As BSON, large integers and some keys would come back as others.
    """
    execution = new.execution
    data = execution.model_dump_json()
    fields: Record = {
        "_id": key(workspace, execution.execution_id),
        "workspace": workspace,
        "execution_id": execution.execution_id,
        "position": position,
        "queued": NEW,
        "agent": execution.agent,
        "server_name": execution.server_name or "",
        "tool_name": execution.tool_name,
        "outcome": execution.outcome,
        "error_type": None if execution.error is None else execution.error.type,
        "timestamp": execution.timestamp,
        "duration_ms": execution.duration_ms,
        "session_id": execution.session_id,
        "sequence": execution.sequence,
        "received_at": codec.from_microseconds(received_us),
        "received_us": received_us,
        "content_hash": new.content_hash,
        "schema_hash": new.schema_hash,
        "stands_for": new.stands_for,
        "size": len(data),
        "data": data,
    }
    return {name: value for name, value in fields.items() if value is not None}


async def append(
    db: Collections, workspace: str, executions: Sequence[NewExecution]
) -> list[Appended]:
    """Insert what is new, queued. One verdict each, in order.

    Two ways to the server where nothing is known already, and one for input schemas: what is known
    is found by the server's own complaints.
    """
    held: dict[str, str] = {}
    first: dict[str, NewExecution] = {}
    for new in executions:
        first.setdefault(new.execution.execution_id, new)
    inserted: set[str] = set()
    waiting = list(first.values())
    while waiting:
        known = await _insert(db, workspace, waiting)
        inserted.update(
            new.execution.execution_id for new in waiting if new.execution.execution_id not in known
        )
        held.update(await _hashes(db, workspace, known))
        # One that was there at the insertion, yet not now, has expired in between.
        waiting = [first[each] for each in known if each not in held]
    verdicts = _verdicts(executions, inserted, held)
    # After the executions that name them, so that `expire` sees one or the other. A duplicate's
    # too: whoever stored it may have been killed before this.
    await save_schemas(
        db,
        (
            (workspace, new.schema_hash, new.input_schema)
            for new, verdict in zip(executions, verdicts, strict=True)
            if verdict != "conflict"
        ),
    )
    return verdicts


def _verdicts(
    executions: Iterable[NewExecution], inserted: set[str], held: dict[str, str]
) -> list[Appended]:
    known = dict(held)
    verdicts: list[Appended] = []
    for new in executions:
        execution_id = new.execution.execution_id
        if execution_id in inserted and execution_id not in known:
            known[execution_id] = new.content_hash
            verdicts.append("accepted")
        elif known[execution_id] == new.content_hash:
            verdicts.append("duplicate")
        else:
            verdicts.append("conflict")
    return verdicts


async def _insert(db: Collections, workspace: str, executions: Sequence[NewExecution]) -> list[str]:
    """Insert what is not there; the ids of what was."""
    position = await positions.reserve(db, workspace, "executions", len(executions))
    received_us = time.time_ns() // 1000
    records = [
        record(workspace, new, position + place, received_us)
        for place, new in enumerate(executions)
    ]
    try:
        await db.executions.insert_many(records, ordered=False)
    except BulkWriteError as error:
        if not faults.only_duplicates(error):
            raise
        return [
            executions[fault["index"]].execution.execution_id
            for fault in error.details["writeErrors"]
        ]
    return []


async def _hashes(db: Collections, workspace: str, execution_ids: Sequence[str]) -> dict[str, str]:
    if not execution_ids:
        return {}
    rows = _by_ids(db.executions, workspace, execution_ids, {"execution_id": 1, "content_hash": 1})
    return {row["execution_id"]: row["content_hash"] async for row in rows}


async def save_schemas(
    db: Collections, schemas: Iterable[tuple[str, str | None, JsonObject | None]]
) -> None:
    """Keep input schemas under workspace and hash; without both there is nothing to keep."""
    changes = {
        (workspace, schema_hash): UpdateOne(
            {"_id": key(workspace, schema_hash), "workspace": workspace},
            {
                "$setOnInsert": {
                    "schema_hash": schema_hash,
                    # Not canonical: the order of properties is the tool maker's, shown to people.
                    "data": json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
                }
            },
            upsert=True,
        )
        for workspace, schema_hash, schema in schemas
        if schema_hash is not None and schema is not None
    }
    if not changes:
        return
    try:
        await db.schemas.bulk_write(list(changes.values()), ordered=False)
    except BulkWriteError as error:
        if not faults.only_duplicates(error):  # those another process kept at the same moment
            raise


async def get(db: Collections, workspace: str, execution_id: str) -> Execution | None:
    """One execution with its input schema."""
    row = await db.executions.find_one(
        {"_id": key(workspace, execution_id), "workspace": workspace}, _STORED
    )
    if row is None:
        return None
    execution = codec.parse(Execution, row["data"])
    if "schema_hash" not in row:
        return execution
    schema = await get_schema(db, workspace, row["schema_hash"])
    return execution if schema is None else execution.model_copy(update={"input_schema": schema})


async def get_several(
    db: Collections, workspace: str, execution_ids: Sequence[str], *, learned: bool
) -> list[StoredExecution]:
    """Those that exist, in the order of the ids; with `learned`, that were learned from."""
    distinct = list(dict.fromkeys(execution_ids))
    if not distinct:
        return []
    rows = _by_ids(db.executions, workspace, distinct, _STORED, _of(db, learned=learned))
    found = {stored.execution.execution_id: stored async for stored in _each(rows)}
    return [found[execution_id] for execution_id in distinct if execution_id in found]


async def latest_call(
    db: Collections,
    workspace: str,
    session_id: str,
    server_name: str | None,
    tool_name: str | None,
) -> StoredExecution | None:
    """The latest call by its own time and sequence, among the latest arrivals of the session.

    Of calls at one time, one without a sequence comes before all others.
    """
    which: Record = {"workspace": workspace, "session_id": session_id}
    if server_name is not None:
        which["server_name"] = server_name
    if tool_name is not None:
        which["tool_name"] = tool_name
    # From the index alone: the session's executions are read only where they are the latest.
    latest = db.executions.find(which, {"position": 1, "_id": 0}).sort("position", -1)
    arrivals = [row["position"] async for row in latest.limit(_LATEST_ARRIVALS)]
    if not arrivals:
        return None
    rows = db.executions.find({"workspace": workspace, "position": {"$in": arrivals}}, _STORED)
    return max([stored async for stored in _each(rows)], key=_moment)


def _moment(stored: StoredExecution) -> tuple[datetime, bool, int, int]:
    sequence = stored.execution.sequence
    return (stored.execution.timestamp, sequence is not None, sequence or 0, stored.position)


async def session_calls(
    db: Collections,
    sessions: Sequence[tuple[ToolKey, str]],
    limit: int,
    before: int,
    *,
    learned: bool,
) -> list[StoredExecution]:
    """The latest `limit` below position `before`, by tool and session, oldest arrival first.

    Two queries a workspace; a tool in a session of very many calls may take one of its own.
    """
    if limit < 1:
        return []
    of = _of(db, learned=learned)
    by_workspace: dict[str, list[tuple[ToolKey, str]]] = {}
    for tool, session_id in dict.fromkeys(sessions):
        by_workspace.setdefault(tool.workspace, []).append((tool, session_id))
    found: list[StoredExecution] = []
    for workspace, pairs in by_workspace.items():
        positions = await _latest_positions(db, workspace, pairs, limit, {"$lt": before}, of)
        rows = db.executions.find(
            {"workspace": workspace, "position": {"$in": sorted(positions)}}, _STORED
        )
        found += [stored async for stored in _each(rows)]
    return sorted(found, key=lambda stored: stored.position)


async def _latest_positions(
    db: Collections,
    workspace: str,
    pairs: Sequence[tuple[ToolKey, str]],
    limit: int,
    position: Record,
    of: Record,
) -> list[int]:
    """Positions of the latest `limit` calls of each tool in each session."""
    latest: dict[tuple[ToolKey, str], list[int]] = {pair: [] for pair in pairs}
    rows = db.executions.find(
        {
            "workspace": workspace,
            "session_id": {"$in": sorted({session_id for _, session_id in pairs})},
            "position": position,
            **of,
        },
        {"_id": 0, "position": 1, "session_id": 1, "server_name": 1, "tool_name": 1},
    )
    seen = 0
    async for row in rows.sort("position", -1).limit(_MAX_CALLS):
        seen += 1
        tool = ToolKey(workspace, codec.server_name(row["server_name"]), row["tool_name"])
        calls = latest.get((tool, row["session_id"]))
        if calls is not None and len(calls) < limit:
            calls.append(row["position"])
    if seen == _MAX_CALLS:  # older ones were not seen
        for (tool, session_id), calls in latest.items():
            if len(calls) < limit:
                alone = db.executions.find(
                    {
                        "workspace": workspace,
                        "session_id": session_id,
                        "server_name": codec.server_column(tool.server_name),
                        "tool_name": tool.tool_name,
                        "position": position,
                        **of,
                    },
                    {"_id": 0, "position": 1},
                )
                calls[:] = [
                    row["position"] async for row in alone.sort("position", -1).limit(limit)
                ]
    return [each for calls in latest.values() for each in calls]


async def pending(db: Collections, workspace: str, limit: int) -> list[StoredExecution]:
    """The oldest that are not indexed: at most `limit`, and about `MAX_BYTES`."""
    return await _oldest(db.executions, {"workspace": workspace, "queued": db.pending}, limit)


async def scan(
    db: Collections, workspace: str, after: int, limit: int, before: datetime | None
) -> list[StoredExecution]:
    """Those of positions above `after`, in that order; at most about `MAX_BYTES`."""
    which: Record = {"workspace": workspace, "position": {"$gt": after}}
    if before is not None:
        which["received_us"] = {"$lt": codec.to_microseconds(before)}
    return await _oldest(db.analytics(db.executions), which, limit)


async def expire(db: Collections, workspace: str, before: datetime, limit: int) -> int:
    """Delete at most `limit` of the oldest that were learned from and arrived before a moment."""
    if limit < 1:
        return 0
    moment = codec.to_microseconds(before)
    oldest = db.executions.find(
        {"workspace": workspace, "queued": {"$exists": False}},
        {"received_us": 1, "schema_hash": 1},
    )
    expired = [
        row async for row in oldest.sort("position", 1).limit(limit) if row["received_us"] < moment
    ]
    if not expired:
        return 0
    deleted = await db.executions.delete_many(
        {"_id": {"$in": [row["_id"] for row in expired]}, "workspace": workspace}
    )
    hashes = {row["schema_hash"] for row in expired if "schema_hash" in row}
    if hashes:
        await _drop_schemas(db, workspace, hashes)
    return deleted.deleted_count


async def _drop_schemas(db: Collections, workspace: str, hashes: set[str]) -> None:
    """Delete those of the input schemas that no execution and no tool names any more."""
    unnamed = hashes - await _named(db, workspace, hashes)
    if not unnamed:
        return
    which = {"workspace": workspace, "_id": {"$in": [key(workspace, each) for each in unnamed]}}
    held = await db.schemas.find(which).to_list()
    await db.schemas.delete_many(which)
    # What was stored in between, before its own schema was looked for, gets it back.
    named = await _named(db, workspace, unnamed)
    for row in held:
        if row["schema_hash"] in named:
            await db.schemas.replace_one(
                {"_id": row["_id"], "workspace": workspace}, row, upsert=True
            )


async def _named(db: Collections, workspace: str, hashes: set[str]) -> set[str]:
    """Those of the input schemas that an execution or a tool names."""
    distinct = sorted(hashes)
    found = await asyncio.gather(
        *(
            db.executions.find_one({"workspace": workspace, "schema_hash": each}, {"_id": 1})
            for each in distinct
        )
    )
    named: set[str | None] = {
        each for each, row in zip(distinct, found, strict=True) if row is not None
    }
    async for row in db.tools.find({"workspace": workspace}, {"data": 1}):
        named.add(codec.parse(Tool, row["data"]).schema_hash)
    return hashes.intersection(each for each in named if each is not None)


async def get_schema(db: Collections, workspace: str, schema_hash: str) -> JsonObject | None:
    """An input schema by its hash."""
    row = await db.schemas.find_one({"_id": key(workspace, schema_hash), "workspace": workspace})
    if row is None:
        return None
    schema: JsonObject = json.loads(row["data"])
    return schema


async def _oldest(executions: Collection, which: Record, limit: int) -> list[StoredExecution]:
    """At most `limit` by position, and about `MAX_BYTES`; none only when there are none."""
    if limit < 1:
        return []
    rows = executions.find(which, {**_STORED, "size": 1}).sort("position", 1).limit(limit)
    found: list[StoredExecution] = []
    read = 0
    async with rows:
        async for row in rows:
            found.append(stored(row))
            read += row["size"]
            if read >= MAX_BYTES:
                break
    return found


def _of(db: Collections, *, learned: bool) -> Record:
    """The further condition on those that are wanted."""
    return {"queued": db.learned} if learned else {}


def _by_ids(
    executions: Collection,
    workspace: str,
    execution_ids: Iterable[str],
    fields: dict[str, int],
    of: Record | None = None,
) -> AsyncCursor[Record]:
    wanted = [key(workspace, execution_id) for execution_id in execution_ids]
    return executions.find({"_id": {"$in": wanted}, "workspace": workspace, **(of or {})}, fields)


async def _each(rows: AsyncCursor[Record]) -> AsyncIterator[StoredExecution]:
    async for row in rows:
        yield stored(row)


def stored(row: Record) -> StoredExecution:
    """An execution from its record."""
    return StoredExecution(
        position=row["position"],
        workspace=row["workspace"],
        execution=codec.parse(Execution, row["data"]),
        schema_hash=row.get("schema_hash"),
        received_at=codec.from_microseconds(row["received_us"]),
        stands_for=row["stands_for"],
    )
