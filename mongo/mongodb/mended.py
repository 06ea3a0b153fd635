"""When failures happened and when they were mended."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

from mongo import codec
from mongo.mongodb.collections import Collections, key
from mongo.records import MendedFailure


async def latest(db: Collections, workspace: str, limit: int) -> list[MendedFailure]:
    """Of the latest repairs of a workspace those whose executions are there, latest first."""
    if limit <= 0:
        return []
    repairs = (
        await db.repairs.find({"workspace": workspace}, ["failed_id", "mended_id"])
        .sort("position", -1)
        .limit(limit)
        .to_list()
    )
    if not repairs:
        return []
    failed, mended = await asyncio.gather(
        _times(db, workspace, (each["failed_id"] for each in repairs)),
        _mending(db, workspace, (each["mended_id"] for each in repairs)),
    )
    return [
        MendedFailure(failed[each["failed_id"]], *mended[each["mended_id"]])
        for each in repairs
        if each["failed_id"] in failed and each["mended_id"] in mended
    ]


async def latest_followed(db: Collections, workspace: str, limit: int) -> list[MendedFailure]:
    """Of the latest outcomes the successes that name a failure which is there, latest first.

    One that was reported of several suggestions is there once.
    """
    if limit <= 0:
        return []
    outcomes = (
        await db.outcomes.find({"workspace": workspace}, ["execution_id", "outcome"])
        .sort("position", -1)
        .limit(limit)
        .to_list()
    )
    ids = [each["execution_id"] for each in outcomes if each["outcome"] == "success"]
    wanted = [key(workspace, each) for each in dict.fromkeys(ids)]
    records = db.executions.find(
        {"workspace": workspace, "_id": {"$in": wanted}}, ["execution_id", "timestamp", "data"]
    )
    mended = {
        record["execution_id"]: (failed_id, record["timestamp"])
        async for record in records
        if (failed_id := codec.mended_by(record["data"])) is not None
    }
    failed = await _times(db, workspace, (failed_id for failed_id, _ in mended.values()))
    return [
        MendedFailure(failed[failed_id], mended_at, followed_suggestion=True)
        for failed_id, mended_at in (mended[each] for each in dict.fromkeys(ids) if each in mended)
        if failed_id in failed
    ]


async def _times(
    db: Collections, workspace: str, execution_ids: Iterable[str]
) -> dict[str, datetime]:
    wanted = [key(workspace, each) for each in dict.fromkeys(execution_ids)]
    records = db.executions.find(
        {"workspace": workspace, "_id": {"$in": wanted}}, ["execution_id", "timestamp"]
    )
    return {record["execution_id"]: record["timestamp"] async for record in records}


async def _mending(
    db: Collections, workspace: str, execution_ids: Iterable[str]
) -> dict[str, tuple[datetime, bool]]:
    """Time of each execution, and whether it followed a suggestion."""
    wanted = [key(workspace, each) for each in dict.fromkeys(execution_ids)]
    records = db.executions.find(
        {"workspace": workspace, "_id": {"$in": wanted}}, ["execution_id", "timestamp", "data"]
    )
    return {
        record["execution_id"]: (record["timestamp"], codec.follows_suggestion(record["data"]))
        async for record in records
    }
