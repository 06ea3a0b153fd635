"""Suggestions that were answered, and their outcomes."""

import asyncio
import json
from collections.abc import Iterable, Sequence

from aftercall.json_values import MAX_INTEGER
from aftercall.models import Suggestion
from mongo import codec
from mongo.judging import PAGE, LatestJudged
from mongo.mongodb import bulk, by_tool, positions
from mongo.mongodb.collections import NEW, Collections, Record, key
from mongo.records import IssuedSuggestion, JudgedSuggestion, SuggestionOutcome


async def save(db: Collections, suggestions: Sequence[IssuedSuggestion]) -> None:
    """Keep those that are new."""
    await bulk.insert_new(db.suggestions, [_record(issued) for issued in suggestions])


async def get(db: Collections, workspace: str, suggestion_id: str) -> IssuedSuggestion | None:
    """A suggestion by its id."""
    record = await db.suggestions.find_one(
        {"_id": key(workspace, suggestion_id), "workspace": workspace}
    )
    if record is None:
        return None
    return IssuedSuggestion(
        workspace=workspace,
        suggestion=codec.parse(Suggestion, record["data"]),
        tool=by_tool.tool_of(record),
        signature=record["signature"],
        edit_key=record["edit_key"],
        issued_at=codec.from_microseconds(record["issued_us"]),
        estimate=record["estimate"],
    )


async def add_outcomes(db: Collections, outcomes: Sequence[SuggestionOutcome]) -> int:
    """Keep those that are new and queue them; how many that were."""
    by_workspace: dict[str, dict[str, SuggestionOutcome]] = {}
    for each in outcomes:
        name = key(each.workspace, each.suggestion_id, each.execution_id)
        by_workspace.setdefault(each.workspace, {}).setdefault(name, each)
    new = 0
    for workspace, distinct in by_workspace.items():
        first = await positions.reserve(db, workspace, "outcomes", len(distinct))
        records = [
            {
                "_id": name,
                "workspace": workspace,
                "suggestion_id": each.suggestion_id,
                "execution_id": each.execution_id,
                "outcome": each.outcome,
                "position": position,
                "queued": NEW,
            }
            for position, (name, each) in enumerate(distinct.items(), start=first)
        ]
        new += await bulk.insert_new(db.outcomes, records)
    return new


async def pending_outcomes(db: Collections, workspace: str, limit: int) -> list[SuggestionOutcome]:
    """The oldest outcomes that nothing was learned from yet, oldest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "queued": db.pending}
    records = db.outcomes.find(wanted).sort("position", 1).limit(limit)
    return [
        SuggestionOutcome(
            workspace, record["suggestion_id"], record["execution_id"], record["outcome"]
        )
        async for record in records
    ]


async def judged(db: Collections, workspace: str, limit: int) -> list[JudgedSuggestion]:
    """The latest outcomes of suggestions with an estimate, latest first, some of each agent."""
    latest = LatestJudged(limit)
    before = MAX_INTEGER
    for _ in range(latest.pages):
        if latest.is_full:
            break
        page = (
            await db.outcomes.find({"workspace": workspace, "position": {"$lt": before}})
            .sort("position", -1)
            .limit(PAGE)
            .to_list()
        )
        if not page:
            break
        before = page[-1]["position"]
        promised, agents = await asyncio.gather(
            _promised(db, workspace, (each["suggestion_id"] for each in page)),
            _agents(db, workspace, (each["execution_id"] for each in page)),
        )
        for each in page:
            if found := promised.get(each["suggestion_id"]):
                estimate, confidence = found
                agent = agents.get(each["execution_id"])
                latest.add(JudgedSuggestion(estimate, each["outcome"], agent, confidence))
    return latest.found


async def workspaces(db: Collections) -> list[str]:
    """Workspaces in which an outcome was said, in order."""
    return sorted(await db.outcomes.distinct("workspace"))


async def _promised(
    db: Collections, workspace: str, suggestion_ids: Iterable[str]
) -> dict[str, tuple[float, float]]:
    """Estimate and confidence of each suggestion that has an estimate."""
    wanted = [key(workspace, each) for each in dict.fromkeys(suggestion_ids)]
    records = db.suggestions.find(
        {"workspace": workspace, "_id": {"$in": wanted}, "estimate": {"$ne": None}},
        ["suggestion_id", "estimate", "data"],
    )
    return {
        record["suggestion_id"]: (record["estimate"], json.loads(record["data"])["confidence"])
        async for record in records
    }


async def _agents(db: Collections, workspace: str, execution_ids: Iterable[str]) -> dict[str, str]:
    wanted = [key(workspace, each) for each in dict.fromkeys(execution_ids)]
    records = db.executions.find(
        {"workspace": workspace, "_id": {"$in": wanted}}, ["execution_id", "agent"]
    )
    return {record["execution_id"]: record["agent"] async for record in records}


def _record(issued: IssuedSuggestion) -> Record:
    suggestion_id = issued.suggestion.suggestion_id
    return {
        "_id": key(issued.workspace, suggestion_id),
        **by_tool.fields(issued.tool),
        "workspace": issued.workspace,
        "suggestion_id": suggestion_id,
        "signature": issued.signature,
        "edit_key": issued.edit_key,
        "issued_us": codec.to_microseconds(issued.issued_at),
        "estimate": issued.estimate,
        "data": issued.suggestion.model_dump_json(),
    }
