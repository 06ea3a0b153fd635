"""The counters of an open service: requests, tool calls, answers, repairs, errors of its stores."""

import platform
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal, get_args

from cachetools import LRUCache
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector

from aftercall.metrics import ToolCallMetrics
from aftercall.models import Execution, Outcome, OutcomeReport, RecordReceipt, SuggestResponse
from aftercall.models.calls import Action, ErrorCategory
from mongo import errors
from retrieval.index.protocol import VectorIndexUnavailableError
from service.version import VERSION

Store = Literal["log", "vectors"]
_KINDS: Mapping[Store, Mapping[type[Exception], str]] = {
    "log": {
        errors.StoreFullError: "full",
        errors.StoreReadOnlyError: "read_only",
        errors.StoreUnavailableError: "unavailable",
        errors.StoreDamagedError: "damaged",
        Exception: "other",
    },
    "vectors": {VectorIndexUnavailableError: "unavailable", Exception: "other"},
}
"""The kinds of store errors, in words for a label: the first that fits."""
_SUGGEST_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_REPORTED = 10_000
"""Outcomes of suggestions that are known to be reported, the latest; they take some 3 MiB."""
_COUNTERS: Mapping[str, tuple[str, Mapping[str, Sequence[str]]]] = {
    "executions": (
        "Executions that came in, by what became of them.",
        {"verdict": ("stored", "left_out", "duplicate", "rejected")},
    ),
    "suggest_answers": ("Answers of /suggest.", {"outcome": ("suggested", "abstained")}),
    "suggest_abstentions": (
        "Answers without a suggestion, by the category of the error.",
        {"category": get_args(ErrorCategory)},
    ),
    "suggestions": ("Suggestions that were made.", {"action": get_args(Action)}),
    "repairs": (
        "Repaired calls by how they ended; told of a suggestion by a `report` of its outcome or by "
        "an `execution` that followed it, whichever came first, or mended by its `caller` without "
        "one.",
        {"source": ("report", "execution", "caller"), "outcome": get_args(Outcome)},
    ),
}
"""By name: what is counted, and all labels with their values."""


class ServiceMetrics:
    """Counters of one open service; every method returns at once and raises nothing.

    Each series whose labels are known beforehand is there from the start, at 0: a rate over one
    that appears with its first event misses that event.
    """

    def __init__(self, max_tools: int) -> None:
        self.registry = registry = CollectorRegistry()
        self.tools = ToolCallMetrics(max_tools)
        of_own = "Tools with a label of their own in tool_calls_total; all others are `other`."
        Gauge("aftercall_tool_labels", of_own, registry=registry).set_function(
            lambda: self.tools.labels
        )
        limit = "Tools that may have a label of their own."
        Gauge("aftercall_tool_labels_limit", limit, registry=registry).set(max_tools)
        self._suggest_duration = Histogram(
            "aftercall_suggest_duration_seconds",
            "Seconds that an answer of /suggest took to make.",
            buckets=_SUGGEST_BOUNDS_S, registry=registry,
        )  # fmt: skip
        self._store_errors = Counter(
            "aftercall_store_errors",
            "What the log store refused a request, and the vector index an answer.",
            ["store", "kind"],
            registry=registry,
        )
        for store, kinds in _KINDS.items():
            for kind in kinds.values():
                self._store_errors.labels(store, kind)
        self._counters: dict[str, Counter] = {}
        for name, (told, labels) in _COUNTERS.items():
            counter = Counter(f"aftercall_{name}", told, list(labels), registry=registry)
            for each in product(*labels.values()):
                counter.labels(*each)
            self._counters[name] = counter
        self._reported: LRUCache[tuple[str, str], None] = LRUCache(_REPORTED)

    def count_received(self, accepted: Sequence[Execution], receipt: RecordReceipt) -> None:
        """Count what an intake accepted: new executions, also those that sampling left out."""
        for execution in accepted:
            self.tools.observe(
                execution.tool_name,
                "error" if execution.outcome == "failure" else "ok",
                execution.duration_ms or None,  # the wire's default 0: no one measured it
                server_name=execution.server_name,
            )
            if execution.suggestion_id is not None:
                if self._is_first_word(execution.suggestion_id, execution.execution_id):
                    self._count_up("repairs", "execution", execution.outcome)
            elif execution.repair_of is not None:
                self._count_up("repairs", "caller", execution.outcome)
        for verdict, count in (
            ("stored", receipt.accepted - receipt.left_out),
            ("left_out", receipt.left_out),
            ("duplicate", receipt.duplicates),
            ("rejected", len(receipt.rejected)),
        ):
            self._counters["executions"].labels(verdict).inc(count)

    def count_answer(self, response: SuggestResponse) -> None:
        """Count an answer of `/suggest`."""
        self._suggest_duration.observe(response.took_ms / 1000)
        if response.abstained:
            self._count_up("suggest_abstentions", response.pattern.category)
        self._count_up("suggest_answers", "abstained" if response.abstained else "suggested")
        for suggestion in response.suggestions:
            self._count_up("suggestions", suggestion.action)

    def count_report(self, suggestion_id: str, report: OutcomeReport) -> None:
        """Count an outcome of a suggestion, unless its execution has reported it already."""
        if self._is_first_word(suggestion_id, report.execution_id):
            self._count_up("repairs", "report", report.outcome)

    def count_failure(self, store: Store, error: Exception) -> None:
        """Count an error of a store."""
        kind = next(kind for each, kind in _KINDS[store].items() if isinstance(error, each))
        self._store_errors.labels(store, kind).inc()

    def _count_up(self, name: str, *labels: str) -> None:
        self._counters[name].labels(*labels).inc()

    def _is_first_word(self, suggestion_id: str, execution_id: str) -> bool:
        """Return whether this outcome was not reported before, directly or by its execution."""
        outcome = suggestion_id, execution_id
        is_first = outcome not in self._reported
        self._reported[outcome] = None
        return is_first


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
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

    def observe_request(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request.

        An unusual method is `other`. The route is the template, never the path, which may be
        anything; None means no such route. The status is 0 if there was no answer.
        """
        method = method if method in METHODS else "other"
        route = route or "unknown"
        self._requests.labels(method, route, str(status) if status else _NO_ANSWER).inc()
        self._durations.labels(method, route).observe(seconds)
