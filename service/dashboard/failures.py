"""*Failures*: the patterns that are met most, what helps against them, and all others to search."""

from collections.abc import Iterable, Sequence
from typing import Final, get_args

from aftercall.models import ErrorCategory, PatternFailures
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import PREFIX, Look, Shown
from service.dashboard.pattern import (
    PatternEvidence,
    about,
    agents_html,
    call_html,
    evidence_of,
    help_of,
    mended_share,
    repair_html,
)
from service.patterns import consolidated_at

MAX_PATTERNS: Final = 500
"""Patterns in the table, those met most in the window; as many as `GET /stats/patterns` gives."""
_TOP: Final = 10
_TRIED: Final = 3
"""Repairs of a pattern that are read for one: the calls of the latest may have expired."""


async def failures(look: Look) -> Shown:
    """The page."""
    found = await statistics.patterns(*look.space, look.window, MAX_PATTERNS)
    usage = await statistics.usage(*look.space, look.window, 1)
    met, failed = found.patterns, usage.totals.failures
    is_complete = found.is_complete and usage.is_complete
    most = max((each.failures for each in usage.by_category), default=1)
    by_category = [
        (
            h.link(each.category, look.link("/failures", category=each.category)),
            f"{w.count(each.failures)} ({w.percent(each.failures / max(1, failed))})",
            each.failures / most,
        )
        for each in usage.by_category
    ]
    numbers = h.stats(
        ("Failures", w.count(failed)),
        ("Patterns met", w.count(len(met))),
        ("Of no pattern yet", w.count(found.other_failures), "the next nightly run looks at them"),
    )
    name, remark = "Failures by category", "Choose one to see its patterns."
    content = [
        None if met else await _nothing_met(look, failed, is_complete),
        h.section("In this window", numbers),
        await _met_most(look, met[:_TOP]) if met else None,
        h.section(name, h.bars(name, by_category), remark=remark) if by_category else None,
        _all_patterns(look, met) if met else None,
    ]
    return Shown("Failures", content, found.until, is_complete=found.is_complete)


async def _nothing_met(look: Look, failed: int, is_complete: bool) -> h.Html:  # noqa: FBT001
    if not (is_complete and failed):
        return h.empty(
            "No failure in this window.",
            "Choose a longer window, or record calls with the SDK, the gateway or POST "
            "/executions. A month of made-up ones:",
            "aftercall demo --history",
            is_complete=is_complete,
        )
    if await consolidated_at(*look.space) is None:
        return h.empty(
            "Failures are not gathered into patterns yet.",
            "The nightly run does that; run it now:",
            "aftercall nightly",
        )
    return h.empty(
        "No failure of a known pattern in this window.",
        "Choose a longer window. Failures that say something new become patterns in the next "
        "nightly run.",
    )


async def _met_most(look: Look, met: Sequence[PatternFailures]) -> h.Html:
    patterns = [each.pattern for each in met]
    key = f"examples of {[each.pattern_id for each in patterns]}"
    examples = await look.rarely(key, lambda: evidence_of(*look.space, patterns, _TRIED))
    cards = [_card(look, each, examples[each.pattern.pattern_id]) for each in met]
    return h.section(
        "Met most",
        h.tag("ol", cards, class_="patterns"),
        remark=f"At most {_TOP} patterns, most failures in the window first.",
    )


def _card(look: Look, met: PatternFailures, example: PatternEvidence) -> h.Html:
    pattern, share = met.pattern, mended_share(met.pattern)
    mended = f"Agents mended {w.percent(share)} of all so far."
    often = [w.counted(met.failures, "failure"), compared(met.failures, met.before)]
    words = f"{', '.join(filter(None, often))}. {mended if share else 'None is mended so far.'}"
    signature = w.one_line(pattern.signature, w.MAX_SIGNATURE)
    content = [
        h.tag("h3", h.link(signature, look.pattern(pattern.pattern_id))),
        about(look, pattern),
        h.p(words, class_="counted"),
        h.p(help_of(pattern), class_="lesson"),
        agents_html(look, pattern.agents),
        _example(look, example),
    ]
    return h.tag("li", content, class_="pattern", id=f"p-{pattern.pattern_id}")


def _example(look: Look, example: PatternEvidence) -> h.Html:
    if example.repairs:
        title, shown = "Example with its repair", repair_html(look, example.repairs[0], 4)
    elif example.examples:
        title, shown = "Example", call_html(look, "Failed", example.examples[0], 4)
    else:
        return h.p("Its examples have expired.", class_="note")
    return h.markup([h.p(example.glimpse, class_="glimpse"), h.details(title, shown)])


def _all_patterns(look: Look, met: Iterable[PatternFailures]) -> h.Html:
    tool, category = (look.query.get(name, "").strip() for name in ("tool", "category"))
    asked = [
        each
        for each in met
        if tool.casefold() in w.tool_name(each.pattern.tool).casefold()
        and category in ("", each.pattern.category)
    ]
    categories = [("", "any"), *((each, each) for each in get_args(ErrorCategory))]
    return h.section(
        "All patterns",
        h.form(
            f"{PREFIX}/failures",
            h.search_field("Tool", "tool", tool),
            h.choice("Category", "category", categories, category),
            hidden=[("window", look.window), ("workspace", look.workspace)],
        ),
        look.table(
            "Failure patterns",
            pattern_columns(look),
            asked,
            missing="No pattern of this window is like that.",
            look="wide",
        ),
        remark="Those met in this window.",
    )


def pattern_columns(look: Look) -> list[h.Column]:
    """What tables say of `PatternFailures`."""
    columns = [
        h.Column("signature", "Pattern", of=lambda each: h.Link(
            w.one_line(each.pattern.signature, w.MAX_SIGNATURE),
            look.pattern(each.pattern.pattern_id))),
        h.Column("tool", "Tool", of=lambda each: w.tool_name(each.pattern.tool)),
        h.Column("category", "Category", of=lambda each: each.pattern.category),
        h.Column("failures", "Failures", "number", "Within the window."),
        h.Column("before", "Before", "number", "In the same span before it."),
        h.Column("mended", "Mended", "percent", "Of all failures there ever were.",
               lambda each: mended_share(each.pattern)),
        h.Column("agents", "Agents", "number", "Some of those it happened to.",
               lambda each: len(each.pattern.agents)),
        h.Column("last_seen", "Last seen", "time", of=lambda each: each.pattern.last_seen),
        h.Column("lesson", "Lesson",
                 of=lambda each: w.one_line(each.pattern.lesson, w.MAX_SIGNATURE)),
    ]  # fmt: skip
    # Nobody keeps what was before 30 days.
    return [each for each in columns if each.key != "before" or look.window != "30d"]


def compared(failures: int, before: int | None) -> str:
    """How the count of a window compares with the span before it; "" where that is unknown."""
    if before is None:
        return ""
    if failures == before:
        return f"as many as before ({w.count(before)})"
    word = "more" if failures > before else "fewer"
    return f"{w.count(abs(failures - before))} {word} than before ({w.count(before)})"
