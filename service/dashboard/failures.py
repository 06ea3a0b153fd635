"""*Failures*: the patterns that cost most, what helps against them, and all others to search."""

from typing import Final, get_args

from aftercall.models import ErrorCategory, PatternCost, PatternState
from service.api.patterns import rank_patterns, read_consolidated_at, read_pattern_statistics
from service.api.statistics import read_usage
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.dashboard.pattern import gather_evidence, mended_share, state_words
from service.dashboard.tools import open_recommendations, tool_place
from service.requests import WindowList

MAX_PATTERNS: Final = 500
"""Patterns in the table, those met most in the window; as many as `GET /stats/patterns` gives."""
_TOP: Final = 10
_TRIED: Final = 3
"""Repairs of a pattern that are read for one: the calls of the latest may have expired."""


async def show_failures(look: Look) -> Shown:
    """Return the page."""
    found = await read_pattern_statistics(
        look.space, WindowList(window=look.window, limit=MAX_PATTERNS)
    )
    usage = await read_usage(look.space, WindowList(window=look.window, limit=1))
    met, failed = found.patterns, usage.totals.failures
    most = max((each.failures for each in usage.by_category), default=1)
    costs = await list_costly(look, _TOP)
    top = [each.pattern for each, _, _ in costs]
    key = f"examples of {[each.pattern_id for each in top]}"
    examples = (
        await look.read_rarely(key, lambda: gather_evidence(look.space, top, _TRIED)) if top else {}
    )
    names = ("tool", "category", "state")
    tool, category, state = (look.query.get(name, "").strip() for name in names)
    return look.show_page(
        "Failures",
        "failures",
        of=found,
        is_counted=found.is_complete and usage.is_complete,
        failed=failed,
        found=found,
        gathered=bool(met) or await read_consolidated_at(look.space) is not None,
        top=[(cost, examples[cost[0].pattern.pattern_id]) for cost in costs],
        by_category=[
            (
                h.Anchor(each.category, look.link_path("/failures", category=each.category)),
                f"{w.format_count(each.failures)} "
                f"({w.format_percent(each.failures / max(1, failed))})",
                each.failures / most,
            )
            for each in usage.by_category
        ],
        asked={"tool": tool, "category": category, "state": state},
        choices={
            "category": ["", *get_args(ErrorCategory)], "state": ["", *get_args(PatternState)]
        },
        columns=pattern_columns(look),
        like=[
            each
            for each in met
            if tool.casefold() in w.format_tool(each.pattern.tool).casefold()
            and category in ("", each.pattern.category)
            and state in ("", each.pattern.state)
        ],
    )  # fmt: skip


async def list_costly(look: Look, most: int) -> list[tuple[PatternCost, str, str]]:
    """Return what to fix first: how often it is met, and the id of advice to the tool's maker."""
    advised = await open_recommendations(look)
    costs = await rank_patterns(look.space, WindowList(window=look.window, limit=most))
    rows = []
    for each in costs.patterns:
        counts = (w.format_noun(each.failures, "failure"), compare_counts(each.before))
        advice = advised.get(tool_place(each.pattern.tool), ())
        advice_id = next((one.recommendation_id for one in advice), "")
        rows.append((each, ", ".join(filter(None, counts)), advice_id))
    return rows


def pattern_columns(look: Look) -> list[h.Column]:
    """Return the columns of tables of `PatternFailures`."""
    return [
        h.Column("title", "Pattern", of=lambda each: h.Anchor(
            w.format_line(each.pattern.title, w.MAX_SIGNATURE),
            look.link_pattern(each.pattern.pattern_id))),
        h.Column("signature", "In the tool's words",
                 of=lambda each: w.format_line(each.pattern.signature, w.MAX_SIGNATURE)),
        h.Column("server", "Server", of=lambda each: each.pattern.tool.server_name or ""),
        h.Column("state", "State", of=lambda each: state_words(each.pattern)),
        h.Column("failures", "Failures", "number", "Within the window."),
        h.Column("before", "Before", "number", "In the same span before it."),
        h.Column("mended", "Mended", "percent", "Of all failures there ever were.",
               lambda each: mended_share(each.pattern)),
        h.Column("agents", "Agents", "number", "Some of those it happened to.",
               lambda each: len(each.pattern.agents)),
        h.Column("last_seen", "Last seen", "time", of=lambda each: each.pattern.last_seen),
        h.Column("lesson", "Lesson",
                 of=lambda each: w.format_line(each.pattern.lesson, w.MAX_SIGNATURE)),
    ]  # fmt: skip


def compare_counts(before: int | None) -> str:
    """Return how often it was met in the span before; "" if that is unknown."""
    words = f"{w.format_count(before) if before else 'none'} in the same time before"
    return "" if before is None else words
