"""Overview: how calls go, what asking about failures did, and what changed."""

from aftercall.models import PatternStatistics, ToolStatistics, ToolStatisticsList, UsageWindow
from service.dashboard.changed import Change, calls_of, changes, success_rate
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.before_column import before_column
from service.dashboard.parts.overview_figures import (
    AnswersFigures,
    ReflectionFigures,
    TotalsFigures,
    TrendFigures,
)
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.shown.call_text import one_line
from service.dashboard.shown.failure_rows import name_of
from service.dashboard.shown.overview import troubled
from service.dashboard.tables import Column, DataTable, Row
from service.dashboard.tone import SIGNS
from service.dashboard.widgets import (
    Lines,
    Value,
    box,
    empty,
    grid,
    link,
    section,
    set_visible,
    still_counting,
    text,
)

_TOOLS = 500
"""Tools that are compared with the days before."""

_PATTERNS = 50

_TOP = 5


class _Overview:
    """The page with its parts, which `update` fills."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._counting = still_counting()
        with box("div", "page") as self._empty:
            _how_to_begin()
        with box("div", "page") as self._full:
            self._totals = TotalsFigures()
            with grid():
                with box("div", "stack"):
                    self._changes = _ChangesPart(look)
                    self._answers = AnswersFigures(look)
                self._trend = TrendFigures(look)
            self._reflection = ReflectionFigures(look)
            with grid():
                self._patterns = _PatternsPart(look)
                self._tools = _ToolsPart(look)

    async def update(self) -> None:
        """Read what is new and show it."""
        look, reports = self._look, self._look.services.statistics
        space, window = look.workspace, look.window
        totals = await look.shared("totals", lambda: reports.totals(space))
        day, month = totals.windows[0], totals.windows[-1]
        is_empty = calls_of(month.totals) == 0
        set_visible(self._counting, is_empty and not day.is_complete)
        set_visible(self._empty, is_empty and day.is_complete)
        set_visible(self._full, not is_empty)
        look.as_of(day.until, is_complete=day.is_complete)
        if is_empty:
            return
        self._totals.show(totals)
        trend = await look.shared("trend", lambda: reports.trend(space, window))
        self._trend.show(trend)
        reflection = await look.shared("reflection", lambda: reports.reflection(space, window))
        self._reflection.show(reflection)
        self._answers.show(reflection)
        patterns = await self._read_patterns(window)
        self._patterns.show(patterns)
        tools = await self._read_tools(window)
        self._tools.show(tools)
        # The same whatever the window; what was read for it is not read again.
        today = patterns if window == "24h" else await self._read_patterns("24h")
        tools_day = tools if window == "24h" else await self._read_tools("24h")
        tools_week = tools if window == "7d" else await self._read_tools("7d")
        self._changes.show(changes(day, today, tools_day, tools_week))

    async def _read_patterns(self, window: UsageWindow) -> PatternStatistics:
        look, reports = self._look, self._look.services.statistics
        return await look.shared(
            f"patterns {_PATTERNS} of {window}",
            lambda: reports.patterns(look.workspace, window, _PATTERNS),
        )

    async def _read_tools(self, window: UsageWindow) -> ToolStatisticsList:
        look, reports = self._look, self._look.services.statistics
        return await look.shared(
            f"tools {_TOOLS} of {window}",
            lambda: reports.tools(look.workspace, window, _TOOLS),
        )


class _ChangesPart:
    def __init__(self, look: Look) -> None:
        self._look = look
        with section("What changed since yesterday"):
            self._lines = Lines()

    def show(self, found: list[Change]) -> None:
        self._lines.set([self._line(each) for each in found])

    def _line(self, change: Change) -> Value:
        words = SIGNS[change.tone] + one_line(change.words, 400)
        if change.pattern_id is not None:
            return words, self._look.link(f"/patterns/{change.pattern_id}")
        if change.tool is not None:
            return words, tool_href(self._look, change.tool)
        return words


class _PatternsPart:
    def __init__(self, look: Look) -> None:
        with section("Most frequent failures"):

            def href(row: Row) -> str:
                return look.link(f"/patterns/{row['id']}")

            self._table = DataTable(
                "Most frequent failures",
                [
                    Column(
                        "signature",
                        "Pattern",
                        "link",
                        lambda row: look.link(f"/patterns/{row['id']}"),
                    ),
                    Column("tool", "Tool"),
                    Column("failures", "Failures", "number"),
                    *before_column(look),
                ],
                "id",
                plain=True,
                missing="No pattern yet: the nightly run finds them (aftercall nightly).",
            )
            link("All failures", look.link("/failures"))

    def show(self, found: PatternStatistics) -> None:
        self._table.set(
            [
                {
                    "id": each.pattern.pattern_id,
                    "signature": one_line(each.pattern.signature, 160),
                    "tool": name_of(each.pattern.tool),
                    "failures": each.failures,
                    "before": each.before,
                }
                for each in found.patterns[:_TOP]
            ]
        )


class _ToolsPart:
    def __init__(self, look: Look) -> None:
        self._look = look
        with section("Tools in trouble"):
            self._table = DataTable(
                "Tools in trouble",
                [
                    Column("name", "Tool", "link", lambda row: str(row["href"])),
                    Column("failures", "Failures", "number"),
                    Column("rate", "Succeeded", "percent"),
                    Column("calls", "Calls", "number"),
                ],
                "name",
                plain=True,
                missing="No tool failed.",
            )
            link("All tools", look.link("/tools"))

    def show(self, found: ToolStatisticsList) -> None:
        self._table.set([self._row(each) for each in troubled(found.tools)[:_TOP]])

    def _row(self, tool: ToolStatistics) -> dict[str, object]:
        return {
            "name": name_of(tool.tool),
            "href": tool_href(self._look, tool.tool),
            "failures": tool.failures,
            "rate": success_rate(tool),
            "calls": calls_of(tool),
        }


def _how_to_begin() -> None:
    empty(
        "No call was recorded yet.",
        "Fill the dashboard with a month of a made-up history, to see what it is like:",
        "aftercall demo --history",
    )
    with section("Record calls of your own"):
        Lines().set(
            [
                "With the gateway: put it before your MCP servers, and every call is recorded.",
                "With the SDK: wrap your tools, and ask when one fails.",
                "Over HTTP: POST /executions, as the API says.",
            ]
        )
        link("The API", "/docs")
    text("This page fills by itself once the first call has come in.")


async def build(look: Look) -> None:
    """Build the page."""
    overview = _Overview(look)
    await overview.update()
    look.live(overview.update)


PAGE = Page(path="/", title="Overview", nav="Overview", build=build)
