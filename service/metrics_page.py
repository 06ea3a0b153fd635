"""The state of the stores: whether they answer and agree; and the page of `/metrics`.

A scrape asks them, and never waits for them long.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from mongo.errors import StoreError
from retrieval.index.protocol import (
    IndexMissingError,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from retrieval.knowledge.rows.log import StoreCounts, count_rows, lag_s
from service.context import Context, Lifecycle
from service.lifecycle import Shared
from service.logs import log_event
from service.metrics import RequestMetrics

T = TypeVar("T")
logger = logging.getLogger(__name__)
WITHIN_S = 1.0
"""Seconds that the stores have at a scrape. Prometheus gives up after 10 s, with nothing."""
WORKSPACES = 8
"""Workspaces with work whose oldest execution is read at a scrape."""
_BETWEEN_LOOKS_S = 0.2
"""Seconds between looks: counts that still differ at the third, with no change, are wrong."""
_CURE = "run `aftercall rebuild`, which makes the vectors anew from the log"


async def log_store_answers(context: Context) -> bool:
    """Return whether the log store answers; a slow one is of no use to a caller.

    Supervisors ask often: a success is kept for a second, and a failure is not kept.
    """

    async def ask_store() -> object:
        async with asyncio.timeout(2.0):
            return await context.store.metadata.get("generation")

    try:
        await context.shared.get("log store answers", ask_store, 1.0)
    except (StoreError, TimeoutError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of comparing the two stores."""

    vectors: int | None
    """In the index, over all workspaces; None when it does not answer."""
    consistent: bool = True
    problem: str | None = None
    """A sentence with its cure; None while all is well."""


async def read_agreement(context: Context) -> Agreement:
    """Return whether the index has as many vectors as it should have.

    A document without a vector is never found.

    A count of all vectors takes milliseconds on a large index, and status pages ask often: the
    result is kept for five seconds, as long as the log store counts the same.
    """
    known = await count_rows(context.store)
    return await context.shared.get(("agreement", known), lambda: _compare_stores(context), 5.0)


async def _compare_stores(context: Context) -> Agreement:
    for left in reversed(range(3)):
        before = await count_rows(context.store)
        try:
            vectors = await context.index.count_points()
        except VectorIndexUnavailableError:
            return Agreement(
                None, problem="the vector index does not answer; suggestions come from rules"
            )
        except VectorIndexError as error:
            return Agreement(
                None,
                consistent=not isinstance(error, IndexMissingError),
                problem=f"{error}; until then suggestions come from rules",
            )
        problem = explain_difference(before, vectors)
        if problem is None or await count_rows(context.store) != before:
            return Agreement(vectors)
        if left:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
    return Agreement(vectors, consistent=False, problem=problem)


def explain_difference(counts: StoreCounts, vectors: int) -> str | None:
    """Return what is wrong with a number of vectors, and the cure.

    None means that queued work explains the difference.
    """
    if (missing := counts.documents - counts.pending - vectors) > 0:
        return f"{missing:,} documents have no vector although none is queued: {_CURE}"
    if (surplus := vectors - counts.documents - counts.pending) > 0:
        return f"{surplus:,} vectors are of documents that the log store does not know: {_CURE}"
    return None


_Counted = tuple[StoreCounts, int, float]
"""The counts of the log store, its tools, and the lag of the workspace that waits longest."""


async def _read_state(context: Context | None) -> list[Metric]:
    """Return the gauges of both stores, which are asked at the same time.

    An answer that is late is left out. Without a context the service is not open yet.
    """
    if context is None:
        return [_make_gauge("ready", "Whether calls are served.", 0.0)]
    store = context.store

    async def count_stores() -> _Counted:
        cursors, heads = await store.knowledge.read_cursors(), await store.events.read_heads()
        behind = [
            name
            for name, head in heads.items()
            if name not in cursors or cursors[name].position < head.position
        ]
        lags = [await lag_s(store, each) for each in behind[:WORKSPACES]]
        tools = sum([await store.events.count_state(each, "tool") for each in heads])
        return await count_rows(store), tools, max(lags, default=0.0)

    log, vectors = await asyncio.gather(
        in_time(context.shared, "counts for metrics", count_stores),
        in_time(context.shared, "vectors for metrics", context.index.count_points),
    )
    return list(_list_families(context, log, vectors))


async def in_time(shared: Shared, key: str, ask: Callable[[], Awaitable[T]]) -> T | None:
    """Return the answer to a question; None if it fails or is late.

    While the question is open, it is not asked again.
    """
    try:
        return await asyncio.wait_for(shared.get(key, ask, 0.0), WITHIN_S)
    except (StoreError, VectorIndexError, TimeoutError):
        return None  # the page is read all the time: `aftercall_store_up` shows it, not the log
    except Exception as error:  # noqa: BLE001  # the page is read when something is wrong
        log_event(logger, "metrics could not be asked for", level="error", error=error)
        return None


def _list_families(context: Context, log: _Counted | None, vectors: int | None) -> Iterator[Metric]:
    learns = context.learning.problem is None
    # As in `/readyz`: a service that waits for a restart answers meanwhile.
    is_ready = log is not None and context.indexer.learning_problem is None
    yield _make_gauge("ready", "Whether calls are served.", float(is_ready))
    yield _make_gauge(
        "learning_up", "Whether this process can learn; 0 for a problem.", float(learns)
    )
    up = GaugeMetricFamily(
        "aftercall_store_up", "Whether a store answered this scrape in time.", labels=["store"]
    )
    up.add_metric(["log"], float(log is not None))
    up.add_metric(["vectors"], float(vectors is not None))
    yield up
    if log is not None:
        counts, tools, lag = log
        pending = "Durable and not yet usable in answers, over all workspaces."
        yield _make_gauge("pending_indexing", pending, counts.pending)
        vectorless = "Those among them that lack a vector only: learned, but not found by likeness."
        yield _make_gauge("pending_vectors", vectorless, counts.pending_vectors)
        yield _make_gauge("indexing_lag_seconds", "Age of the oldest waiting execution.", lag)
        yield _make_gauge("stored_executions", "Executions in the log store.", counts.executions)
        yield _make_gauge("registered_tools", "Registered tools.", tools)
        yield _make_gauge("documents", "Documents that were learned.", counts.documents)
    if vectors is not None:
        yield _make_gauge("vectors", "Vectors in the index, the shipped corpus included.", vectors)


def _make_gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(f"aftercall_{name}", description, value)


disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the page


async def metrics_page(requests: RequestMetrics, lifecycle: Lifecycle) -> Response:
    """Return the page of one app as it is now; it never fails, whatever the context's state."""
    context = lifecycle.context
    now = await _read_state(context)

    def write_page() -> bytes:
        counted = [context.metrics.registry] if context else []
        found = b"".join(map(generate_latest, (requests.registry, *counted, _Seen(now))))
        return context.metrics.tools.page() + found if context else found

    content = await asyncio.to_thread(write_page)
    return Response(content, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


class _Seen(Collector):
    def __init__(self, now: Iterable[Metric]) -> None:
        self._now = now

    def collect(self) -> Iterable[Metric]:
        return self._now
