"""The health of tools, as it is read; `commit` writes it."""

from collections.abc import Sequence

from mongo import codec
from mongo.mongodb import by_tool
from mongo.mongodb.collections import Collections, Record
from mongo.records import HealthRow, ToolKey


async def get(db: Collections, tools: Sequence[ToolKey]) -> list[HealthRow]:
    """Of those tools of which any is known, in their order; each once."""
    return [_row(tool, record) for tool, record in await by_tool.fetch(db.health, tools)]


async def list_latest(
    db: Collections, workspace: str, limit: int, *, troubled: bool
) -> list[HealthRow]:
    """The latest used tools of a workspace, or the latest troubled ones; the latest first."""
    records = await _latest(db, workspace, limit, troubled=troubled)
    return [_row(by_tool.tool_of(record), record) for record in records]


async def list_names(db: Collections, workspace: str, limit: int) -> list[ToolKey]:
    """The latest used tools, the latest first, without reading what is known of them."""
    records = await _latest(
        db, workspace, limit, troubled=False, only=("workspace", "server_name", "tool_name")
    )
    return [by_tool.tool_of(record) for record in records]


async def workspaces(db: Collections) -> list[str]:
    """Workspaces of which any health is known, in order."""
    return sorted(await db.health.distinct("workspace"))


async def _latest(
    db: Collections,
    workspace: str,
    limit: int,
    *,
    troubled: bool,
    only: tuple[str, ...] | None = None,
) -> list[Record]:
    if limit <= 0:
        return []
    wanted: Record = {"workspace": workspace, "tool_name": {"$ne": ""}}
    if troubled:
        wanted["troubled_us"] = {"$exists": True}
    moment = "troubled_us" if troubled else "used_us"
    order = [(moment, -1), ("server_name", 1), ("tool_name", 1)]
    return await db.health.find(wanted, only).sort(order).limit(limit).to_list()


def _row(tool: ToolKey, record: Record) -> HealthRow:
    troubled = record.get("troubled_us")
    return HealthRow(
        tool,
        record["data"],
        codec.from_microseconds(record["used_us"]),
        None if troubled is None else codec.from_microseconds(troubled),
    )
