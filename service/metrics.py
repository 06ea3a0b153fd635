"""What an open service counts: requests, tool calls, answers, repairs, errors of its stores."""

import platform
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector

from aftercall.metrics import ToolCallMetrics
from aftercall.models import Execution, Outcome, OutcomeReport, RecordReceipt, SuggestResponse
from aftercall.models.calls import Action, ErrorCategory
from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFencedError,
    StoreFullError,
    StoreInUseError,
    StoreReadOnlyError,
    StoreTooNewError,
    StoreUnavailableError,
)
from retrieval.index.protocol import (
    Hit,
    IndexInUseError,
    IndexModelMismatchError,
    IndexPoint,
    IndexQuery,
    VectorIndex,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from service.version import VERSION

Store = Literal["log", "vectors"]

_OTHER = "other"

LOG_KINDS: Mapping[type[Exception], str] = {
    StoreReadOnlyError: "read_only",  # before what it is a kind of
    StoreUnavailableError: "unavailable",
    StoreFullError: "full",
    StoreFencedError: "fenced",
    StoreInUseError: "in_use",
    StoreDamagedError: "damaged",
    StoreTooNewError: "too_new",
    StoreError: _OTHER,
}

INDEX_KINDS: Mapping[type[Exception], str] = {
    VectorIndexUnavailableError: "unavailable",
    IndexInUseError: "in_use",
    IndexModelMismatchError: "model_mismatch",
    VectorIndexError: _OTHER,
}


def kind_of(error: Exception) -> str:
    """The kind of a store's error; `other` for one without a kind of its own."""
    kinds = (*LOG_KINDS.items(), *INDEX_KINDS.items())
    return next((kind for each, kind in kinds if isinstance(error, each)), _OTHER)


_SUGGEST_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_TOLD = 10_000
"""Outcomes of suggestions that are known to be told, the latest; they take some 1 MiB."""


class ServiceMetrics:
    """Counters of one open service; every method returns at once and raises nothing.

    Each series whose labels are known beforehand is there from the start, at 0: a rate over one
    that appears with its first event misses that event.

    Args:
        max_tools: tools with a label of their own.
    """

    def __init__(self, max_tools: int) -> None:
        self.registry = CollectorRegistry()
        self.tools = ToolCallMetrics(max_tools)
        labels = Gauge(
            "aftercall_tool_labels",
            "Tools with a label of their own in tool_calls_total; all others are `other`.",
            registry=self.registry,
        )
        labels.set_function(lambda: self.tools.labels)
        limit = Gauge(
            "aftercall_tool_labels_limit",
            "Tools that may have a label of their own.",
            registry=self.registry,
        )
        limit.set(max_tools)
        self._executions = self._counter(
            "aftercall_executions",
            "Executions that came in, by what became of them.",
            verdict=("stored", "left_out", "duplicate", "rejected"),
        )
        self._suggest_duration = Histogram(
            "aftercall_suggest_duration_seconds",
            "Seconds that an answer of /suggest took to make.",
            buckets=_SUGGEST_BOUNDS_S,
            registry=self.registry,
        )
        self._answers = self._counter(
            "aftercall_suggest_answers",
            "Answers of /suggest.",
            outcome=("suggested", "abstained"),
        )
        self._abstentions = self._counter(
            "aftercall_suggest_abstentions",
            "Answers without a suggestion, by the category of the error.",
            category=get_args(ErrorCategory),
        )
        self._suggestions = self._counter(
            "aftercall_suggestions", "Suggestions that were made.", action=get_args(Action)
        )
        self._repairs = self._counter(
            "aftercall_repairs",
            "Repaired calls by how they ended; told of a suggestion by a `report` of its outcome "
            "or by an `execution` that followed it, whichever came first, or mended by its "
            "`caller` without one.",
            source=("report", "execution", "caller"),
            outcome=_OUTCOMES,
        )
        self._store_errors = Counter(
            "aftercall_store_errors",
            "What the log store refused a request, and the vector index an answer.",
            ["store", "kind"],
            registry=self.registry,
        )
        for store, kinds in (("log", LOG_KINDS), ("vectors", INDEX_KINDS)):
            for kind in dict.fromkeys(kinds.values()):
                self._store_errors.labels(store, kind)
        self._told: OrderedDict[int, None] = OrderedDict()

    def _counter(self, name: str, told: str, **labels: Sequence[str]) -> Counter:
        counter = Counter(name, told, list(labels), registry=self.registry)
        series: list[tuple[str, ...]] = [()]
        for values in labels.values():
            series = [(*each, value) for each in series for value in values]
        for each in series:
            counter.labels(*each)
        return counter

    def received(self, accepted: Sequence[Execution], receipt: RecordReceipt) -> None:
        """Count what an intake took in.

        Args:
            accepted: those that are new, also those that sampling left out; each counts once.
            receipt: what their sender is told.
        """
        for execution in accepted:
            self.tools.observe(
                execution.tool_name,
                "error" if execution.outcome == "failure" else "ok",
                execution.duration_ms or None,  # the wire's default 0: nobody measured it
                server_name=execution.server_name,
            )
            if execution.suggestion_id is not None:
                if self._is_first_word(execution.suggestion_id, execution.execution_id):
                    self._repairs.labels("execution", execution.outcome).inc()
            elif execution.repair_of is not None:
                self._repairs.labels("caller", execution.outcome).inc()
        for verdict, count in (
            ("stored", receipt.accepted - receipt.left_out),
            ("left_out", receipt.left_out),
            ("duplicate", receipt.duplicates),
            ("rejected", len(receipt.rejected)),
        ):
            if count:
                self._executions.labels(verdict).inc(count)

    def answered(self, response: SuggestResponse) -> None:
        """Count an answer of `/suggest`."""
        self._suggest_duration.observe(response.took_ms / 1000)
        if response.abstained:
            self._answers.labels("abstained").inc()
            self._abstentions.labels(response.pattern.category).inc()
        else:
            self._answers.labels("suggested").inc()
        for suggestion in response.suggestions:
            self._suggestions.labels(suggestion.action).inc()

    def reported(self, suggestion_id: str, report: OutcomeReport) -> None:
        """Count an outcome of a suggestion, unless the execution that it tells of has said it."""
        if self._is_first_word(suggestion_id, report.execution_id):
            self._repairs.labels("report", report.outcome).inc()

    def failed(self, store: Store, error: Exception) -> None:
        """Count what a store could not do."""
        self._store_errors.labels(store, kind_of(error)).inc()

    def _is_first_word(self, suggestion_id: str, execution_id: str) -> bool:
        """Whether this outcome was not told before, by a report or by its execution."""
        told = hash((suggestion_id, execution_id))
        if told in self._told:
            return False
        self._told[told] = None
        if len(self._told) > _TOLD:
            self._told.popitem(last=False)
        return True


class CountedIndex:
    """`VectorIndex` that tells of errors.

    Args:
        index: who does it; closed by who opened it.
        on_error: told each error.
    """

    def __init__(self, index: VectorIndex, on_error: Callable[[VectorIndexError], None]) -> None:
        self._index = index
        self._on_error = on_error

    @property
    def name(self) -> str:
        """The index's."""
        return self._index.name

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        """See `VectorIndex.upsert`."""
        with self._told():
            await self._index.upsert(points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        """See `VectorIndex.delete`."""
        with self._told():
            await self._index.delete(document_ids)

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """See `VectorIndex.search`."""
        with self._told():
            return await self._index.search(queries)

    async def count(self) -> int:
        """See `VectorIndex.count`."""
        with self._told():
            return await self._index.count()

    async def close(self) -> None:
        """See `VectorIndex.close`."""
        await self._index.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except VectorIndexError as error:
            self._on_error(error)
            raise


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""There is a histogram per route, so it has few buckets."""

_NO_ANSWER = "none"
"""The status of a request whose sender went away before it was answered."""


class RequestMetrics:
    """Requests by method, route and status, in a registry of its own: no two apps clash."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "aftercall_http_requests",
            "Requests that were answered, by method, template of the route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "aftercall_http_request_duration_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ["method", "route"],
            buckets=_BOUNDS_S,
            registry=self.registry,
        )
        build = Info("aftercall_build", "The running build.", registry=self.registry)
        build.info({"version": VERSION, "python": platform.python_version()})
        ProcessCollector(registry=self.registry)  # only where there is a /proc

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: as it was sent; an unusual one is `other`.
            route: the template, never the path, which may be anything; None for no such route.
            status: of the answer; 0 when there was none.
            seconds: how long it took.
        """
        method = method if method in _METHODS else "other"
        route = route or "unknown"
        self._requests.labels(method, route, str(status) if status else _NO_ANSWER).inc()
        self._durations.labels(method, route).observe(seconds)
