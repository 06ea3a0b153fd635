"""Failures that somebody marked."""

import json
from collections.abc import Sequence

from pymongo.errors import DuplicateKeyError

from mongo import codec
from mongo.mongodb import by_tool, positions
from mongo.mongodb.collections import NEW, Collections, Record, key
from mongo.records import FailureRecord, ToolKey


async def add(db: Collections, mark: FailureRecord) -> bool:
    """Keep a mark and queue it; False when its id is known."""
    workspace = mark.tool.workspace
    record: Record = {
        "_id": key(workspace, mark.mark_id),
        **by_tool.fields(mark.tool),
        "tool_id": mark.tool_id,
        "mark_id": mark.mark_id,
        "version": mark.version,
        "scenario": mark.scenario,
        "error_message": mark.error_message,
        "severity": mark.severity,
        "marked_us": codec.to_microseconds(mark.marked_at),
        "negative_tags": json.dumps(mark.negative_tags),
        "queued": NEW,
    }
    if mark.execution_id is not None:
        record["execution_id"] = mark.execution_id
    record["position"] = await positions.reserve(db, workspace, "marks")
    try:
        await db.marks.insert_one(record)
    except DuplicateKeyError:
        return False
    return True


async def pending(db: Collections, workspace: str, limit: int) -> list[FailureRecord]:
    """The oldest that nothing was learned from yet, oldest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "queued": db.pending}
    records = db.marks.find(wanted).sort("position", 1).limit(limit)
    return [_mark(record) async for record in records]


async def learned_of(
    db: Collections, workspace: str, execution_ids: Sequence[str]
) -> list[FailureRecord]:
    """Those that name one of these executions and were learned from, oldest first."""
    if not execution_ids:
        return []
    wanted = {
        "workspace": workspace,
        "execution_id": {"$in": list(dict.fromkeys(execution_ids))},
        "queued": db.learned,
    }
    return [_mark(record) async for record in db.marks.find(wanted).sort("position", 1)]


async def list_latest(db: Collections, tool: ToolKey, limit: int) -> list[FailureRecord]:
    """The latest of one tool, newest first."""
    if limit <= 0:
        return []
    records = db.marks.find(by_tool.fields(tool)).sort("position", -1).limit(limit)
    return [_mark(record) async for record in records]


def _mark(record: Record) -> FailureRecord:
    return FailureRecord(
        tool=by_tool.tool_of(record),
        tool_id=record["tool_id"],
        mark_id=record["mark_id"],
        version=record["version"],
        scenario=record["scenario"],
        error_message=record["error_message"],
        severity=record["severity"],
        marked_at=codec.from_microseconds(record["marked_us"]),
        negative_tags=tuple(json.loads(record["negative_tags"])),
        execution_id=record.get("execution_id"),
        position=record["position"],
    )
