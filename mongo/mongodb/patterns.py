"""Consolidated patterns of failures, which the nightly run makes."""

from collections.abc import Sequence

from mongo import codec
from mongo.mongodb import leases, positions, together
from mongo.mongodb.collections import Collections, Record, key
from mongo.mongodb.together import Step
from mongo.records import Lease, PatternRow


async def get(db: Collections, workspace: str, pattern_ids: Sequence[str]) -> list[PatternRow]:
    """Those that exist, in the order of the ids, each once."""
    wanted = {key(workspace, each): None for each in pattern_ids}
    if not wanted:
        return []
    records = db.patterns.find({"workspace": workspace, "_id": {"$in": list(wanted)}})
    found = {record["_id"]: record async for record in records}
    return [_row(found[name]) for name in wanted if name in found]


async def put(
    db: Collections,
    workspace: str,
    rows: Sequence[PatternRow],
    removed: Sequence[str],
    lease: Lease | None = None,
) -> None:
    """Keep patterns in the place of those of the same id, and drop the removed; at once.

    Raises:
        StoreFencedError: the lease is held no more.
    """
    if not rows and not removed:
        return
    if lease is not None and not await leases.is_held(db, lease):
        raise leases.lost(lease)
    # One position for all: it only says which call was later.
    position = await positions.reserve(db, workspace, "patterns")
    dropped: dict[str, Record | None] = {key(workspace, each): None for each in removed}
    kept: dict[str, Record | None] = {
        key(workspace, row.pattern_id): {
            "pattern_id": row.pattern_id,
            "data": row.data,
            "last_seen_us": codec.to_microseconds(row.last_seen),
            "count": row.count,
        }
        for row in rows
    }
    await together.change(
        db,
        workspace,
        [
            Step("patterns", name, workspace, position, fields)
            for name, fields in {**dropped, **kept}.items()
        ],
    )


async def list_all(db: Collections, workspace: str, limit: int) -> list[PatternRow]:
    """Those of most failures, most first; of equals the latest seen, then by id."""
    if limit <= 0:
        return []
    order = [("count", -1), ("last_seen_us", -1), ("pattern_id", 1)]
    records = db.patterns.find({"workspace": workspace}).sort(order).limit(limit)
    return [_row(record) async for record in records]


def _row(record: Record) -> PatternRow:
    return PatternRow(
        record["workspace"],
        record["pattern_id"],
        record["data"],
        codec.from_microseconds(record["last_seen_us"]),
        record["count"],
    )
