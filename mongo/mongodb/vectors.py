"""Documents that wait for their vectors, or for their vectors to be removed.

A document's record says so itself, so that one write tells all of it: `waits` is for what,
`queued_at` its place. One that is gone stays as a tombstone, `gone`, until long after its vector is
removed: what a process that slept meanwhile still writes finds its fence.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pymongo import UpdateOne

from mongo.mongodb.collections import Collections, Record, key
from mongo.records import DocumentRow, RemovedDocument

FOR_VECTOR = 1
"""`waits` of a document that has no vector yet."""

FOR_REMOVAL = 2
"""`waits` of a document that is gone and may still have a vector."""

ANY = {"$in": [FOR_VECTOR, FOR_REMOVAL]}
"""The condition on `waits` of a document that waits for anything."""


async def pending(db: Collections, workspace: str, limit: int) -> list[DocumentRow]:
    """The oldest documents that have no vector yet, oldest first."""
    if limit < 1:
        return []
    rows = db.documents.find(
        {"workspace": workspace, "waits": FOR_VECTOR}, {"document_id": 1, "data": 1, "queued_at": 1}
    )
    return [
        DocumentRow(
            workspace, row["document_id"], row["data"], is_new=True, position=row["queued_at"]
        )
        async for row in rows.sort("queued_at", 1).limit(limit)
    ]


async def mark_embedded(db: Collections, documents: Sequence[DocumentRow]) -> None:
    """Take documents off the queue of those without a vector, unless they were queued anew."""
    off = {"$unset": {"waits": "", "queued_at": ""}}
    changes = [
        UpdateOne(
            {
                "_id": key(row.workspace, row.document_id),
                "workspace": row.workspace,
                "waits": FOR_VECTOR,
                "queued_at": row.position,
            },
            off,
        )
        for row in documents
    ]
    if changes:
        await db.documents.bulk_write(changes, ordered=False)


async def removed(db: Collections, workspace: str, limit: int) -> list[RemovedDocument]:
    """The oldest that are gone and may still have a vector, oldest first."""
    if limit < 1:
        return []
    rows = db.documents.find(
        {"workspace": workspace, "waits": FOR_REMOVAL}, {"document_id": 1, "queued_at": 1}
    )
    return [
        RemovedDocument(row["queued_at"], workspace, row["document_id"])
        async for row in rows.sort("queued_at", 1).limit(limit)
    ]


async def mark_removed(db: Collections, documents: Sequence[RemovedDocument]) -> None:
    """Take documents off the queue of those whose vectors are to go."""
    off = {"$unset": {"waits": "", "queued_at": ""}}
    buried = {**off, "$set": {"gone_since": datetime.now(UTC)}}
    changes = [
        UpdateOne({**_waiting(each), "gone": is_gone}, change)
        for each in documents
        # One that is there again without a new vector stays where it is.
        for is_gone, change in ((True, buried), ({"$exists": False}, off))
    ]
    if changes:
        await db.documents.bulk_write(changes, ordered=False)


def _waiting(document: RemovedDocument) -> Record:
    return {
        "_id": key(document.workspace, document.document_id),
        "workspace": document.workspace,
        "waits": FOR_REMOVAL,
        "queued_at": document.position,
    }
