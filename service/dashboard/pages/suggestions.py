"""*Suggestions*: what was answered, what came of it, and how far a confidence can be trusted."""

from aftercall.models import CalibrationStatus, ConfidenceStatistics, ReflectionStatistics
from service.dashboard.charts import ScatterChart
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.shown.agents import calls
from service.dashboard.shown.numbers import count
from service.dashboard.shown.trust import (
    NOT_RIGHT,
    answer_pairs,
    bin_rows,
    calibration_of,
    calibration_words,
    effect_words,
    own_rows,
    points,
    rate_words,
    repair_words,
    trust_words,
)
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import (
    Stat,
    box,
    empty,
    facts,
    grid,
    heading,
    section,
    set_text,
    set_visible,
    text,
)


class _Effect:
    """Before and after reflection, and how long repairs took."""

    def __init__(self) -> None:
        with section(
            "Before and after reflection",
            note="A task is a first attempt with the retries that followed it.",
        ):
            self._words = text("")
            with box("div", "stats"):
                self._before = Stat("First attempts that succeeded")
                self._after = Stat("Tasks that succeeded")
                self._retries = Stat("Retries that succeeded")
                self._suggested = Stat("Calls after a suggestion that succeeded")
        with (
            section(
                "Time to repair",
                note="From a failure to the success that mended it, by the callers' own clocks.",
            ),
            box("div", "stats"),
        ):
            self._with = Stat("With a suggestion")
            self._without = Stat("Without one")

    def set(self, found: ReflectionStatistics) -> None:
        set_text(self._words, effect_words(found))
        self._before.set(*rate_words(found.first_attempts))
        self._after.set(*rate_words(found.tasks))
        self._retries.set(*rate_words(found.retries))
        self._suggested.set(*rate_words(found.suggested))
        self._with.set(*repair_words(found.with_suggestion))
        self._without.set(*repair_words(found.without_suggestion))


class _Answers:
    """What was answered in the window."""

    def __init__(self) -> None:
        with section("Answers", note="By the day on which they were asked for."):
            self._none = empty(
                "Nothing was asked in this window.",
                "A gateway asks POST /suggest when a call fails; to see an answer now, open the "
                "page Try it.",
            )
            with box() as self._any:
                self._facts = facts()
                with grid():
                    with box():
                        heading("By action", level=3)
                        self._actions = DataTable(
                            "Answers by action",
                            [
                                Column("action", "Best suggestion"),
                                Column("answers", "Answers", "number"),
                            ],
                            "action",
                            plain=True,
                            missing="No answer had a suggestion.",
                        )
                    with box():
                        heading("Without a suggestion", level=3)
                        self._abstentions = DataTable(
                            "Abstentions by kind of error",
                            [
                                Column("category", "Kind of error"),
                                Column("answers", "Answers", "number"),
                            ],
                            "category",
                            plain=True,
                            missing="Every answer had a suggestion.",
                        )

    def set(self, found: ReflectionStatistics) -> None:
        answers = found.answers
        set_visible(self._none, not answers.asked)
        set_visible(self._any, bool(answers.asked))
        self._facts.set(answer_pairs(answers))
        self._actions.set(
            [{"action": each.action, "answers": each.answers} for each in answers.by_action]
        )
        self._abstentions.set(
            [{"category": each.category, "answers": each.answers} for each in answers.abstentions]
        )


class _Trust:
    """What was promised and what came of it."""

    def __init__(self) -> None:
        with section(
            "Calibration",
            note="Of the latest 2,000 outcomes of suggestions, whatever the window. A confidence "
            "is the probability that the suggestion is right; points on the diagonal kept what "
            "they promised.",
        ):
            self._none = empty(
                "No outcome of a suggestion is known yet.",
                "Record the call that followed a suggestion with its suggestionId, or send "
                "POST /suggestions/{suggestionId}/outcome.",
            )
            with box() as self._any:
                self._words = text("")
                text(NOT_RIGHT)
                with box("div", "stats"):
                    self._error = Stat("Expected calibration error")
                    self._brier = Stat("Brier score")
                    self._judged = Stat("Outcomes")
                with grid() as both:
                    both.style("margin-top: 1rem")
                    with box():
                        self._chart = ScatterChart(
                            "Promised and kept, by tenths of confidence",
                            "mean confidence",
                            "share that succeeded",
                            height="24rem",
                        )
                    with box():
                        self._bins = DataTable(
                            "Calibration by tenths",
                            [
                                Column("bin", "Confidence"),
                                Column("judged", "Outcomes", "number"),
                                Column("promised", "Mean", "percent", note="mean confidence"),
                                Column("succeeded", "Succeeded", "percent"),
                                Column(
                                    "gap",
                                    "Difference",
                                    "percent",
                                    note="above 0: more succeeded than was promised",
                                ),
                            ],
                            "key",
                        )

    def set(self, found: ConfidenceStatistics) -> None:
        set_visible(self._none, not found.judged)
        set_visible(self._any, bool(found.judged))
        set_text(self._words, trust_words(found))
        self._error.set(_score(found.expected_calibration_error), "0 is best")
        self._brier.set(_score(found.brier), "mean squared error; 0 is best")
        self._judged.set(count(found.judged))
        self._chart.set(points(found.bins), diagonal=True)
        self._bins.set(bin_rows(found.bins))


class _Calibration:
    """Which calibration is in force."""

    def __init__(self) -> None:
        with section("Which calibration is in force"):
            self._words = text("")
            with box().style("max-width: 32rem") as self._own:
                self._facts = facts()
                self._table = DataTable(
                    "Own calibration beside the shipped one",
                    [
                        Column("shipped", "Shipped confidence", "percent"),
                        Column("own", "In this workspace", "percent"),
                    ],
                    "key",
                    plain=True,
                )

    def set(self, status: CalibrationStatus) -> None:
        set_text(self._words, calibration_words(status))
        set_visible(self._own, status.source == "own")
        self._facts.set(
            [
                ("Shift", f"{status.shift:+.2f} (above 0 raises every confidence)"),
                ("Slope", f"{status.slope:.2f} (below 1 draws confidences together)"),
            ]
        )
        self._table.set(own_rows(status))


async def build(look: Look) -> None:
    """Fill the page."""
    reports, memory = look.services.statistics, look.services.memory
    nothing = empty(
        "No call in this window, and no outcome of a suggestion yet.",
        "Choose a longer window, or fill the store with a history to look at.",
        "aftercall demo --history",
    )
    effect, answers, trust, calibration = _Effect(), _Answers(), _Trust(), _Calibration()

    async def update() -> None:
        reflection = await look.shared(
            "reflection", lambda: reports.reflection(look.workspace, look.window)
        )
        confidence = await look.shared("confidence", lambda: reports.confidence(look.workspace))
        known = await memory.calibration(look.workspace)
        set_visible(nothing, not calls(reflection.first_attempts) and not confidence.judged)
        effect.set(reflection)
        answers.set(reflection)
        trust.set(confidence)
        calibration.set(calibration_of(known.scaling))
        look.as_of(reflection.until, is_complete=reflection.is_complete)

    await update()
    look.live(update)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


PAGE = Page(path="/suggestions", title="Suggestions", nav="Suggestions", build=build)
