"""*Suggestions*: what was answered, what came of it, and how far a confidence can be trusted."""

from collections.abc import Sequence
from typing import Final

from aftercall.models import (
    AnswerCounts,
    CallCounts,
    ConfidenceBin,
    ConfidenceStatistics,
    ReflectionStatistics,
    RepairTimes,
)
from retrieval.confidence import ENOUGH_OUTCOMES, Scaling, log_odds, logistic
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.charts import Point, scatter_chart
from service.dashboard.look import Look, Shown

FEW: Final = 30
"""Outcomes of one bin below which its share says little: its standard error is near 0.1."""
_SHOWN_CONFIDENCES: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


async def suggestions(look: Look) -> Shown:
    """The page."""
    reflection = await statistics.reflection(*look.space, look.window)
    confidence = await statistics.confidence(*look.space)
    known = await look.context.memory.calibration(look.workspace)
    nothing = h.empty(
        "No call in this window, and no outcome of a suggestion yet.",
        "Choose a longer window, or fill the store with a history to look at.",
        "aftercall demo --history",
    )
    content = [
        None if w.calls(reflection.first_attempts) or confidence.judged else nothing,
        _effect(reflection),
        _answers(reflection.answers),
        _calibration(look, confidence),
        _in_force(known.scaling),
    ]
    at, is_complete = reflection.until, reflection.is_complete
    return Shown("Suggestions", content, at, is_complete=is_complete)


def _effect(found: ReflectionStatistics) -> h.Html:
    def rate(label: str, counts: CallCounts) -> tuple[str, ...]:
        of = f"{w.count(counts.successes)} of {w.count(w.calls(counts))}"
        return label, w.percent(w.success_rate(counts)), of

    return h.markup([
        h.section(
            "Before and after reflection",
            h.p(effect_words(found)),
            h.stats(
                rate("First attempts that succeeded", found.first_attempts),
                rate("Tasks that succeeded", found.tasks),
                rate("Retries that succeeded", found.retries),
                rate("Calls after a suggestion that succeeded", found.suggested),
            ),
            remark="A task is a first attempt with the retries that followed it.",
        ),
        h.section(
            "Time to repair",
            h.stats(
                ("With a suggestion", *repair_words(found.with_suggestion)),
                ("Without one", *repair_words(found.without_suggestion)),
            ),
            remark="From a failure to the success that mended it, by the callers' own clocks.",
        ),
    ])  # fmt: skip


def _answers(answers: AnswerCounts) -> h.Html:
    def part(label: str, some: int) -> tuple[str, str]:
        return label, f"{w.count(some)} ({w.percent(some / answers.asked)})"

    remark = "By the day on which they were asked for."
    number = h.Column("answers", "Answers", "number")
    if not answers.asked:
        missing = h.empty(
            "Nothing was asked in this window.",
            "A gateway asks POST /suggest when a call fails; to see an answer now, open the page "
            "Try it.",
        )
        return h.section("Answers", missing, remark=remark)
    actions = h.plain_table(
        "Answers by action",
        [h.Column("action", "Best suggestion"), number],
        answers.by_action,
        missing="No answer had a suggestion.",
    )
    abstentions = h.plain_table(
        "Abstentions by kind of error",
        [h.Column("category", "Kind of error"), number],
        answers.abstentions,
        missing="Every answer had a suggestion.",
    )
    rest = max(0, answers.asked - answers.abstained - answers.confident)
    return h.section(
        "Answers",
        h.facts(
            ("Asked", w.count(answers.asked)),
            part("Best suggestion above 0.80", answers.confident),
            part("Suggestions, none so sure", rest),
            part("No suggestion, with a reason", answers.abstained),
        ),
        h.box(
            "grid",
            h.box("", h.tag("h3", "By action"), actions),
            h.box("", h.tag("h3", "Without a suggestion"), abstentions),
        ),
        remark=remark,
    )


def _calibration(look: Look, found: ConfidenceStatistics) -> h.Html:
    missing = h.empty(
        "No outcome of a suggestion is known yet.",
        "Record the call that followed a suggestion with its suggestionId, or send "
        "POST /suggestions/{suggestionId}/outcome.",
    )
    return h.section(
        "Calibration",
        _reliability(look, found) if found.judged else missing,
        remark="Of the latest 2,000 outcomes of suggestions, whatever the window. A confidence is "
        "the probability that the suggestion is right; points on the diagonal kept what they "
        "promised.",
    )


