"""How much there is, and in which workspaces."""

import asyncio

from mongo.mongodb import queues, vectors
from mongo.mongodb.collections import Collections, Record, within
from mongo.records import StoreCounts

MOST_COUNTED = 100_000
"""Executions of a workspace that are counted one by one; a larger number follows from the first
and the last position, and has those in it that were given out and not used."""


async def counts(db: Collections, workspace: str | None) -> StoreCounts:
    """How much there is in one workspace, or in all together; reads indexes only."""
    of: Record = {} if workspace is None else {"workspace": workspace}
    executions, tools, documents, *pending = await asyncio.gather(
        _executions(db, workspace),
        db.tools.count_documents(of),
        _documents(db, workspace),
        *(
            queues.collection(db, queue).count_documents({"queued": db.pending, **of})
            for queue in queues.QUEUES
        ),
        db.documents.count_documents({"waits": vectors.ANY, **of}),
    )
    return StoreCounts(executions, sum(pending), tools, documents)


async def workspaces(db: Collections) -> list[str]:
    """All that have anything in the log, or a tool, in order."""
    names = await asyncio.gather(
        db.executions.distinct("workspace"), db.tools.distinct("workspace")
    )
    return sorted({name for each in names for name in each})


async def _executions(db: Collections, workspace: str | None) -> int:
    if workspace is None:
        return await db.executions.estimated_document_count()
    of = {"workspace": workspace}
    counted = await db.executions.count_documents(of, limit=MOST_COUNTED)
    if counted < MOST_COUNTED:
        return counted
    place = {"position": 1, "_id": 0}
    ends = await asyncio.gather(
        *(
            db.executions.find(of, place).sort("position", direction).limit(1).to_list()
            for direction in (1, -1)
        )
    )
    if not all(ends):
        return 0
    first, last = (int(end[0]["position"]) for end in ends)
    return last - first + 1


async def _documents(db: Collections, workspace: str | None) -> int:
    """Without those that are gone."""
    if workspace is None:
        there, gone = await asyncio.gather(
            db.documents.estimated_document_count(), db.documents.count_documents({"gone": True})
        )
    else:
        of = {"workspace": workspace}
        there, gone = await asyncio.gather(
            db.documents.count_documents({"_id": within(workspace)}),
            db.documents.count_documents({**of, "gone": True}),
        )
    return there - gone
