"""Records that belong to one tool each: their ids, their fields, and reading many at once."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from mongo import codec
from mongo.mongodb.collections import Collection, Record, key
from mongo.records import ToolKey


def record_id(tool: ToolKey) -> str:
    """The `_id` of the only record of a tool in a collection."""
    return key(tool.workspace, codec.server_column(tool.server_name), tool.tool_name)


def fields(tool: ToolKey) -> Record:
    """The fields that name a tool; as a filter, those of its records."""
    return {
        "workspace": tool.workspace,
        "server_name": codec.server_column(tool.server_name),
        "tool_name": tool.tool_name,
    }


def tool_of(record: Mapping[str, str]) -> ToolKey:
    """The reverse of `fields`."""
    return ToolKey(
        record["workspace"], codec.server_name(record["server_name"]), record["tool_name"]
    )


async def fetch(collection: Collection, tools: Iterable[ToolKey]) -> list[tuple[ToolKey, Record]]:
    """The only record of each tool that has one, in the order of the tools; each once."""
    distinct = {tool: record_id(tool) for tool in tools}
    by_workspace: dict[str, list[str]] = {}
    for tool, name in distinct.items():
        by_workspace.setdefault(tool.workspace, []).append(name)
    pages = await asyncio.gather(
        *(_of_workspace(collection, each, names) for each, names in by_workspace.items())
    )
    found = {record["_id"]: record for page in pages for record in page}
    return [(tool, found[name]) for tool, name in distinct.items() if name in found]


async def _of_workspace(
    collection: Collection, workspace: str, names: Sequence[str]
) -> list[Record]:
    return await collection.find({"workspace": workspace, "_id": {"$in": names}}).to_list()
