"""*Suggestions*: answers, their outcomes, and how far a confidence can be trusted."""

from collections.abc import Sequence
from typing import Final

from aftercall import models as m
from retrieval.knowledge.confidence import ENOUGH_OUTCOMES
from service.api.reflection import read_confidence, read_reflection
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.charts import Point, scatter_chart
from service.dashboard.look import Look, Shown
from service.requests import Window

FEW: Final = 30
"""Outcomes of one bin below which its share states little: its standard error is near 0.1."""


async def show_suggestions(look: Look) -> Shown:
    """Return the page."""
    reflection = await read_reflection(look.space, Window(window=look.window))
    confidence = await read_confidence(look.space)
    title, across = "Promised and kept, by tenths of confidence", "mean confidence"
    return look.show_page(
        "Suggestions",
        "suggestions",
        of=reflection,
        reflection=reflection,
        earlier=await read_reflection(look.space, Window(window=look.before)),
        confidence=confidence,
        scaling=await look.context.memory.read_scaling(look.workspace),
        effect=effect_words(reflection),
        trust=trust_words(confidence),
        repair_words=repair_words,
        enough=ENOUGH_OUTCOMES,
        chart=scatter_chart(title, across, "share that succeeded", list_points(confidence.bins)),
        actions=[h.Column("action", "Best suggestion"), _ANSWERS],
        kinds=[h.Column("category", "Kind of error"), _ANSWERS],
        tenths=_TENTHS,
        shadow_columns=_SHADOW,
        shadow_rows=shadow_rows(reflection.shadow) if reflection.shadow else [],
    )


def shadow_rows(shadow: m.ShadowCounts) -> list[dict[str, object]]:
    """Return what the gateway would have done about watched calls, and how those calls ended."""
    counted = (
        ("changed before the call", shadow.repaired_before),
        ("not made at all", shadow.blocked),
        ("repaired after it failed, as the agent then did", shadow.same),
        ("repaired after it failed, and the agent did something else", shadow.other),
    )
    rows: list[dict[str, object]] = [
        {
            "what": said,
            "calls": w.count_calls(counts),
            "worked": counts.successes,
            "failed": counts.failures,
        }
        for said, counts in counted
    ]
    alone = shadow.repaired_after - w.count_calls(shadow.same) - w.count_calls(shadow.other)
    left = "repaired after it failed, and the agent left it"
    return [*rows, {"what": left, "calls": max(0, alone), "worked": None, "failed": None}]


def bin_name(each: m.ConfidenceBin) -> str:
    """Return a tenth of the scale, such as `70 to 80 %`."""
    return f"{each.at_least * 100:.0f} to {each.below * 100:.0f} %"


def find_gap(each: m.ConfidenceBin) -> float | None:
    """Return the share of successes minus the mean confidence; None without outcomes."""
    if each.mean_confidence is None or each.succeeded is None:
        return None
    return each.succeeded - each.mean_confidence


def list_points(bins: Sequence[m.ConfidenceBin]) -> dict[str, list[Point]]:
    """Return mean confidence and share of successes of bins with outcomes; small ones apart."""
    found: dict[str, list[Point]] = {f"{FEW} outcomes or more": [], "fewer": []}
    for each in bins:
        if each.mean_confidence is not None and each.succeeded is not None:
            many, few = found.values()
            (many if each.judged >= FEW else few).append((each.mean_confidence, each.succeeded))
    return {name: each for name, each in found.items() if each}


def trust_words(confidence: m.ConfidenceStatistics) -> str:
    """Return how far confidences can be trusted, in a sentence or two."""
    of = f"Of {w.format_noun(confidence.judged, 'outcome')}, "
    if (error := confidence.expected_calibration_error) is None:
        return f"{of}none says how sure the suggestion was."
    on_average = (
        f"{of}what was promised and what came of it differ by {_points_apart(error)} on average."
    )
    enough = [(find_gap(each) or 0.0, each) for each in confidence.bins if each.judged >= FEW]
    if not enough:
        return (
            f"{on_average} No tenth of the scale has {FEW} outcomes yet, so a single point says "
            "little."
        )
    apart, worst = max(enough, key=lambda pair: abs(pair[0]))
    return (
        f"{on_average} Farthest off with {FEW} or more outcomes is {bin_name(worst)}: "
        f"{_points_apart(apart)} {'more' if apart >= 0 else 'less'} than promised succeeded."
    )


def effect_words(reflection: m.ReflectionStatistics) -> str:
    """Return success before and after reflection, in a sentence."""
    before, after = w.success_rate(reflection.first_attempts), w.success_rate(reflection.tasks)
    if before is None or after is None:
        return "No call in this window."
    return (
        f"{w.format_percent(before)} of the calls were right as they were sent; with "
        f"{w.format_noun(reflection.repaired_before.successes, 'repair')} before the call and "
        f"{w.format_noun(reflection.retries.successes, 'repair')} after it, "
        f"{w.format_percent(after)} of the tasks succeeded: {_points_apart(after - before)} more."
    )


def repair_words(times: m.RepairTimes) -> tuple[str, str]:
    """Return the median time to repair, and the number of repairs it is made from."""
    if not times.repairs or times.p50_ms is None:
        return "-", "no repair in the window"
    slow = "" if times.p95_ms is None else f", 95 % within {w.format_duration(times.p95_ms)}"
    return w.format_duration(
        times.p50_ms
    ), f"median of {w.format_noun(times.repairs, 'repair')}{slow}"


def _points_apart(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} percentage points"


_ANSWERS: Final = h.Column("answers", "Answers", "number")
_SHADOW: Final = [
    h.Column("what", "Would have been"),
    h.Column("calls", "Calls", "number"),
    h.Column("worked", "Worked", "number"),
    h.Column("failed", "Failed", "number"),
]
_TENTHS: Final = (
    h.Column("bin", "Confidence", of=bin_name),
    h.Column("judged", "Outcomes", "number"),
    h.Column("mean_confidence", "Mean", "percent", "mean confidence"),
    h.Column("succeeded", "Succeeded", "percent"),
    h.Column("gap", "Difference", "percent", "above 0: more succeeded than was promised", find_gap),
)
