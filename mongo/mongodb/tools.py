"""Registered tools, and those whose documents do not say yet what became of them.

A change is queued before the tool is written and again afterwards. The first is for a process that
dies in between; the second for an indexer that read the tool before it was written, and took the
first off the queue.
"""

from collections.abc import Sequence

from pymongo import UpdateOne

from aftercall.models import Tool
from mongo import codec
from mongo.mongodb import bulk, by_tool, executions, positions
from mongo.mongodb.collections import NEW, Collections, Record, key, within
from mongo.records import ChangedTool, StoredTool, ToolKey

_AT_ONCE = 1000
"""Tools that are queued in one round."""


def changed_id(tool: ToolKey, tool_id: str) -> str:
    """The `_id` of what says that a tool of this id and name has changed."""
    server = codec.server_column(tool.server_name)
    return key(tool.workspace, server, tool.tool_name, tool_id)


async def put(db: Collections, stored: StoredTool) -> None:
    """Register a tool or replace it, keep its input schema, and queue it.

    Put under another name, it is queued under the old one first.
    """
    workspace, tool = stored.workspace, stored.tool
    await executions.save_schemas(db, [(workspace, tool.schema_hash, tool.input_schema)])
    names = list(dict.fromkeys([*await _names(db, workspace, tool.tool_id), stored.tool_key]))
    await _queue(db, names, tool.tool_id)
    revision = await positions.reserve(db, workspace, "tools")
    record = {
        "_id": key(workspace, tool.tool_id),
        **by_tool.fields(stored.tool_key),
        "tool_id": tool.tool_id,
        "revision": revision,
        "data": tool.model_dump_json(),
    }
    await bulk.put(db.tools, [record])
    await _queue(db, names, tool.tool_id)


async def delete(db: Collections, workspace: str, tool_id: str) -> bool:
    """Remove a tool and queue that; False when there was none."""
    names = await _names(db, workspace, tool_id)
    if not names:
        return False
    await _queue(db, names, tool_id)
    result = await db.tools.delete_one(_one(workspace, tool_id))
    if not result.deleted_count:
        return False
    await _queue(db, names, tool_id)
    return True


async def get(db: Collections, workspace: str, tool_id: str) -> StoredTool | None:
    """A tool by its id."""
    return _stored(await db.tools.find_one(_one(workspace, tool_id)))


async def get_several(db: Collections, workspace: str, tool_ids: Sequence[str]) -> list[StoredTool]:
    """Those that exist, in the order of the ids, each once."""
    wanted = {key(workspace, each): None for each in tool_ids}
    if not wanted:
        return []
    records = db.tools.find({"workspace": workspace, "_id": {"$in": list(wanted)}})
    found = {record["_id"]: _stored(record) async for record in records}
    return [stored for name in wanted if (stored := found.get(name)) is not None]


async def find(db: Collections, tool: ToolKey) -> StoredTool | None:
    """The tool put last under this name."""
    return _stored(await db.tools.find_one(by_tool.fields(tool), sort=[("revision", -1)]))


async def list_all(db: Collections, workspace: str) -> list[StoredTool]:
    """All of a workspace, by id."""
    records = db.tools.find({"workspace": workspace, "_id": within(workspace)}).sort("_id", 1)
    return [stored async for record in records if (stored := _stored(record)) is not None]


async def changed(db: Collections, workspace: str, limit: int) -> list[ChangedTool]:
    """The oldest changes that no document says yet, oldest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "queued": db.pending}
    records = db.changed_tools.find(wanted).sort("position", 1).limit(limit)
    return [
        ChangedTool(record["position"], by_tool.tool_of(record), record["tool_id"])
        async for record in records
    ]


async def queue_all(
    db: Collections, workspace: str, generation: int, others: Sequence[int]
) -> None:
    """Queue all registered tools for a generation, but where `queued` is one of `others`.

    Those that are gone have no document to be made.
    """
    after = 0
    while True:
        wanted = {"workspace": workspace, "revision": {"$gt": after}}
        names = ["workspace", "server_name", "tool_name", "tool_id", "revision"]
        page = await db.tools.find(wanted, names).sort("revision", 1).limit(_AT_ONCE).to_list()
        if not page:
            return
        after = page[-1]["revision"]
        first = await positions.reserve(db, workspace, "changed_tools", len(page))
        changes: list[bulk.Operation] = [
            UpdateOne(
                {
                    "_id": changed_id(by_tool.tool_of(record), record["tool_id"]),
                    "workspace": workspace,
                    "queued": {"$nin": list(others)},
                },
                {
                    "$set": {"queued": generation, "position": position},
                    "$setOnInsert": {
                        name: record[name] for name in ("server_name", "tool_name", "tool_id")
                    },
                },
                upsert=True,
            )
            for position, record in enumerate(page, start=first)
        ]
        await bulk.upsert(db.changed_tools, changes)


async def _queue(db: Collections, names: Sequence[ToolKey], tool_id: str) -> None:
    """At new positions, so that what was read at the old ones is out of date, and says so."""
    workspace = names[0].workspace
    first = await positions.reserve(db, workspace, "changed_tools", len(names))
    records = [
        {
            "_id": changed_id(name, tool_id),
            **by_tool.fields(name),
            "tool_id": tool_id,
            "position": position,
            "queued": NEW,
        }
        for position, name in enumerate(names, start=first)
    ]
    await bulk.put(db.changed_tools, records)


async def _names(db: Collections, workspace: str, tool_id: str) -> list[ToolKey]:
    """Under which name the tool is registered; at most one."""
    record = await db.tools.find_one(
        _one(workspace, tool_id), ["workspace", "server_name", "tool_name"]
    )
    return [] if record is None else [by_tool.tool_of(record)]


def _one(workspace: str, tool_id: str) -> Record:
    return {"_id": key(workspace, tool_id), "workspace": workspace}


def _stored(record: Record | None) -> StoredTool | None:
    if record is None:
        return None
    return StoredTool(record["workspace"], codec.parse(Tool, record["data"]))
