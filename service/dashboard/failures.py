"""*Failures*: the patterns that are met most, what helps against them, and all others to search."""

from typing import Final, get_args

from aftercall.models import ErrorCategory
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.dashboard.pattern import evidence_of, mended_share
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
    most = max((each.failures for each in usage.by_category), default=1)
    by_category = [
        (
            h.Link(each.category, look.link("/failures", category=each.category)),
            f"{w.count(each.failures)} ({w.percent(each.failures / max(1, failed))})",
            each.failures / most,
        )
        for each in usage.by_category
    ]
    top = [each.pattern for each in met[:_TOP]]
    key = f"examples of {[each.pattern_id for each in top]}"
    examples = await look.rarely(key, lambda: evidence_of(*look.space, top, _TRIED)) if top else {}
    tool, category = (look.query.get(name, "").strip() for name in ("tool", "category"))
    return look.shows(
        "Failures",
        "failures",
        at=found.until,
        is_complete=found.is_complete,
        is_counted=found.is_complete and usage.is_complete,
        failed=failed,
        found=found,
        gathered=bool(met) or await consolidated_at(*look.space) is not None,
        top=[
            (
                each.pattern,
                examples[each.pattern.pattern_id],
                ", ".join(filter(None, (w.counted(each.failures, "failure"),
                                        compared(each.failures, each.before)))),
                mended_share(each.pattern),
            )
            for each in met[:_TOP]
        ],
        by_category=by_category,
        asked={"tool": tool, "category": category},
        categories=["", *get_args(ErrorCategory)],
        columns=pattern_columns(look),
        like=[
            each
            for each in met
            if tool.casefold() in w.tool_name(each.pattern.tool).casefold()
            and category in ("", each.pattern.category)
        ],
    )  # fmt: skip


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
