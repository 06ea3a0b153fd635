"""What tools were asked for on single days, which the nightly run makes."""

import asyncio
from collections.abc import Sequence
from datetime import date

from mongo import codec
from mongo.mongodb import bulk, by_tool
from mongo.mongodb.collections import Collections, Record, key, within
from mongo.records import Lease, ToolKey, UsageRow


def record_id(tool: ToolKey, day: date) -> str:
    """The `_id` of a day of a tool: in a workspace by day, then server, then tool."""
    server = codec.server_column(tool.server_name)
    return key(tool.workspace, day.isoformat(), server, tool.tool_name)


async def get(
    db: Collections, workspace: str, tools: Sequence[tuple[ToolKey, date]]
) -> list[UsageRow]:
    """Of these tools on these days, in their order, each once; the unknown are left out."""
    wanted = {record_id(tool, day): None for tool, day in tools}
    if not wanted:
        return []
    records = db.usage.find({"workspace": workspace, "_id": {"$in": list(wanted)}})
    found = {record["_id"]: record async for record in records}
    return [_row(found[name]) for name in wanted if name in found]


async def put(db: Collections, rows: Sequence[UsageRow], lease: Lease | None = None) -> None:
    """Keep usage in the place of what was known of the same tool and day.

    Raises:
        StoreFencedError: a later holder of the lease has written one of the days.
    """
    by_workspace: dict[str, list[Record]] = {}
    for row in rows:
        record = {
            "_id": record_id(row.tool, row.day),
            **by_tool.fields(row.tool),
            "day": row.day.isoformat(),
            "data": row.data,
        }
        by_workspace.setdefault(row.tool.workspace, []).append(record)
    if lease is None:
        await asyncio.gather(*(bulk.put(db.usage, each) for each in by_workspace.values()))
        return
    for records in by_workspace.values():
        await bulk.put_fenced(db.usage, records, lease)


async def scan(
    db: Collections,
    workspace: str,
    since: date,
    after: tuple[date, ToolKey] | None,
    limit: int,
) -> list[UsageRow]:
    """From a day on, by day and then tool; those behind `after`."""
    if limit <= 0:
        return []
    names = {**within(workspace), "$gte": key(workspace, since.isoformat())}
    if after is not None:
        names["$gt"] = record_id(after[1], after[0])  # of both bounds the later one holds
    wanted = {"workspace": workspace, "_id": names}
    records = db.usage.find(wanted).sort("_id", 1).limit(limit)
    return [_row(record) async for record in records]


def _row(record: Record) -> UsageRow:
    return UsageRow(by_tool.tool_of(record), date.fromisoformat(record["day"]), record["data"])
