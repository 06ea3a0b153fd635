"""What an open service counts: tool calls, answers, repairs, and what its stores refused."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from aftercall.metrics import ToolCallMetrics
from aftercall.models import Execution, Outcome, OutcomeReport, RecordReceipt, SuggestResponse
from aftercall.models.calls import Action, ErrorCategory
from service.metrics.kinds import INDEX_KINDS, LOG_KINDS, Store, kind_of

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
