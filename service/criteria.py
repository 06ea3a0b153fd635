"""Seed 004's success criteria, counted over a window: how many of how many meet each.

`bench/criteria.py` counts the same from outside.
"""

from typing import Final

from aftercall import models as m
from retrieval.knowledge.rows import counters as what
from service import statistics
from service.context import Context
from service.windows import span_of

ASKED: Final = {
    "context": 0.80,
    "right_fix": 0.70,
    "repaired": 0.50,
    "repaired_of_not_refused": 0.70,
    "lift": 0.15,
    "lessons": None,
}
"""Seed 004, "Success Criteria"; the fourth is of the failures that a retry can settle at all."""
_REFUSED: Final = ("permission_denied", "user_rejected")
_COMMON: Final = 10
"""Seed 004: "Top 10 failure patterns"."""


async def criteria(context: Context, workspace: str, window: m.UsageWindow) -> m.Criteria:
    """Return what the calls of a window meet of each criterion."""
    span = span_of(context, workspace, window)
    seen = await statistics.reflection(context, workspace, window)
    counted = await span.by_name(
        what.SUCCESS, what.FAILURE, what.WITH_CONTEXT,
        *(f"{what.CATEGORY}{category}" for category in _REFUSED),
    )  # fmt: skip
    common = (await statistics.patterns(context, workspace, window, _COMMON)).patterns
    failed = seen.first_attempts.failures
    refused = sum(counted[f"{what.CATEGORY}{category}"] for category in _REFUSED)
    gained = seen.tasks.successes - seen.first_attempts.successes
    followed = (seen.suggested, seen.repaired_before)
    worked = sum(each.successes for each in followed)
    met = {
        "context": (counted[what.WITH_CONTEXT], counted[what.SUCCESS] + counted[what.FAILURE]),
        "right_fix": (worked, worked + sum(each.failures for each in followed)),
        "repaired": (gained, failed),
        "repaired_of_not_refused": (gained, max(gained, failed - refused)),
        "lift": (gained, seen.tasks.successes + seen.tasks.failures),
        "lessons": (sum(bool(each.pattern.lesson) for each in common), len(common)),
    }
    return m.Criteria(
        window=seen.window,
        since=seen.since,
        until=seen.until,
        is_complete=seen.is_complete,
        criteria=[
            m.Criterion.model_validate({"name": name, "met": of[0], "of": of[1], "asked": asked})
            for (name, asked), of in zip(ASKED.items(), met.values(), strict=True)
        ],
    )
