"""The step `expiry`: executions older than the retention go, in bounded batches.

How many that were is a fact, so that whoever compares the log with what was learned from it knows
of them. What is about to be deleted is noted in another one first: after a kill in between, what is
still there tells how much of it was deleted.
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel

from ingest.nightly.night import Night
from mongo.records import StoredExecution

BATCH = 2_000
"""Executions in one deletion: a fraction of a second in which others wait."""


class Intent(BaseModel):
    """What is being deleted."""

    before: datetime
    through: int
    """Position of the last of the batch."""
    size: int
    """Executions of the batch."""
    expired: int
    """How many had expired before it."""


def expired_fact(workspace: str) -> str:
    """The name of the store's fact of how many executions of a workspace have expired."""
    return f"expired:{workspace}"


def intent_fact(workspace: str) -> str:
    """The name of the store's fact of what is being deleted; empty between two batches."""
    return f"expiring:{workspace}"


async def expire(night: Night) -> dict[str, int]:
    """Delete what is too old in every workspace.

    Raises:
        NightlyLostError, StoreError: what stopped it; it can be run again.
    """
    done = {"executions": 0}
    for workspace in await night.store.workspaces():
        await _recount(night, workspace)
        if night.retention is not None:
            await _expire(night, workspace, night.clock() - night.retention, done)
    return done


async def _expire(night: Night, workspace: str, before: datetime, done: dict[str, int]) -> None:
    store = night.store
    while True:
        # Positions grow with arrival: where none of the first is old, none of the others is.
        old = _old(await store.scan_executions(workspace, 0, BATCH), before)
        if not old:
            return
        expired = int(await store.get_fact(expired_fact(workspace)) or 0)
        intent = Intent(before=before, through=old[-1].position, size=len(old), expired=expired)
        await night.put_fact(intent_fact(workspace), intent.model_dump_json())
        deleted = await store.expire_executions(workspace, before, len(old))
        await _keep(night, workspace, expired + deleted)
        done["executions"] += deleted
        night.on_progress("expiry", done["executions"])
        if deleted < len(old):
            return  # the rest was not learned from yet


async def _recount(night: Night, workspace: str) -> None:
    """Say what a run that was killed had deleted."""
    noted = await night.store.get_fact(intent_fact(workspace))
    if not noted:
        return
    intent = Intent.model_validate_json(noted)
    rest = _old(await night.store.scan_executions(workspace, 0, BATCH), intent.before)
    left = sum(each.position <= intent.through for each in rest)
    await _keep(night, workspace, intent.expired + intent.size - left)


async def _keep(night: Night, workspace: str, expired: int) -> None:
    await night.put_fact(expired_fact(workspace), str(expired))
    await night.put_fact(intent_fact(workspace), "")


def _old(page: Sequence[StoredExecution], before: datetime) -> list[StoredExecution]:
    return [each for each in page if each.received_at < before]
