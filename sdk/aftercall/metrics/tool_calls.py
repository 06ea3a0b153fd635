"""`tool_calls_total{tool,status}` and `tool_call_latency_ms{tool}` (seed 001)."""

from collections.abc import Iterable
from threading import Lock

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from aftercall.events import ToolCallEvent, ToolCallResult
from aftercall.metrics.labels import OTHER, LabelRoom, tool_label
from aftercall.metrics.series import CALLS, LATENCY, Status, ToolSeries

_CALLS_HELP = "Tool calls that have ended, by tool and status (ok, error)."
_LATENCY_HELP = "Latency of tool calls in milliseconds, where it was measured."


class ToolCallMetrics(Collector):
    """Counts tool calls; an `EventSink`, and a collector of its registry. Safe between threads.

    Memory is bounded: at most `max_tools` labels, each of at most 128 characters. Half of them are
    given to the tools that come first; the rest to tools that were promised one and to those that
    are called a third time. All other calls are counted under `tool="other"`.

    Args:
        max_tools: labels at most, beside `other`.
        registry: where it is registered, such as `prometheus_client.REGISTRY`; without one it makes
            its own, so that two never clash.
    """

    def __init__(self, max_tools: int = 200, registry: CollectorRegistry | None = None) -> None:
        if max_tools < 0:
            raise ValueError(f"max_tools is {max_tools}; it must be 0 or more")
        self._room = LabelRoom(max_tools)
        self._other = ToolSeries(OTHER)
        self._other.show_latency()  # both names are on the page from the start
        self._series: dict[str, ToolSeries] = {}
        self._lock = Lock()
        self.registry = CollectorRegistry() if registry is None else registry
        self.registry.register(self)

    @property
    def labels(self) -> int:
        """Tools with a label of their own."""
        return self._room.given

    def observe(
        self,
        tool: str,
        status: Status,
        latency_ms: float | None = None,
        *,
        server_name: str | None = None,
    ) -> None:
        """Count a call that has ended; its latency where it is known.

        Args:
            tool: its name, as anybody said it.
            status: how it ended.
            latency_ms: milliseconds; a negative one or NaN counts as not measured.
            server_name: of the tool, where it is known.
        """
        label = tool_label(tool, server_name)
        with self._lock:
            self._of(label).observe(status, latency_ms)

    def promise(self, tool: str, *, server_name: str | None = None) -> None:
        """Give a tool a label at its first call, as long as there is one left."""
        label = tool_label(tool, server_name)
        with self._lock:
            if label not in self._series:
                self._room.promise(label)

    def emit(self, event: ToolCallEvent) -> None:
        """Take an event; a call counts when its result is known."""
        if isinstance(event, ToolCallResult):
            self.observe(event.tool, event.status, event.latency_ms)

    def describe(self) -> Iterable[Metric]:
        """The two families, empty: what a registry asks for before it takes a collector."""
        return [Metric(CALLS, _CALLS_HELP, "counter"), Metric(LATENCY, _LATENCY_HELP, "histogram")]

    def collect(self) -> Iterable[Metric]:
        """The two families, for any encoder of `prometheus_client`."""
        calls, latency = self.describe()
        for series in self._every():
            with self._lock:
                counted, measured = list(series.counter_samples()), list(series.latency_samples())
            for name, labels, value in counted:
                calls.add_sample(name, labels, value)
            for name, labels, value in measured:
                latency.add_sample(name, labels, value)
        return [calls, latency]

    def page(self, *, open_metrics: bool = False) -> bytes:
        """What an encoder of `prometheus_client` makes of it, faster; without OpenMetrics' end.

        Lines of tools that were not called since the last time are not written anew.
        """
        calls = CALLS if open_metrics else f"{CALLS}_total"
        counted = [f"# HELP {calls} {_CALLS_HELP}\n# TYPE {calls} counter\n".encode()]
        measured = [f"# HELP {LATENCY} {_LATENCY_HELP}\n# TYPE {LATENCY} histogram\n".encode()]
        for series in self._every():
            # For one tool at a time: whoever records a call never waits for the whole page.
            with self._lock:
                counted.append(series.counter_lines())
                measured.append(series.latency_lines())
        return b"".join(counted + measured)

    def _every(self) -> list[ToolSeries]:
        with self._lock:
            return [self._other, *self._series.values()]

    def _of(self, label: str) -> ToolSeries:
        series = self._series.get(label)
        if series is not None:
            return series
        if not self._room.admits(label):
            return self._other
        self._series[label] = series = ToolSeries(label)
        return series
