"""Committing what an indexing batch learned: whole or not at all, without transactions.

What it changes is written down first (`mongo.mongodb.journal`). One compare-and-set on the record
of the workspace's `learning:` lease then names that journal: this is the commit. It is refused
where the lease has passed to another holder. Then the journal is applied, and its name taken away.
Whoever comes next where this was cut short, the same process or the next holder, applies it first.
"""

import asyncio
from collections.abc import Iterable
from itertools import chain
from uuid import uuid4

import bson
from pymongo import ReturnDocument

from mongo import codec
from mongo.errors import StoreError, StoreFencedError
from mongo.mongodb import changes, corrections, journal, layout, leases, positions, vectors
from mongo.mongodb.collections import Collections, Record, key
from mongo.mongodb.journal import Entry, Part, Row
from mongo.records import Change, IndexCommit, ToolKey


async def commit_index(
    db: Collections, commit: IndexCommit, source: str, *, is_shadow: bool = False
) -> None:
    """Apply a commit to the generation that holds, or with `is_shadow` to that of `db`.

    `source` names the store that makes it, for the changes that others follow.

    Raises:
        StoreFencedError: its lease is not held any more, or its generation has passed; nothing was
            written.
    """
    workspace = commit.workspace
    _check(commit)
    repair_places, document_places, number, state = await asyncio.gather(
        _places(db, workspace, "repairs", len(commit.repairs)),
        _places(db, workspace, "documents", _queued(commit)),
        changes.reserve(db),
        layout.read_state(db),
    )
    wanted = db.generation if is_shadow else state.generation
    if commit.generation != wanted or wanted not in (state.generation, state.shadow):
        raise StoreFencedError(
            f"the commit is of generation {commit.generation}, and {state.generation} holds: "
            "nothing was written; read anew"
        )
    parts = list(_parts(commit, repair_places, document_places))
    # Encoded before anything is written, so that what cannot be stored is known by then.
    for part in parts:
        bson.encode(part)
    entry: Entry = {
        "id": uuid4().hex,
        "generation": commit.generation,
        "told": changes.record(number, _change(commit), source),
        "chunks": 0,
        "parts": parts,
    }
    if sum(map(journal.size_of, parts)) > journal.INLINE_BYTES:
        chunks = list(journal.chunked(parts))
        await journal.write_chunks(db, workspace, entry["id"], chunks)
        entry = {**entry, "chunks": len(chunks), "parts": []}
    name = f"{leases.LEARNING}{workspace}"
    fence = await _name_journal(db, name, commit, entry)
    # Applied from what is at hand; what was written down is for whoever comes after a failure.
    await journal.finish(db, name, {**entry, "parts": parts, "chunks": 0}, fence, state)
    if entry["chunks"]:
        await journal.clear_chunks(db, workspace, entry["id"])


def _check(commit: IndexCommit) -> None:
    """Raises what is raised for a commit of several workspaces, or with another one's lease."""
    lease, workspace = commit.lease, commit.workspace
    if lease is not None and lease.name != f"{leases.LEARNING}{workspace}":
        raise StoreFencedError(
            f"the lease {lease.name} is not that of the workspace {workspace}: nothing was written"
        )
    tools = (
        row.tool
        for rows in (commit.knowledge, commit.statistics, commit.health, commit.repairs)
        for row in rows
    )
    named = chain(
        (tool.workspace for tool in tools),
        (row.workspace for row in commit.documents),
        (row.workspace for row in commit.outcomes),
        (name for name, _ in commit.removed),
    )
    if any(name != workspace for name in named):
        raise StoreError("a commit is about one workspace: make one for each")


async def _name_journal(db: Collections, name: str, commit: IndexCommit, entry: Entry) -> int:
    """Commit: name the journal in the lease's record. Returns the number of the commit."""
    lease = commit.lease
    if lease is None:
        await leases.ensure(db, name)
    which = leases.place(name) if lease is None else leases.holding(lease)
    update: Record = {"$inc": {"commits": 1}, "$set": {"journal": entry}}
    while True:
        row = await db.leases.find_one_and_update(
            {**which, "journal": {"$exists": False}},
            update,
            projection={"commits": 1},
            return_document=ReturnDocument.AFTER,
        )
        if row is not None:
            return int(row["commits"])
        if await db.leases.find_one(which, {"_id": 1}) is None:
            if entry["chunks"]:
                await journal.clear_chunks(db, commit.workspace, entry["id"])
            raise StoreFencedError(
                f"the lease {name} is not held by {'' if lease is None else lease.holder} any "
                "more: nothing was written; read anew"
            )
        # An earlier commit was cut short, or another one without a lease is being applied.
        await journal.settle(db, name)


