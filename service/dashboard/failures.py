"""*Failures*: the patterns that are met most, what helps against them, and all others to search."""

from collections.abc import Iterable, Sequence
from typing import Final, get_args

from aftercall.models import ErrorCategory, PatternFailures
from service import statistics
from service.dashboard.html import (
    Column,
    Html,
    Link,
    bars,
    choice,
    details,
    empty,
    form,
    link,
    markup,
    p,
    search_field,
    section,
    stat,
    stats,
    tag,
)
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
from service.dashboard.words import (
    MAX_SIGNATURE,
    count,
    counted,
    one_line,
    percent,
    tool_name,
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
    content = [
        None if met else await _nothing_met(look, failed, is_complete),
        section(
            "In this window",
            stats(
                stat("Failures", count(failed)),
                stat("Patterns met", count(len(met))),
                stat("Of no pattern yet", count(found.other_failures),
                     "the next nightly run looks at them"),
            ),
        ),
        await _met_most(look, met[:_TOP]) if met else None,
        section(
            "Failures by category",
            bars(
                "Failures by category",
                [
                    (
                        link(each.category, look.link("/failures", category=each.category)),
                        f"{count(each.failures)} ({percent(each.failures / max(1, failed))})",
                        each.failures / max(other.failures for other in usage.by_category),
                    )
                    for each in usage.by_category
                ],
            ),
            remark="Choose one to see its patterns.",
        )
        if usage.by_category
        else None,
        _all_patterns(look, met) if met else None,
    ]  # fmt: skip
    return Shown("Failures", content, found.until, is_complete=found.is_complete)


async def _nothing_met(look: Look, failed: int, is_complete: bool) -> Html:  # noqa: FBT001
    if not (is_complete and failed):
        return empty(
            "No failure in this window.",
            "Choose a longer window, or record calls with the SDK, the gateway or POST "
            "/executions. A month of made-up ones:",
            "aftercall demo --history",
            is_complete=is_complete,
        )
    if await consolidated_at(*look.space) is None:
        return empty(
            "Failures are not gathered into patterns yet.",
            "The nightly run does that; run it now:",
            "aftercall nightly",
        )
    return empty(
        "No failure of a known pattern in this window.",
        "Choose a longer window. Failures that say something new become patterns in the next "
        "nightly run.",
    )


async def _met_most(look: Look, met: Sequence[PatternFailures]) -> Html:
    patterns = [each.pattern for each in met]
    key = f"examples of {[each.pattern_id for each in patterns]}"
    examples = await look.rarely(key, lambda: evidence_of(*look.space, patterns, _TRIED))
    cards = [_card(look, each, examples[each.pattern.pattern_id]) for each in met]
    return section(
        "Met most",
        tag("ol", cards, class_="patterns"),
        remark=f"At most {_TOP} patterns, most failures in the window first.",
    )


def _card(look: Look, met: PatternFailures, example: PatternEvidence) -> Html:
    pattern = met.pattern
    share = mended_share(pattern)
    so_far = f"Agents mended {percent(share)} of all so far." if share else "None is mended so far."
    often = [counted(met.failures, "failure"), compared(met.failures, met.before)]
    return tag(
        "li",
        tag("h3", link(one_line(pattern.signature, MAX_SIGNATURE),
                       look.pattern(pattern.pattern_id))),
        about(look, pattern),
        p(f"{', '.join(filter(None, often))}. {so_far}", class_="counted"),
        p(help_of(pattern), class_="lesson"),
        agents_html(look, pattern.agents),
        _example(look, example),
        class_="pattern",
        id=f"p-{pattern.pattern_id}",
    )  # fmt: skip


def _example(look: Look, example: PatternEvidence) -> Html:
    if example.repairs:
        title, shown = "Example with its repair", repair_html(look, example.repairs[0], 4)
    elif example.examples:
        title, shown = "Example", call_html(look, "Failed", example.examples[0], 4)
    else:
        return p("Its examples have expired.", class_="note")
    return markup([p(example.glimpse, class_="glimpse"), details(title, shown)])


def _all_patterns(look: Look, met: Iterable[PatternFailures]) -> Html:
    tool, category = (look.query.get(name, "").strip() for name in ("tool", "category"))
    asked = [
        each
        for each in met
        if tool.casefold() in tool_name(each.pattern.tool).casefold()
        and category in ("", each.pattern.category)
    ]
    categories = [("", "any"), *((each, each) for each in get_args(ErrorCategory))]
    return section(
        "All patterns",
        form(
            f"{PREFIX}/failures",
            search_field("Tool", "tool", tool),
            choice("Category", "category", categories, category),
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


def pattern_columns(look: Look) -> list[Column]:
    """What tables say of `PatternFailures`."""
    columns = [
        Column("signature", "Pattern", of=lambda each: Link(
            one_line(each.pattern.signature, MAX_SIGNATURE),
            look.pattern(each.pattern.pattern_id))),
        Column("tool", "Tool", of=lambda each: tool_name(each.pattern.tool)),
        Column("category", "Category", of=lambda each: each.pattern.category),
        Column("failures", "Failures", "number", "Within the window."),
        Column("before", "Before", "number", "In the same span before it."),
        Column("mended", "Mended", "percent", "Of all failures there ever were.",
               lambda each: mended_share(each.pattern)),
        Column("agents", "Agents", "number", "Some of those it happened to.",
               lambda each: len(each.pattern.agents)),
        Column("last_seen", "Last seen", "time", of=lambda each: each.pattern.last_seen),
        Column("lesson", "Lesson", of=lambda each: one_line(each.pattern.lesson, MAX_SIGNATURE)),
    ]  # fmt: skip
    # Nobody keeps what was before 30 days.
    return [each for each in columns if each.key != "before" or look.window != "30d"]


def compared(failures: int, before: int | None) -> str:
    """How the count of a window compares with the span before it; "" where that is unknown."""
    if before is None:
        return ""
    if failures == before:
        return f"as many as before ({count(before)})"
    word = "more" if failures > before else "fewer"
    return f"{count(abs(failures - before))} {word} than before ({count(before)})"
