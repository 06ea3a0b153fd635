"""Prometheus metrics of tool calls (seed 001); they need the extra `metrics`.

`tool_calls_total{tool,status}` and `tool_call_latency_ms{tool}`, under labels whose number is
bounded: those who come first get one of their own, for good.
"""

from threading import Lock
from typing import Literal

from aftercall.events import ToolCallEvent, ToolCallResult
from aftercall.explain import require_extra

with require_extra("metrics", "aftercall.metrics"):
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

OTHER = "other"
"""The label of all tools without one of their own."""
MAX_CHARS = 128
"""Of a label. A server's name and a tool's together may have 513."""
BOUNDS_MS = (
    1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0,
    1_000.0, 2_500.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0,
)  # fmt: skip
"""Upper bounds of the buckets: from tools in the same process to those that ask a model."""
LONGEST_MS = 86_400_000.0
"""A day. A longer call is a mistake of a clock; one of 1e300 ms would drown the sum for good."""
Status = Literal["ok", "error"]


def tool_label(tool: str, server_name: str | None = None) -> str:
    """Return the label of a tool: `name`, or `server/name` where its server is known.

    The first 128 characters. Anything that cannot be printed (line breaks, NUL, lone surrogates,
    marks of direction) becomes U+FFFD. A tool that is really called `other` is `other (tool)`.
    """
    label = f"{server_name}/{tool}" if server_name else tool or "unknown"
    label = "".join(char if char.isprintable() else "\ufffd" for char in label[:MAX_CHARS])
    return f"{label} (tool)" if label == OTHER else label


class ToolCallMetrics:
    """Counts tool calls; an `EventSink`. Safe between threads.

    Memory is bounded: at most `max_tools` labels, each of at most 128 characters. All other calls
    are counted under `tool="other"`.

    Without a `registry`, such as `prometheus_client.REGISTRY`, it has one of its own.
    """

    def __init__(self, max_tools: int = 200, registry: CollectorRegistry | None = None) -> None:
        self._max_tools = max_tools
        self.registry = CollectorRegistry() if registry is None else registry
        self._calls = Counter(
            "tool_calls",
            "Tool calls that have ended, by tool and status (ok, error).",
            ("tool", "status"),
            registry=self.registry,
        )
        self._latency = Histogram(
            "tool_call_latency_ms",
            "Latency of tool calls in milliseconds, where it was measured.",
            ("tool",),
            registry=self.registry,
            buckets=BOUNDS_MS,
        )
        self._labels: set[str] = set()
        self._lock = Lock()
        # Both names are on the page from the start: a rate misses the event that it begins with.
        self._begin_label(OTHER)
        self._latency.labels(OTHER)

    @property
    def labels(self) -> int:
        """Tools with a label of their own."""
        return len(self._labels) - 1

    def observe(
        self,
        tool: str,
        status: Status,
        latency_ms: float | None = None,
        *,
        server_name: str | None = None,
    ) -> None:
        """Count a call that has ended; a latency that is negative or NaN was not measured."""
        label = tool_label(tool, server_name)
        with self._lock:
            if label not in self._labels:
                if self.labels < self._max_tools:
                    self._begin_label(label)
                else:
                    label = OTHER
        self._calls.labels(label, status).inc()
        if latency_ms is not None and latency_ms >= 0:
            self._latency.labels(label).observe(min(latency_ms, LONGEST_MS))

    def emit(self, event: ToolCallEvent) -> None:
        """Take an event; a call counts when its result is known."""
        if isinstance(event, ToolCallResult):
            self.observe(event.tool, event.status, event.latency_ms)

    def page(self) -> bytes:
        """Return what a scraper reads, in Prometheus' text format; more can follow."""
        lines = generate_latest(self.registry).splitlines(keepends=True)
        # The moments at which series began are of no use to anyone.
        return b"".join(line for line in lines if b"_created" not in line.partition(b"{")[0])

    def _begin_label(self, label: str) -> None:
        self._labels.add(label)
        for status in ("ok", "error"):  # both, so that there is a share before the first error
            self._calls.labels(label, status)