async def _places(db: Collections, workspace: str, kind: str, count: int) -> int:
    return await positions.reserve(db, workspace, kind, count) if count else 0


def _queued(commit: IndexCommit) -> int:
    """Documents that take a place in a queue."""
    return len(commit.removed) + sum(row.is_new for row in commit.documents)


def _change(commit: IndexCommit) -> Change:
    tools: dict[ToolKey, None] = dict.fromkeys(
        row.tool for rows in (commit.knowledge, commit.statistics, commit.health) for row in rows
    )
    documents = (
        *(row.document_id for row in commit.documents),
        *(document_id for _, document_id in commit.removed),
    )
    return Change(commit.workspace, learned=tuple(tools), documents=documents)


def _parts(commit: IndexCommit, repair_place: int, document_place: int) -> Iterable[Part]:
    """All that a commit changes, one part a collection."""
    workspace = commit.workspace
    yield {
        "into": "knowledge",
        "rows": [_of_tool(row.tool, {"data": row.data}) for row in commit.knowledge],
    }
    yield {
        "into": "fitness",
        "rows": [_of_tool(row.tool, {"data": row.data}) for row in commit.statistics],
    }
    yield {
        "into": "health",
        "rows": [
            _of_tool(
                row.tool,
                {
                    "data": row.data,
                    "used_us": codec.to_microseconds(row.used_at),
                    **(
                        {}
                        if row.troubled_at is None
                        else {"troubled_us": codec.to_microseconds(row.troubled_at)}
                    ),
                },
                unset=["troubled_us"] if row.troubled_at is None else [],
            )
            for row in commit.health
        ],
    }
    yield {"into": "documents", "rows": _documents(commit, document_place)}
    yield {
        "into": "repairs",
        "rows": [
            {
                "id": key(workspace, row.failed_id, row.mended_id),
                "set": {
                    "server_name": codec.server_column(row.tool.server_name),
                    "tool_name": row.tool.tool_name,
                    "failed_id": row.failed_id,
                    "mended_id": row.mended_id,
                    "signature": row.signature,
                    "data": row.data,
                },
                "unset": [],
                "first": {"position": repair_place + place},
            }
            for place, row in enumerate(commit.repairs)
        ],
    }
    yield {"into": "executions", "positions": commit.positions}
    yield {
        "into": "outcomes",
        "ids": [
            key(each.workspace, each.suggestion_id, each.execution_id) for each in commit.outcomes
        ],
    }
    yield {"into": "marks", "positions": commit.marks}
    yield {
        "into": "ties",
        "rows": [
            {
                "id": corrections.tie_id(workspace, position),
                "set": {
                    "position": position,
                    "server_name": codec.server_column(tool.server_name),
                    "tool_name": tool.tool_name,
                },
                "unset": [],
                "first": {},
            }
            for position, tool in commit.corrections
            if tool is not None
        ],
    }
    yield {"into": "corrections", "positions": [position for position, _ in commit.corrections]}
    yield {"into": "changed_tools", "positions": commit.changed_tools}
    yield {"into": "promotion_history", "positions": commit.promotions}


def _of_tool(tool: ToolKey, fields: Record, unset: Iterable[str] = ()) -> Row:
    server_name = codec.server_column(tool.server_name)
    return {
        "id": key(tool.workspace, server_name, tool.tool_name),
        "set": {"server_name": server_name, "tool_name": tool.tool_name, **fields},
        "unset": list(unset),
        "first": {},
    }


def _documents(commit: IndexCommit, first_place: int) -> list[Row]:
    """One row for each document, so that one write tells all of it."""
    place = first_place
    rows: dict[str, Row] = {}
    for workspace, document_id in dict.fromkeys(commit.removed):
        rows[document_id] = {
            "id": key(workspace, document_id),
            "set": {
                "document_id": document_id,
                "gone": True,
                "waits": vectors.FOR_REMOVAL,
                "queued_at": place,
            },
            "unset": ["data", "gone_since"],
            "first": {},
        }
        place += 1
    for row in commit.documents:
        kept: Record = {"document_id": row.document_id, "data": row.data}
        if row.is_new:
            kept |= {"waits": vectors.FOR_VECTOR, "queued_at": place}
            place += 1
        rows[row.document_id] = {
            "id": key(row.workspace, row.document_id),
            "set": kept,
            "unset": ["gone", "gone_since"],
            "first": {},
        }
    return list(rows.values())
