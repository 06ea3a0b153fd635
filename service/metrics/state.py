"""How the stores are at the moment of a scrape: asked then, and never waited for long."""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from mongo.errors import StoreError
from mongo.protocol import LogStore
from mongo.records import StoreCounts
from retrieval.index.protocol import VectorIndexError
from service.context import Context
from service.logs import log_event

T = TypeVar("T")

logger = logging.getLogger(__name__)

WITHIN_S = 1.0
"""What the stores have at a scrape. Prometheus gives up after 10 s, and then has nothing."""

WORKSPACES = 8
"""Whose oldest execution is asked for at a scrape, of those with work."""


@dataclass(frozen=True, slots=True)
class _Log:
    counts: StoreCounts
    lag_s: float


class Question(Generic[T]):
    """Asked by many, one at a time: who does not answer is not asked again meanwhile.

    Args:
        within_s: seconds that anybody waits for the answer.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._asking: asyncio.Task[T | None] | None = None

    async def answer(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """What was answered; None when it was not, or not in time."""
        task = self._asking
        if task is None or task.done():
            task = self._asking = asyncio.create_task(_asked(ask), name="ask for metrics")
        await asyncio.wait({task}, timeout=self._within_s)
        return task.result() if task.done() and not task.cancelled() else None


async def _asked(ask: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    try:
        return await ask()
    except (StoreError, VectorIndexError):
        return None  # who is asked all the time logs nothing of it; `aftercall_store_up` tells
    except Exception as error:  # noqa: BLE001  # the page is read when something is wrong
        log_event(logger, "metrics could not be asked for", level="error", error=error)
        return None


class StateOfStores:
    """Looks at the stores of an open service, both at the same time.

    Args:
        within_s: seconds that each of them has.
    """

    def __init__(self, within_s: float = WITHIN_S) -> None:
        self._log = Question[_Log](within_s)
        self._vectors = Question[int](within_s)
        self._lag = Lag()

    async def look(self, context: Context | None) -> list[Metric]:
        """What is known within the time; what is not is left out. None while it is starting."""
        if context is None:
            return [_gauge("ready", "Whether calls are served.", 0.0)]
        store, index = context.store, context.index
        log, vectors = await asyncio.gather(
            self._log.answer(lambda: self._look_at(store)), self._vectors.answer(index.count)
        )
        return list(_families(context, log, vectors))

    async def _look_at(self, store: LogStore) -> _Log:
        counts = await store.counts()
        return _Log(counts, await self._lag.seconds(store) if counts.pending else 0.0)


class Lag:
    """How long the oldest execution has waited, over all workspaces.

    A scrape asks few of them, the next one those that follow, and each also the one that had the
    oldest: so one workspace that nobody learns from is found, and seen for as long as it stands.
    """

    def __init__(self) -> None:
        self._asked_to = ""
        self._slowest: str | None = None

    async def seconds(self, store: LogStore) -> float:
        """By the clock that gave its time of arrival; 0 when nothing waits where it was asked."""
        queued = await store.queued_workspaces()
        begin = bisect_right(queued, self._asked_to)
        asked = (queued[begin:] + queued[:begin])[:WORKSPACES]
        if not asked:
            return 0.0
        self._asked_to = asked[-1]
        if self._slowest and self._slowest in queued and self._slowest not in asked:
            asked.append(self._slowest)
        oldest: dict[str, datetime] = {}
        for workspace in asked:
            for each in await store.pending(workspace, 1):
                oldest[workspace] = each.received_at
        if not oldest:
            return 0.0
        self._slowest = min(oldest, key=oldest.__getitem__)
        waited = datetime.now(UTC) - oldest[self._slowest]
        return max(0.0, waited.total_seconds())


def _families(context: Context, log: _Log | None, vectors: int | None) -> Iterator[Metric]:
    learns = context.learning.problem is None
    # As `/readyz`: who waits for a restart with another model answers meanwhile.
    is_ready = log is not None and context.indexer.problem is None
    yield _gauge("ready", "Whether calls are served.", float(is_ready))
    yield _gauge("learning_up", "Whether this process can learn; 0 for a problem.", float(learns))
    up = GaugeMetricFamily(
        "aftercall_store_up", "Whether a store answered this scrape in time.", labels=["store"]
    )
    up.add_metric(["log"], float(log is not None))
    up.add_metric(["vectors"], float(vectors is not None))
    yield up
    if log is not None:
        counts = log.counts
        yield _gauge(
            "pending_indexing",
            "Durable and not yet usable in answers, over all workspaces.",
            counts.pending,
        )
        yield _gauge("indexing_lag_seconds", "Age of the oldest waiting execution.", log.lag_s)
        yield _gauge("stored_executions", "Executions in the log store.", counts.executions)
        yield _gauge("registered_tools", "Registered tools.", counts.tools)
        yield _gauge("documents", "Documents that were learned.", counts.documents)
    if vectors is not None:
        yield _gauge("vectors", "Vectors in the index, the shipped corpus included.", vectors)


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"aftercall_{name}", told, value)
