"""The numbers of one tool, and their lines on the page.

Written by hand because a page of 200 tools takes `prometheus_client` 27 ms, and each of its
histograms 6 KiB (`bench/metrics.py`). The lines are those that it would write, byte for byte
(`tests/sdk/test_metrics.py`), and are kept until the numbers change.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal

from prometheus_client.utils import floatToGoString

CALLS = "tool_calls"
"""The family; its samples are `tool_calls_total` (seed 001)."""
LATENCY = "tool_call_latency_ms"


def _float(number: float) -> str:
    written: str = floatToGoString(number)  # type: ignore[no-untyped-call]  # has no types
    return written


BOUNDS_MS = (
    1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0,
    1_000.0, 2_500.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0,
)  # fmt: skip
"""Upper bounds of the buckets: from tools in the same process to those that ask a model."""

LONGEST_MS = 86_400_000.0
"""A day. A longer call is a mistake of a clock; one of 1e300 ms would drown the sum for good."""

_LE = (*(_float(bound) for bound in BOUNDS_MS), "+Inf")
_PLAIN_INTEGERS = 1_000_000
"""From here on the format's numbers have exponents."""

Status = Literal["ok", "error"]
Sample = tuple[str, dict[str, str], float]
"""Name, labels and value."""


class ToolSeries:
    """Calls by status and latencies of one label; not safe between threads by itself."""

    __slots__ = ("_buckets", "_calls", "_counter", "_escaped", "_histogram", "_label", "_sum")

    def __init__(self, label: str) -> None:
        self._label = label
        # There is no line break in it, nor anything else that cannot be printed.
        self._escaped = label.replace("\\", "\\\\").replace('"', '\\"')
        self._calls = {"error": 0, "ok": 0}
        self._buckets: list[int] | None = None
        self._sum = 0.0
        self._counter: bytes | None = None
        self._histogram: bytes | None = None

    def observe(self, status: Status, latency_ms: float | None) -> None:
        """Count a call; no latency, a negative one and NaN mean that it was not measured."""
        self._calls[status] += 1
        self._counter = None
        if latency_ms is not None and latency_ms >= 0:
            self._measure(min(latency_ms, LONGEST_MS))

    def show_latency(self) -> None:
        """Show the histogram also while nothing is measured."""
        if self._buckets is None:
            self._buckets = [0] * len(_LE)

    def _measure(self, latency_ms: float) -> None:
        self.show_latency()
        if self._buckets is not None:
            self._buckets[bisect_left(BOUNDS_MS, latency_ms)] += 1
        self._sum += latency_ms
        self._histogram = None

    def counter_samples(self) -> Iterator[Sample]:
        """Both statuses, so that a share of errors can be computed before there was one."""
        for status, calls in self._calls.items():
            yield f"{CALLS}_total", {"tool": self._label, "status": status}, float(calls)

    def latency_samples(self) -> Iterator[Sample]:
        """The histogram; nothing before a latency was measured."""
        if self._buckets is None:
            return
        counts = list(accumulate(self._buckets))
        for bound, count in zip(_LE, counts, strict=True):
            yield f"{LATENCY}_bucket", {"tool": self._label, "le": bound}, float(count)
        yield f"{LATENCY}_count", {"tool": self._label}, float(counts[-1])
        yield f"{LATENCY}_sum", {"tool": self._label}, self._sum

    def counter_lines(self) -> bytes:
        """`counter_samples` as they stand on the page."""
        if self._counter is None:
            self._counter = "".join(
                f'{CALLS}_total{{status="{status}",tool="{self._escaped}"}} {_number(calls)}\n'
                for status, calls in self._calls.items()
            ).encode()
        return self._counter

    def latency_lines(self) -> bytes:
        """`latency_samples` as they stand on the page."""
        if self._buckets is None:
            return b""
        if self._histogram is None:
            tool = f'tool="{self._escaped}"'
            counts = list(accumulate(self._buckets))
            lines = [
                f'{LATENCY}_bucket{{le="{bound}",{tool}}} {_number(count)}\n'
                for bound, count in zip(_LE, counts, strict=True)
            ]
            lines.append(f"{LATENCY}_count{{{tool}}} {_number(counts[-1])}\n")
            lines.append(f"{LATENCY}_sum{{{tool}}} {_float(self._sum)}\n")
            self._histogram = "".join(lines).encode()
        return self._histogram


def _number(count: int) -> str:
    return f"{count}.0" if count < _PLAIN_INTEGERS else _float(count)
