"""*Criteria*: what the calls of a window meet of seed 004's success criteria."""

from typing import Final

from aftercall.models import Criterion, Trend
from service.api.reflection import read_criteria
from service.api.statistics import ToolWindow, read_trend
from service.dashboard import words as w
from service.dashboard.charts import rates_chart
from service.dashboard.look import Look, Shown
from service.requests import Window

_NAMES: Final = {
    "context": ("Calls with their context", "calls that say what they are for"),
    "right_fix": ("Right fix", "calls made as Aftercall wanted them, which worked"),
    "repaired": ("Repaired automatically", "calls that failed, or would have, and worked"),
    "repaired_of_not_refused": (
        "Of those not refused",
        "the same, without those that a permission or a person refused",
    ),
    "lift": ("Lift", "calls that would have failed and worked, of all calls: points of success"),
    "lessons": ("Lessons", "of the ten most frequent failure patterns those with a lesson"),
}


async def show_criteria(look: Look) -> Shown:
    """Return the page."""
    found = await read_criteria(look.space, Window(window=look.window))
    trend = await read_trend(look.space, ToolWindow(window=look.window))
    return look.show_page(
        "Criteria",
        "criteria",
        of=found,
        is_used=any(each.of for each in found.criteria),
        numbers=[count_met(each) for each in found.criteria],
        names=[_NAMES[each.name] for each in found.criteria],
        trend=trend_words(trend),
        success=rates_chart("Success rate over time", trend, {"Succeeded": trend.points}, 200),
    )


def count_met(criterion: Criterion) -> tuple[str, str, str]:
    """Return the name, the share and the count of a criterion, and the asked share."""
    asked = "" if criterion.asked is None else f"; asked: {criterion.asked * 100:.0f} %"
    told = f"{w.format_count(criterion.met)} of {w.format_count(criterion.of)}{asked}"
    return _NAMES[criterion.name][0], w.format_percent(criterion.share), told


def trend_words(trend: Trend) -> str:
    """Return how calls went in the first and in the second half of the window."""
    half = len(trend.points) // 2
    parts = trend.points[:half], trend.points[half:]
    shares = []
    for part in parts:
        worked = sum(each.successes for each in part)
        made = worked + sum(each.failures for each in part)
        shares.append(worked / made if made else None)
    if None in shares:
        return "No calls in one half of the window, so there is no trend yet."
    first, second = map(w.format_percent, shares)
    return f"{first} in the first half of the window, {second} since."
