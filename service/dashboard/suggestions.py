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
from service.dashboard.charts import Point, scatter_chart
from service.dashboard.html import (
    Column,
    Html,
    box,
    empty,
    facts,
    grid,
    markup,
    p,
    plain_table,
    section,
    stat,
    stats,
    tag,
)
from service.dashboard.look import Look, Shown
from service.dashboard.words import (
    calls,
    count,
    counted,
    duration,
    moment,
    percent,
    score,
    success_rate,
)

FEW: Final = 30
"""Outcomes of one bin below which its share says little: its standard error is near 0.1."""
_SHOWN_CONFIDENCES: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


async def suggestions(look: Look) -> Shown:
    """The page."""
    reflection = await statistics.reflection(*look.space, look.window)
    confidence = await statistics.confidence(*look.space)
    known = await look.context.memory.calibration(look.workspace)
    is_empty = not calls(reflection.first_attempts) and not confidence.judged
    content = [
        empty(
            "No call in this window, and no outcome of a suggestion yet.",
            "Choose a longer window, or fill the store with a history to look at.",
            "aftercall demo --history",
        )
        if is_empty
        else None,
        _effect(reflection),
        _answers(reflection.answers),
        _calibration(look, confidence),
        _in_force(known.scaling),
    ]
    title = "Suggestions"
    return Shown(title, content, reflection.until, is_complete=reflection.is_complete)


def _effect(found: ReflectionStatistics) -> Html:
    return markup([
        section(
            "Before and after reflection",
            p(effect_words(found)),
            stats(
                stat("First attempts that succeeded", *_rate(found.first_attempts)),
                stat("Tasks that succeeded", *_rate(found.tasks)),
                stat("Retries that succeeded", *_rate(found.retries)),
                stat("Calls after a suggestion that succeeded", *_rate(found.suggested)),
            ),
            remark="A task is a first attempt with the retries that followed it.",
        ),
        section(
            "Time to repair",
            stats(
                stat("With a suggestion", *repair_words(found.with_suggestion)),
                stat("Without one", *repair_words(found.without_suggestion)),
            ),
            remark="From a failure to the success that mended it, by the callers' own clocks.",
        ),
    ])  # fmt: skip


def _answers(answers: AnswerCounts) -> Html:
    remark = "By the day on which they were asked for."
    if not answers.asked:
        missing = empty(
            "Nothing was asked in this window.",
            "A gateway asks POST /suggest when a call fails; to see an answer now, open the page "
            "Try it.",
        )
        return section("Answers", missing, remark=remark)
    rest = max(0, answers.asked - answers.abstained - answers.confident)
    actions = plain_table(
        "Answers by action",
        [Column("action", "Best suggestion"), Column("answers", "Answers", "number")],
        answers.by_action,
        missing="No answer had a suggestion.",
    )
    abstentions = plain_table(
        "Abstentions by kind of error",
        [Column("category", "Kind of error"), Column("answers", "Answers", "number")],
        answers.abstentions,
        missing="Every answer had a suggestion.",
    )
    return section(
        "Answers",
        facts(
            ("Asked", count(answers.asked)),
            ("Best suggestion above 0.80", _part(answers.confident, answers.asked)),
            ("Suggestions, none so sure", _part(rest, answers.asked)),
            ("No suggestion, with a reason", _part(answers.abstained, answers.asked)),
        ),
        grid(
            box("", tag("h3", "By action"), actions),
            box("", tag("h3", "Without a suggestion"), abstentions),
        ),
        remark=remark,
    )


def _calibration(look: Look, found: ConfidenceStatistics) -> Html:
    remark = (
        "Of the latest 2,000 outcomes of suggestions, whatever the window. A confidence is the "
        "probability that the suggestion is right; points on the diagonal kept what they promised."
    )
    if not found.judged:
        missing = empty(
            "No outcome of a suggestion is known yet.",
            "Record the call that followed a suggestion with its suggestionId, or send "
            "POST /suggestions/{suggestionId}/outcome.",
        )
        return section("Calibration", missing, remark=remark)
    chart = scatter_chart(
        "Promised and kept, by tenths of confidence",
        "mean confidence",
        "share that succeeded",
        points(found.bins),
    )
    table = look.table(
        "Calibration by tenths",
        [
            Column("bin", "Confidence", of=bin_name),
            Column("judged", "Outcomes", "number"),
            Column("mean_confidence", "Mean", "percent", "mean confidence"),
            Column("succeeded", "Succeeded", "percent"),
            Column(
                "gap", "Difference", "percent", "above 0: more succeeded than was promised", gap
            ),
        ],
        found.bins,
    )
    return section(
        "Calibration",
        p(trust_words(found)),
        p(
            "An outcome says whether the call succeeded, not whether it did what was meant. A call "
            "that succeeds at something else counts as a success here, so that a point above the "
            "diagonal is no proof of being right."
        ),
        stats(
            stat("Expected calibration error", score(found.expected_calibration_error, 3),
                 "0 is best"),
            stat("Brier score", score(found.brier, 3), "mean squared error; 0 is best"),
            stat("Outcomes", count(found.judged)),
        ),
        grid(box("", chart), box("", table)),
        remark=remark,
    )  # fmt: skip


def _in_force(scaling: Scaling) -> Html:
    if not scaling.outcomes:
        words = (
            "The shipped calibration is in force. The nightly run fits this workspace's own once "
            f"{count(ENOUGH_OUTCOMES)} outcomes of its suggestions are known, and takes it where "
            "it fits them better."
        )
        return section("Which calibration is in force", p(words))
    at = f" at {moment(scaling.fitted_at)}" if scaling.fitted_at else ""
    fitted = counted(scaling.outcomes, "outcome")
    table = plain_table(
        "Own calibration beside the shipped one",
        [
            Column("shipped", "Shipped confidence", "percent"),
            Column("own", "In this workspace", "percent"),
        ],
        [{"shipped": each, "own": rescaled(scaling, each)} for each in _SHOWN_CONFIDENCES],
    )
    return section(
        "Which calibration is in force",
        p(f"This workspace's own calibration is in force, fitted on {fitted}{at}."),
        box(
            "narrow",
            facts(
                ("Shift", f"{scaling.shift:+.2f} (above 0 raises every confidence)"),
                ("Slope", f"{scaling.slope:.2f} (below 1 draws confidences together)"),
            ),
            table,
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
    of = f"Of {counted(confidence.judged, 'outcome')}, "
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
    before, after = success_rate(reflection.first_attempts), success_rate(reflection.tasks)
    if before is None or after is None:
        return "No call in this window."
    return (
        f"{percent(before)} of the first attempts succeeded; with the retries that followed, "
        f"{percent(after)} of the tasks did: {_points_apart(after - before)} more."
    )


def repair_words(times: RepairTimes) -> tuple[str, str]:
    """The median time to repair, and what it is made from."""
    if not times.repairs or times.p50_ms is None:
        return "-", "no repair in the window"
    slow = "" if times.p95_ms is None else f", 95 % within {duration(times.p95_ms)}"
    return duration(times.p50_ms), f"median of {counted(times.repairs, 'repair')}{slow}"


def _rate(counts: CallCounts) -> tuple[str, str]:
    return percent(success_rate(counts)), f"{count(counts.successes)} of {count(calls(counts))}"


def _part(part: int, whole: int) -> str:
    return f"{count(part)} ({percent(part / whole)})"


def _points_apart(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} percentage points"
