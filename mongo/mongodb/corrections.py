"""What users said of executions, and the tools that it is about, which `commit` learns."""

import json
from collections.abc import Iterable, Mapping, Sequence

from pymongo.errors import DuplicateKeyError

from mongo import codec
from mongo.mongodb import by_tool, positions
from mongo.mongodb.collections import NEW, Collections, Record, key
from mongo.records import CorrectionRecord, ToolKey


def tie_id(workspace: str, position: int) -> str:
    """The `_id` of what says which tool the correction at a position is about."""
    return key(workspace, f"{position:020d}")


async def add(db: Collections, correction: CorrectionRecord) -> bool:
    """Keep a correction, not tied yet, and queue it; False when its id is known."""
    workspace = correction.workspace
    record: Record = {
        "_id": key(workspace, correction.correction_id),
        "workspace": workspace,
        "correction_id": correction.correction_id,
        "execution_id": correction.execution_id,
        "kind": correction.kind,
        "text": correction.text,
        "corrected_us": codec.to_microseconds(correction.corrected_at),
        "boundary_axes": json.dumps(correction.boundary_axes),
        "agent": correction.agent,
        "queued": NEW,
    }
    record["position"] = await positions.reserve(db, workspace, "corrections")
    try:
        await db.corrections.insert_one(record)
    except DuplicateKeyError:
        return False
    return True


async def get(db: Collections, workspace: str, correction_id: str) -> CorrectionRecord | None:
    """A correction by its id."""
    record = await db.corrections.find_one(
        {"_id": key(workspace, correction_id), "workspace": workspace}
    )
    if record is None:
        return None
    [correction] = await _tied(db, workspace, [record])
    return correction


async def pending(db: Collections, workspace: str, limit: int) -> list[CorrectionRecord]:
    """The oldest that were not looked at yet, oldest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "queued": db.pending}
    records = await db.corrections.find(wanted).sort("position", 1).limit(limit).to_list()
    return await _tied(db, workspace, records)


async def untied_of(
    db: Collections, workspace: str, execution_ids: Sequence[str]
) -> list[CorrectionRecord]:
    """Those of these executions that were looked at and have no tool, oldest first."""
    if not execution_ids:
        return []
    wanted = {
        "workspace": workspace,
        "execution_id": {"$in": list(dict.fromkeys(execution_ids))},
        "queued": db.learned,
    }
    records = await db.corrections.find(wanted).sort("position", 1).to_list()
    return [each for each in await _tied(db, workspace, records) if each.tool is None]


async def list_latest(
    db: Collections, workspace: str, limit: int, tool: ToolKey | None
) -> list[CorrectionRecord]:
    """The latest of a workspace, or those that are tied to one tool; newest first."""
    if limit <= 0:
        return []
    if tool is None:
        records = db.corrections.find({"workspace": workspace}).sort("position", -1).limit(limit)
        return await _tied(db, workspace, await records.to_list())
    ties = db.ties.find({**by_tool.fields(tool), "workspace": workspace})
    places = [tie["position"] async for tie in ties.sort("position", -1).limit(limit)]
    if not places:
        return []
    wanted = {"workspace": workspace, "position": {"$in": places}}
    found = db.corrections.find(wanted).sort("position", -1)
    return [_correction(record, tool) async for record in found]


async def tools_of(db: Collections, workspace: str, places: Iterable[int]) -> Mapping[int, ToolKey]:
    """The tools of those corrections at these positions that are tied."""
    names = [tie_id(workspace, place) for place in places]
    if not names:
        return {}
    ties = db.ties.find({"workspace": workspace, "_id": {"$in": names}})
    return {tie["position"]: by_tool.tool_of(tie) async for tie in ties}


async def _tied(
    db: Collections, workspace: str, records: Sequence[Record]
) -> list[CorrectionRecord]:
    tools = await tools_of(db, workspace, (record["position"] for record in records))
    return [_correction(record, tools.get(record["position"])) for record in records]


def _correction(record: Record, tool: ToolKey | None) -> CorrectionRecord:
    return CorrectionRecord(
        workspace=record["workspace"],
        correction_id=record["correction_id"],
        execution_id=record["execution_id"],
        kind=record["kind"],
        text=record["text"],
        corrected_at=codec.from_microseconds(record["corrected_us"]),
        boundary_axes=tuple(json.loads(record["boundary_axes"])),
        agent=record["agent"],
        tool=tool,
        position=record["position"],
    )
