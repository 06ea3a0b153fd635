"""The page of one failure pattern: its history, its repairs, and what they rest on."""

from nicegui.elements.mixins.text_element import TextElement

from aftercall.models import FailurePattern, PatternHistory
from service.dashboard.charts import BarChart
from service.dashboard.look import Look
from service.dashboard.page import NothingHereError, Page
from service.dashboard.parts.calls import show_call, show_repair
from service.dashboard.parts.pattern_cards import lesson_of, show_agents
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.repair_reads import PatternEvidence, evidence_of
from service.dashboard.shown.call_text import one_line, visible
from service.dashboard.shown.failure_rows import MAX_SIGNATURE, mended_share, name_of
from service.dashboard.shown.numbers import count, moment, percent
from service.dashboard.shown.repair_rules import ShownRule
from service.dashboard.shown.times import axis
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import (
    Stat,
    badge,
    box,
    code,
    empty,
    facts,
    link,
    section,
    set_text,
    text,
)
from service.statistics.patterns import UnknownPatternError

_MAX_WORDING = 2_000


async def build(look: Look) -> None:
    """Fill the page.

    Raises:
        NothingHereError: there is no pattern of that id.
    """
    pattern_id = look.params["pattern_id"]
    reports = look.services.statistics

    async def read() -> PatternHistory:
        return await look.shared(
            f"pattern {pattern_id}",
            lambda: reports.pattern(look.workspace, pattern_id, look.window),
        )

    try:
        history = await read()
    except UnknownPatternError as error:
        raise NothingHereError(
            f"There is no failure pattern {one_line(pattern_id, 80)!r}.",
            "The page Failures lists those that were met. One whose failures were all removed is "
            "gone with them.",
        ) from error
    pattern = history.pattern
    evidence = await evidence_of(look.services, look.workspace, pattern)
    look.title(one_line(pattern.signature, MAX_SIGNATURE))
    with box("p", "about"):
        link(name_of(pattern.tool), tool_href(look, pattern.tool), "tool")
        badge(pattern.category)
        link("All failures", look.link("/failures"))
    with section("How often"), box("div", "stats"):
        in_window, ever, mended, latest = (
            Stat("Failures in the window"), Stat("Failures ever"), Stat("Mended"),
            Stat("Last seen"),
        )  # fmt: skip
    with section("What helps"):
        lesson = text("", "p", "lesson")
        show_agents(look, pattern.agents)
    with section("History", note="Failures in this window."):
        chart = BarChart("Failures of this pattern")
    with section(
        "Wordings", note="As the tool said it, variable parts masked. Most frequent first."
    ):
        for wording in pattern.wordings or [pattern.signature]:
            code(visible(wording, _MAX_WORDING))
    _rules(evidence)
    _repairs(look, evidence)
    _examples(look, evidence)

    async def update() -> None:
        found = await read()
        in_window.set(count(sum(each.failures for each in found.points)))
        _tell(found.pattern, ever, mended, latest, lesson)
        chart.set(
            axis([each.at for each in found.points], found.window),
            {"Failures": [float(each.failures) for each in found.points]},
        )
        look.as_of(found.until, is_complete=found.is_complete)

    await update()
    look.live(update)


def _tell(
    pattern: FailurePattern, ever: Stat, mended: Stat, latest: Stat, lesson: TextElement
) -> None:
    share = mended_share(pattern)
    ever.set(count(pattern.count), "up to the latest nightly run")
    mended.set("-" if share is None else percent(share), f"{count(pattern.mended)} by agents")
    first = "" if pattern.first_seen is None else f"first {moment(pattern.first_seen)} UTC"
    latest.set("-" if pattern.last_seen is None else f"{moment(pattern.last_seen)} UTC", first)
    set_text(lesson, lesson_of(pattern))


def _rules(evidence: PatternEvidence) -> None:
    with section(
        "What the memory makes of its repairs",
        note="How sure each is: the lower bound of the probability that it mends such a failure. "
        "What one session alone shows is told to nobody else.",
    ):
        if not evidence.rules:
            empty(
                "No repair of it was learned yet.",
                "A call that fails and then succeeds with changed parameters, in the same session, "
                "is one.",
            )
            return
        DataTable(
            "Repair rules",
            [
                Column("lesson", "Repair"),
                Column("repairs", "Repairs", "number", note="By agents themselves."),
                Column("agents", "Agents", "number"),
                Column("worked", "Suggested and worked", "number"),
                Column("failed", "Suggested and failed", "number"),
                Column("sure", "Sure", "percent"),
                Column("told", "Told to agents"),
                Column("last_seen", "Last seen", "time"),
            ],
            "key",
        ).set([_rule(place, each) for place, each in enumerate(evidence.rules)])


def _rule(place: int, rule: ShownRule) -> dict[str, object]:
    return {
        "key": str(place),
        "lesson": rule.lesson,
        "repairs": rule.repairs,
        "agents": rule.agents,
        "worked": rule.worked,
        "failed": rule.failed,
        "sure": rule.sure,
        "told": "yes" if rule.is_told else "no",
        "last_seen": rule.last_seen,
    }


def _repairs(look: Look, evidence: PatternEvidence) -> None:
    with section("Latest repairs", note="What failed, what changed, and what worked."):
        if evidence.repairs_gone:
            text(f"{count(evidence.repairs_gone)} more whose executions have expired.", "p", "note")
        if not evidence.repairs:
            text("No repair whose calls are still stored.")
        for place, repair in enumerate(evidence.repairs):
            if not place:
                show_repair(look, repair, level=3)
                continue
            with box("details"):
                text(f"{moment(repair.mended.at)} UTC, {repair.mended.agent}", "summary")
                show_repair(look, repair, level=3)


def _examples(look: Look, evidence: PatternEvidence) -> None:
    with section("Latest examples", note="As they are stored, secrets masked."):
        if evidence.gone:
            text(f"{count(evidence.gone)} more whose executions have expired.", "p", "note")
        if not evidence.examples:
            text("No example is still stored.")
        for call in evidence.examples:
            with box("details", "example"):
                text(f"{moment(call.at)} UTC, {call.agent}", "summary")
                show_call(look, "Failed", call, level=3)
                facts([("Execution", call.execution_id)])


PAGE = Page(path="/patterns/{pattern_id}", title="Failure pattern", build=build)
