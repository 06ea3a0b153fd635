"""Promotions: what holds, how it came to that, and what has no document yet.

A namespace's record has the position of its latest change, and stays without `data` when nothing
holds any more, so that an earlier change that is completed late cannot bring back what is gone.
"""

from collections.abc import Sequence

from aftercall.models import Promotion
from mongo import codec
from mongo.mongodb import positions, together
from mongo.mongodb.collections import NEW, Collections, Record, key
from mongo.mongodb.together import Step
from mongo.records import PromotionEvent, QueuedPromotion, StoredPromotion

HOLDS = {"$ne": None}
"""The condition on `data` of what holds."""


def history_id(workspace: str, namespace: str, position: int) -> str:
    """The `_id` of a change, in the order of changes."""
    return key(workspace, namespace, f"{position:020d}")


async def change(db: Collections, events: Sequence[PromotionEvent]) -> None:
    """Apply changes in their order, all or none, remember them, and queue what was promoted."""
    if not events:
        return
    by_workspace: dict[str, list[PromotionEvent]] = {}
    for event in events:
        by_workspace.setdefault(event.workspace, []).append(event)
    past: list[Step] = []
    present: dict[str, Step] = {}
    for workspace, its_events in by_workspace.items():
        first = await positions.reserve(db, workspace, "promotion_history", len(its_events))
        for position, event in enumerate(its_events, start=first):
            past.append(_remembered(event, position))
            held = _held(event, position)
            present[held.record_id] = held
    await together.change(db, events[0].workspace, [*past, *present.values()])


async def get(db: Collections, workspace: str, namespace: str) -> StoredPromotion | None:
    """What holds in a namespace."""
    record = await db.promotions.find_one(
        {"_id": key(workspace, namespace), "workspace": workspace, "data": HOLDS}
    )
    return None if record is None else _stored(record)


async def list_all(db: Collections, workspace: str) -> list[StoredPromotion]:
    """All that hold in a workspace, by namespace."""
    records = db.promotions.find({"workspace": workspace, "data": HOLDS}).sort("namespace", 1)
    return [_stored(record) async for record in records]


async def history(
    db: Collections, workspace: str, namespace: str, limit: int
) -> list[PromotionEvent]:
    """The latest changes in a namespace, newest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "namespace": namespace}
    records = db.promotion_history.find(wanted).sort("position", -1).limit(limit)
    return [
        PromotionEvent(
            workspace=workspace,
            namespace=namespace,
            at=codec.from_microseconds(record["at_us"]),
            action=record["action"],
            promoted=None if record["data"] is None else _stored(record),
        )
        async for record in records
    ]


async def pending(db: Collections, workspace: str, limit: int) -> list[QueuedPromotion]:
    """The oldest that have no document yet, oldest first."""
    if limit <= 0:
        return []
    wanted = {"workspace": workspace, "queued": db.pending, "data": HOLDS}
    records = db.promotion_history.find(wanted).sort("position", 1).limit(limit)
    return [QueuedPromotion(record["position"], _stored(record)) async for record in records]


def _remembered(event: PromotionEvent, position: int) -> Step:
    fields = {
        **_fields(event),
        "at_us": codec.to_microseconds(event.at),
        "action": event.action,
    }
    if event.promoted is not None:
        fields["queued"] = NEW
    name = history_id(event.workspace, event.namespace, position)
    return Step("promotion_history", name, event.workspace, position, fields)


def _held(event: PromotionEvent, position: int) -> Step:
    name = key(event.workspace, event.namespace)
    return Step("promotions", name, event.workspace, position, _fields(event))


def _fields(event: PromotionEvent) -> Record:
    held = event.promoted
    return {
        "namespace": event.namespace,
        "inherited_quality": None if held is None else held.inherited_quality,
        "data": None if held is None else held.promotion.model_dump_json(),
    }


def _stored(record: Record) -> StoredPromotion:
    return StoredPromotion(
        record["workspace"],
        record["namespace"],
        codec.parse(Promotion, record["data"]),
        record["inherited_quality"],
    )