def _reliability(look: Look, found: ConfidenceStatistics) -> list[h.Html]:
    title, across = "Promised and kept, by tenths of confidence", "mean confidence"
    chart = scatter_chart(title, across, "share that succeeded", points(found.bins))
    columns = [
        h.Column("bin", "Confidence", of=bin_name),
        h.Column("judged", "Outcomes", "number"),
        h.Column("mean_confidence", "Mean", "percent", "mean confidence"),
        h.Column("succeeded", "Succeeded", "percent"),
        h.Column("gap", "Difference", "percent", "above 0: more succeeded than was promised", gap),
    ]
    error, brier = w.score(found.expected_calibration_error, 3), w.score(found.brier, 3)
    return [
        h.p(trust_words(found)),
        h.p(
            "An outcome says whether the call succeeded, not whether it did what was meant. A call "
            "that succeeds at something else counts as a success here, so that a point above the "
            "diagonal is no proof of being right."
        ),
        h.stats(
            ("Expected calibration error", error, "0 is best"),
            ("Brier score", brier, "mean squared error; 0 is best"),
            ("Outcomes", w.count(found.judged)),
        ),
        h.box("grid", h.box("", chart),
              h.box("", look.table("Calibration by tenths", columns, found.bins))),
    ]  # fmt: skip


def _in_force(scaling: Scaling) -> h.Html:
    title = "Which calibration is in force"
    if not scaling.outcomes:
        words = (
            "The shipped calibration is in force. The nightly run fits this workspace's own once "
            f"{w.count(ENOUGH_OUTCOMES)} outcomes of its suggestions are known, and takes it where "
            "it fits them better."
        )
        return h.section(title, h.p(words))
    at = f" at {w.moment(scaling.fitted_at)}" if scaling.fitted_at else ""
    fitted = w.counted(scaling.outcomes, "outcome")
    columns = [
        h.Column("shipped", "Shipped confidence", "percent"),
        h.Column("own", "In this workspace", "percent"),
    ]
    rows = [{"shipped": each, "own": rescaled(scaling, each)} for each in _SHOWN_CONFIDENCES]
    facts = h.facts(
        ("Shift", f"{scaling.shift:+.2f} (above 0 raises every confidence)"),
        ("Slope", f"{scaling.slope:.2f} (below 1 draws confidences together)"),
    )
    return h.section(
        title,
        h.p(f"This workspace's own calibration is in force, fitted on {fitted}{at}."),
        h.box(
            "narrow", facts, h.plain_table("Own calibration beside the shipped one", columns, rows)
        ),
    )


def rescaled(scaling: Scaling, shipped: float) -> float:
    """What the workspace's own calibration makes of a shipped confidence."""
    return round(logistic(scaling.shift + scaling.slope * log_odds(shipped)), 4)


def bin_name(each: ConfidenceBin) -> str:
    """A tenth of the scale, such as `70 to 80 %`."""
    return f"{each.at_least * 100:.0f} to {each.below * 100:.0f} %"


def gap(each: ConfidenceBin) -> float | None:
    """The share of successes minus the mean confidence; None without outcomes."""
    if each.mean_confidence is None or each.succeeded is None:
        return None
    return each.succeeded - each.mean_confidence


def points(bins: Sequence[ConfidenceBin]) -> dict[str, list[Point]]:
    """Mean confidence and share of successes of bins with outcomes; those with few apart."""
    found: dict[str, list[Point]] = {f"{FEW} outcomes or more": [], "fewer": []}
    for each in bins:
        if each.mean_confidence is not None and each.succeeded is not None:
            many, few = found.values()
            (many if each.judged >= FEW else few).append((each.mean_confidence, each.succeeded))
    return {name: each for name, each in found.items() if each}


def trust_words(confidence: ConfidenceStatistics) -> str:
    """What the calibration says, in a sentence or two."""
    of = f"Of {w.counted(confidence.judged, 'outcome')}, "
    error = confidence.expected_calibration_error
    if error is None:
        return f"{of}none says how sure the suggestion was."
    on_average = (
        f"{of}what was promised and what came of it differ by {_points_apart(error)} on average."
    )
    enough = [(gap(each) or 0.0, each) for each in confidence.bins if each.judged >= FEW]
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


def effect_words(reflection: ReflectionStatistics) -> str:
    """Before and after reflection, in a sentence."""
    before, after = w.success_rate(reflection.first_attempts), w.success_rate(reflection.tasks)
    if before is None or after is None:
        return "No call in this window."
    return (
        f"{w.percent(before)} of the first attempts succeeded; with the retries that followed, "
        f"{w.percent(after)} of the tasks did: {_points_apart(after - before)} more."
    )


def repair_words(times: RepairTimes) -> tuple[str, str]:
    """The median time to repair, and what it is made from."""
    if not times.repairs or times.p50_ms is None:
        return "-", "no repair in the window"
    slow = "" if times.p95_ms is None else f", 95 % within {w.duration(times.p95_ms)}"
    return w.duration(times.p50_ms), f"median of {w.counted(times.repairs, 'repair')}{slow}"


def _points_apart(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} percentage points"
