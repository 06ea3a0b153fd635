"""The numbers and charts of a tool's page, brought up to date in place."""

from aftercall.models import CallCounts, Latency, ToolHealth, Trend
from service.dashboard.charts import LineChart
from service.dashboard.shown.agents import calls, success_rate
from service.dashboard.shown.numbers import count, duration, percent
from service.dashboard.shown.times import axis
from service.dashboard.widgets import Stat, badge, box, grid, section, set_visible
from service.statistics.tools import Standing


class ToolNumbers:
    """How it fares in the window, and how good it is now."""

    def __init__(self) -> None:
        self._warning = badge("asked for several jobs", "warn")
        with section("In this window, and now"), box("div", "stats"):
            self._calls, self._rate, self._p50, self._p95 = (
                Stat("Calls"), Stat("Success"), Stat("p50"), Stat("p95"),
            )  # fmt: skip
            self._quality, self._cohesion, self._utility = (
                Stat("Quality"), Stat("Cohesion"), Stat("Usefulness"),
            )  # fmt: skip

    def set(self, trend: Trend, latency: Latency, health: ToolHealth, standing: Standing) -> None:
        """Show what is known now; the points of a trend add up to the calls of its window."""
        counts = CallCounts(
            successes=sum(each.successes for each in trend.points),
            failures=sum(each.failures for each in trend.points),
        )
        durations, share = latency.overall, success_rate(counts)
        self._calls.set(count(calls(counts)), f"{count(counts.failures)} failed")
        self._rate.set("-" if share is None else percent(share), "of the calls")
        self._p50.set(duration(durations.p50) if durations else "-", "half took no longer")
        self._p95.set(duration(durations.p95) if durations else "-", "19 of 20 took no longer")
        self._quality.set(_score(standing.quality), "as in its fitness")
        self._cohesion.set(_score(standing.cohesion), "1 is one job")
        self._utility.set(_score(health.utility.score), "1: nobody complained")
        set_visible(self._warning, standing.cohesion_warning)


class ToolCharts:
    """Success and latency over time."""

    def __init__(self) -> None:
        with grid():
            with section("Success over time", note="Share of calls that succeeded."):
                self._trend = LineChart("Success rate of this tool", "%")
            with section("Latency over time", note="Of calls that say how long they took."):
                self._latency = LineChart("Latency of this tool", "ms")

    def set(self, trend: Trend, latency: Latency) -> None:
        """Draw them."""
        self._trend.set(
            axis([each.at for each in trend.points], trend.window),
            {"Success": [_percent(success_rate(each)) for each in trend.points]},
        )
        durations = [each.duration_ms for each in latency.points]
        self._latency.set(
            axis([each.at for each in latency.points], latency.window),
            {
                "p50": [each.p50 if each else None for each in durations],
                "p95": [each.p95 if each else None for each in durations],
                "p99": [each.p99 if each else None for each in durations],
            },
        )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
