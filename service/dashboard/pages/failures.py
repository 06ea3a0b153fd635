"""*Failures*: the patterns that are met most, what helps against them, and all others to search."""

from typing import Final, get_args

from aftercall.models import ErrorCategory, PatternStatistics, Usage
from ingest.nightly.patterns import patterns_fact
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.before_column import before_column
from service.dashboard.parts.count_bars import Bar, CountBars
from service.dashboard.parts.pattern_cards import PatternCards
from service.dashboard.prefix import PREFIX
from service.dashboard.repair_reads import examples_of
from service.dashboard.shown.failure_rows import PatternFilter, pattern_rows
from service.dashboard.shown.numbers import count
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import (
    Stat,
    box,
    empty,
    section,
    set_visible,
    still_counting,
    text,
)

TOP: Final = 10

MAX_PATTERNS: Final = 500
"""Patterns in the table, those met most in the window; as many as `GET /stats/patterns` tells."""


async def build(look: Look) -> None:
    """Fill the page."""
    services, asked = look.services, PatternFilter.asked(look.params)
    reports = services.statistics

    async def read_patterns() -> PatternStatistics:
        return await look.shared(
            f"patterns {MAX_PATTERNS}",
            lambda: reports.patterns(look.workspace, look.window, MAX_PATTERNS),
        )

    async def read_usage() -> Usage:
        return await look.shared("usage 1", lambda: reports.usage(look.workspace, look.window, 1))

    async def has_run() -> bool:
        return await services.store.get_fact(patterns_fact(look.workspace)) is not None

    async def state_of(found: PatternStatistics, usage: Usage) -> str:
        if not (found.is_complete and usage.is_complete):
            return "counting"
        if not usage.totals.failures:
            return "none failed"
        return "none met" if await has_run() else "never run"

    counting = still_counting()
    none_failed = empty(
        "No failure in this window.",
        "Choose a longer window, or record calls with the SDK, the gateway or POST /executions. A "
        "month of made-up ones:",
        "aftercall demo --history",
    )
    never_run = empty(
        "Failures are not gathered into patterns yet.",
        "The nightly run does that; run it now:",
        "aftercall nightly",
    )
    none_met = empty(
        "No failure of a known pattern in this window.",
        "Choose a longer window. Failures that say something new become patterns in the next "
        "nightly run.",
    )
    states = {
        "counting": counting,
        "none failed": none_failed,
        "never run": never_run,
        "none met": none_met,
    }
    with section("In this window"), box("div", "stats"):
        failures, patterns, others = (
            Stat("Failures"), Stat("Patterns met"), Stat("Of no pattern yet"),
        )  # fmt: skip
    with section(
        "Met most", note=f"At most {TOP} patterns, most failures in the window first."
    ) as top:
        cards = PatternCards(look)
    with section("Failures by category", note="Choose one to see its patterns.") as by_category:
        bars = CountBars("Failures by category")
    with section("All patterns", note="Those met in this window.") as listed:
        _filter(look, asked)
        table = DataTable(
            "Failure patterns",
            [
                Column(
                    "signature", "Pattern", "link", lambda row: look.link(f"/patterns/{row['id']}")
                ),
                Column("tool", "Tool"),
                Column("category", "Category"),
                Column("failures", "Failures", "number", note="Within the window."),
                *before_column(look),
                Column("mended", "Mended", "percent", note="Of all failures there ever were."),
                Column("agents", "Agents", "number", note="Some of those it happened to."),
                Column("last_seen", "Last seen", "time"),
                Column("lesson", "Lesson"),
            ],
            "id",
            missing="No pattern of this window is like that.",
        )
        table.element.classes("wide")

    async def update() -> None:
        found, usage = await read_patterns(), await read_usage()
        met = found.patterns
        state = None if met else await state_of(found, usage)
        for each, shown in states.items():
            set_visible(shown, each == state)
        for card in (top, listed):
            set_visible(card, bool(met))
        set_visible(by_category, bool(usage.by_category))
        failures.set(count(usage.totals.failures))
        patterns.set(count(len(met)))
        others.set(count(found.other_failures), "the next nightly run looks at them")
        first = met[:TOP]
        examples = {}
        if not cards.shows(first):
            examples = await examples_of(services, look.workspace, [each.pattern for each in first])
        cards.set(first, examples)
        bars.set(
            [
                Bar(each.category, each.failures, look.link("/failures", category=each.category))
                for each in usage.by_category
            ]
        )
        table.set(pattern_rows(met, asked))
        look.as_of(found.until, is_complete=found.is_complete)

    await update()
    look.live(update)


def _filter(look: Look, asked: PatternFilter) -> None:
    """A form of the browser's own: it works with the keyboard, and gives an address to share."""
    with box("form", "filter-form", method="get", action=f"{PREFIX}/failures"):
        box("input", type="hidden", name="window", value=look.window)
        box("input", type="hidden", name="workspace", value=look.workspace)
        with box("label"):
            text("Tool", "span")
            box("input", type="search", name="tool", value=asked.tool, maxlength="256")
        with box("label"):
            text("Category", "span")
            with box("select", name="category"):
                for name in ("", *get_args(ErrorCategory)):
                    option = text(name or "any", "option")
                    option.props["value"] = name
                    if name == asked.category:
                        option.props["selected"] = "selected"
        text("Show", "button", type="submit")


PAGE = Page(path="/failures", title="Failures", nav="Failures", build=build)
