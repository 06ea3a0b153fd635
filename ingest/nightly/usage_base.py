"""The base of statistics (`retrieval.usage.base`), summed up from usage by tool and day."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from mongo.protocol import LogStore
from mongo.records import ToolKey, UsageRow
from retrieval.usage.base import Base, Kept, kept_at
from retrieval.usage.counts import Gathering
from retrieval.usage.day import decoded
from retrieval.usage.spans import KEPT_DAYS, first_hour

_ROWS = 200
"""Read at a time: some 10 kB each."""


def watermark_fact(workspace: str) -> str:
    """The name of the store's fact that holds the last counted position of a workspace."""
    return f"counted:{workspace}"


async def watermark(store: LogStore, workspace: str) -> int:
    """The last counted position of a workspace.

    0 where none is told, or nothing that is understood: then all is read again, and rows know what
    of it they hold.

    Raises:
        StoreError: when the store cannot be read.
    """
    told = await store.get_fact(watermark_fact(workspace)) or ""
    return int(told) if told.isascii() and told.isdigit() else 0


async def sum_usage(store: LogStore, workspace: str, through: int, now: datetime) -> Base | None:
    """Sum up what has to be known of a workspace for windows that end now or later.

    None where a row holds more than what is counted up to `through`: a count is under way or was
    killed, and what lies behind `through` must not count twice.

    Args:
        store: holds the usage.
        workspace: whose.
        through: the position up to which the usage is counted.
        now: the time.

    Raises:
        StoreError: when the store cannot be read.
    """
    kept, gathering = kept_at(now), Gathering()
    since = now.astimezone(UTC).date() - timedelta(days=KEPT_DAYS - 1)
    after: tuple[date, ToolKey] | None = None
    while rows := await store.scan_usage(workspace, since, after, _ROWS):
        if not await asyncio.to_thread(_add, rows, gathering, kept, through):
            return None
        after = (rows[-1].day, rows[-1].tool)
        if first_hour(rows[-1].day) > kept.last:
            break
    return Base(through, now, await asyncio.to_thread(gathering.finish))


def _add(rows: Iterable[UsageRow], gathering: Gathering, kept: Kept, through: int) -> bool:
    """Whether all of them could be added."""
    for row in rows:
        begin = first_hour(row.day)
        if kept.first <= begin <= kept.last:
            usage = decoded(row.data)
            if usage.through > through:
                return False
            gathering.add(row.tool, row.day, usage, by_hour=begin >= kept.by_hour_from)
    gathering.settle()
    return True
