"""The page of `/metrics`: what is counted, and how the stores are at the moment of a scrape.

Stores are asked then, and never waited for long. `prometheus_client` chooses the form, of those
that we know it to write well: it raises on a version that is no number, repeats the asked version
in its answer whatever that is, and spells names otherwise for schemes that ours do not need.
"""

import asyncio
import gzip
import logging
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mongo.errors import StoreError
from mongo.protocol import LogStore
from mongo.records import StoreCounts
from retrieval.index.protocol import VectorIndexError
from service.context import Context, Lifecycle
from service.logs import log_event
from service.metrics import RequestMetrics, ServiceMetrics

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


_OPEN_METRICS = "application/openmetrics-text"
_TEXT = "text/plain"
_MOST_OFFERS = 20
_VERSION = "1.0.0"
_UTF8 = "allow-utf-8"
_PLAIN = "underscores"


@dataclass(frozen=True, slots=True)
class PageFormat:
    """How the page is written."""

    encode: Callable[[Collector], bytes]
    content_type: str

    @property
    def is_open_metrics(self) -> bool:
        """Whether it is OpenMetrics, which names the families of counters otherwise."""
        return self.content_type.startswith(_OPEN_METRICS)


def format_for(accept: str) -> PageFormat:
    """The first form that is accepted and known; Prometheus' text 0.0.4 where there is none.

    Args:
        accept: the header, any text; only its first 20 offers are looked at.
    """
    return PageFormat(*choose_encoder(",".join(_known(accept))))


def _known(accept: str) -> Iterator[str]:
    for offer in accept.split(",", _MOST_OFFERS)[:_MOST_OFFERS]:
        media_type, *rest = (part.strip() for part in offer.split(";"))
        given = dict(part.partition("=")[::2] for part in rest)
        version = given.get("version", _VERSION if media_type == _OPEN_METRICS else "")
        if media_type in {_OPEN_METRICS, _TEXT} and version == _VERSION and given.get("q") != "0":
            escaping = _UTF8 if given.get("escaping") == _UTF8 else _PLAIN
            yield f"{media_type}; version={_VERSION}; escaping={escaping}"


_GZIP_LEVEL = 1
"""A page is mostly repetition: the highest level takes ten times as long for a fifth less."""


@dataclass(frozen=True, slots=True)
class Page:
    """The bytes, and what an answer's head says of them."""

    content: bytes
    headers: dict[str, str]


class MetricsPage:
    """Writes the page of one app, whatever the state of its services; it never fails.

    Args:
        requests: counted from the start of the app on.
        lifecycle: where the services are, once they are open.
        within_s: seconds that a store has to say how it is.
    """

    def __init__(
        self, requests: RequestMetrics, lifecycle: Lifecycle, *, within_s: float = WITHIN_S
    ) -> None:
        self._requests = requests
        self._lifecycle = lifecycle
        self._state = StateOfStores(within_s)
        # Of its own: it must not wait behind a batch that is learned. One page at a time.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="aftercall-metrics")

    async def write(self, accept: str, accept_encoding: str) -> Page:
        """The page as it is now.

        Args:
            accept: the `Accept` of the request; any text.
            accept_encoding: its `Accept-Encoding`; any text.
        """
        context = self._lifecycle.context
        now = await self._state.look(context)
        counted = None if context is None else context.metrics
        form = format_for(accept)
        packed = gzip_accepted(accept_encoding)
        content = await asyncio.get_running_loop().run_in_executor(
            self._writer, self._written, counted, now, form, packed
        )
        headers = {"content-type": form.content_type, "vary": "accept, accept-encoding"}
        if packed:
            headers["content-encoding"] = "gzip"
        return Page(content, headers)

    def _written(
        self,
        counted: ServiceMetrics | None,
        now: list[Metric],
        form: PageFormat,
        packed: bool,  # noqa: FBT001  # run_in_executor passes no names
    ) -> bytes:
        tools = b"" if counted is None else counted.tools.page(open_metrics=form.is_open_metrics)
        registries = [self._requests.registry, *([] if counted is None else [counted.registry])]
        content = tools + form.encode(_Together(registries, now))
        return gzip.compress(content, _GZIP_LEVEL) if packed else content


class _Together(Collector):
    """Several registries and what was seen just now, as one.

    Without the `_created` series, which `prometheus_client` adds to every counter and histogram:
    nobody asks for them, they double the page, and its switch for them is the whole process's.
    """

    def __init__(self, registries: Iterable[Collector], now: Iterable[Metric]) -> None:
        self._registries = registries
        self._now = now

    def collect(self) -> Iterable[Metric]:
        for registry in self._registries:
            for family in registry.collect():
                created = f"{family.name}_created"
                family.samples = [each for each in family.samples if each.name != created]
                yield family
        yield from self._now
