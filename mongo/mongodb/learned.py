"""What was learned, as it is read; `commit` writes it."""

from collections.abc import Sequence

from mongo.mongodb import by_tool
from mongo.mongodb.collections import Collections, key, within
from mongo.records import DocumentRow, KnowledgeRow, RepairRow, StatisticsRow, ToolKey

MAX_BYTES = 32 << 20
"""About how much is read at once."""


async def get_knowledge(db: Collections, tool: ToolKey) -> KnowledgeRow | None:
    """What is known of one tool."""
    record = await db.knowledge.find_one(
        {"_id": by_tool.record_id(tool), "workspace": tool.workspace}
    )
    return None if record is None else KnowledgeRow(tool, record["data"])


async def get_statistics(db: Collections, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
    """Those of which something is known, in the order of the tools; each once."""
    found = await by_tool.fetch(db.fitness, tools)
    return [StatisticsRow(tool, record["data"]) for tool, record in found]


async def get_documents(
    db: Collections, workspace: str, document_ids: Sequence[str]
) -> list[DocumentRow]:
    """Those that exist, in the order of the ids."""
    wanted = {key(workspace, each): each for each in document_ids}
    if not wanted:
        return []
    records = db.documents.find(
        {"workspace": workspace, "_id": {"$in": list(wanted)}, "gone": {"$exists": False}},
        {"data": 1},
    )
    found = {record["_id"]: record["data"] async for record in records}
    return [
        DocumentRow(workspace, document_id, found[name])
        for name, document_id in wanted.items()
        if name in found
    ]


async def list_repairs(db: Collections, tool: ToolKey, limit: int) -> list[RepairRow]:
    """The latest of one tool, newest first."""
    if limit <= 0:
        return []
    records = db.repairs.find(by_tool.fields(tool)).sort("position", -1).limit(limit)
    return [
        RepairRow(
            tool, record["failed_id"], record["mended_id"], record["signature"], record["data"]
        )
        async for record in records
    ]


async def scan_documents(
    db: Collections, workspace: str, after: str, limit: int
) -> list[DocumentRow]:
    """Those of ids above `after`, in that order; at most about `MAX_BYTES`."""
    if limit <= 0:
        return []
    wanted = {
        "workspace": workspace,
        "_id": {**within(workspace), "$gt": key(workspace, after)},
        "gone": {"$exists": False},
    }
    records = db.analytics(db.documents).find(wanted, {"document_id": 1, "data": 1})
    found: list[DocumentRow] = []
    size = 0
    async with records.sort("_id", 1).limit(limit) as page:
        async for record in page:
            found.append(DocumentRow(workspace, record["document_id"], record["data"]))
            size += len(record["data"])
            if size >= MAX_BYTES:
                break
    return found
