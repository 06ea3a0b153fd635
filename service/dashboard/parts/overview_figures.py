"""The figures of Overview: totals, trend, reflection and answers."""

from aftercall.models import ReflectionStatistics, Totals, Trend
from service.dashboard.changed import calls_of, success_rate
from service.dashboard.charts import BarChart, LineChart
from service.dashboard.look import WINDOWS, Look
from service.dashboard.shown import numbers
from service.dashboard.shown.overview import (
    WINDOW_WORDS,
    repair_words,
    retry_words,
    times_of,
    total_words,
)
from service.dashboard.widgets import Facts, Stat, box, grid, link, section


class TotalsFigures:
    """Calls, successes and failures of the three windows."""

    def __init__(self) -> None:
        self._stats: dict[str, tuple[Stat, Stat, Stat]] = {}
        with grid("three"):
            for window in WINDOWS:
                with section(f"Last {WINDOW_WORDS[window]}"), box("div", "stats three"):
                    self._stats[window] = (Stat("Calls"), Stat("Succeeded"), Stat("Failures"))

    def show(self, totals: Totals) -> None:
        """Show these."""
        for each in totals.windows:
            stats = self._stats[each.window]
            for stat, (value, note) in zip(stats, total_words(each), strict=True):
                stat.set(value, note)


class TrendFigures:
    """Success rate and calls over time."""

    def __init__(self, look: Look) -> None:
        with section(f"Success rate, {WINDOW_WORDS[look.window]}"):
            self._rate = LineChart("Success rate over time", "%", height="200px")
            self._calls = BarChart("Calls over time", height="150px", stacked=True)

    def show(self, trend: Trend) -> None:
        """Show these."""
        x = times_of(trend.step, [each.at for each in trend.points])
        rates = [success_rate(each) for each in trend.points]
        self._rate.set(x, {"Succeeded": [None if r is None else 100 * r for r in rates]})
        self._calls.set(
            x,
            {
                "Successes": [each.successes for each in trend.points],
                "Failures": [each.failures for each in trend.points],
            },
        )


class ReflectionFigures:
    """First attempts beside tasks, and what came of suggestions."""

    def __init__(self, look: Look) -> None:
        with section(
            f"Before and after reflection, {WINDOW_WORDS[look.window]}",
            note="A task is a first attempt with the retries that followed it. What succeeded only "
            "when it was tried again counts as a success after reflection.",
        ):
            with box("div", "stats"):
                self._before = Stat("First attempts that succeeded")
                self._after = Stat("Tasks that succeeded")
                self._suggested = Stat("Calls that followed a suggestion")
            self._facts = Facts()

    def show(self, reflection: ReflectionStatistics) -> None:
        """Show these."""
        for stat, counts in (
            (self._before, reflection.first_attempts),
            (self._after, reflection.tasks),
            (self._suggested, reflection.suggested),
        ):
            rate = success_rate(counts)
            stat.set(
                "-" if rate is None else numbers.percent(rate),
                f"of {numbers.count(calls_of(counts))}",
            )
        self._facts.set(
            [
                ("Retries", retry_words(reflection)),
                ("Repaired with a suggestion", repair_words(reflection.with_suggestion)),
                ("Repaired without one", repair_words(reflection.without_suggestion)),
            ]
        )


class AnswersFigures:
    """What was asked and answered."""

    def __init__(self, look: Look) -> None:
        with section(f"Suggestions, {WINDOW_WORDS[look.window]}"):
            with box("div", "stats"):
                self._asked = Stat("Asked")
                self._abstained = Stat("Without a suggestion")
                self._confident = Stat("Confident, above 80 %")
            self._facts = Facts()
            link("All about suggestions", look.link("/suggestions"))

    def show(self, reflection: ReflectionStatistics) -> None:
        """Show these."""
        answers = reflection.answers
        self._asked.set(numbers.count(answers.asked))
        for stat, some in (
            (self._abstained, answers.abstained),
            (self._confident, answers.confident),
        ):
            share = numbers.percent(some / answers.asked) if answers.asked else ""
            stat.set(numbers.count(some), share)
        if answers.asked == 0:
            self._facts.set([("Nobody asked yet", "POST /suggest with a call that failed")])
            return
        self._facts.set(
            [
                (each.action.replace("_", " ").capitalize(), numbers.count(each.answers))
                for each in answers.by_action
            ]
        )
