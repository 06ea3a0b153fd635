"""The page of one failure pattern: its history, its repairs, and what they rest on."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from aftercall.models import FailurePattern, PatternHistory
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.confidence import lower_bound
from retrieval.knowledge.rules import RepairRule
from retrieval.known_tools.common import ToolRecord, may_be_told
from retrieval.proposals.experience import rule_trials
from service.context import Context
from service.dashboard.calls import (
    PatternEvidence,
    agents_html,
    belonging_to,
    call_html,
    evidence_of,
    lesson_in_words,
    repair_html,
)
from service.dashboard.charts import bar_chart
from service.dashboard.failures import about, lesson_of, mended_share
from service.dashboard.html import (
    Html,
    code,
    details,
    empty,
    facts,
    link,
    note,
    p,
    section,
    stat,
    stats,
)
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.profile import record_of
from service.dashboard.table import Column, Row
from service.dashboard.words import (
    MAX_SENTENCE,
    MAX_SIGNATURE,
    axis,
    count,
    moment,
    one_line,
    percent,
    visible,
)
from service.patterns import UnknownPatternError

_MAX_SHOWN: Final = 5
"""Repairs, and examples."""
_SAME_CALL: Final = "Make the same call again, later."
_MAX_RULES: Final = 20


async def pattern(look: Look) -> Shown:
    """The page.

    Raises:
        NothingHereError: there is no pattern of that id.
    """
    pattern_id = look.named["pattern_id"]
    try:
        history = await look.context.statistics.pattern(look.workspace, pattern_id, look.window)
    except UnknownPatternError as error:
        raise NothingHereError(
            f"There is no failure pattern {one_line(pattern_id, 80)!r}.",
            "The page Failures lists those that were met. One whose failures were all removed is "
            "gone with them.",
        ) from error
    found = history.pattern
    evidence, rules = await look.rarely(
        f"evidence of {pattern_id}", lambda: _evidence(look.context, look.workspace, found)
    )
    content = [
        about(look, found, link("All failures", look.link("/failures"))),
        _how_often(history),
        section("What helps", p(lesson_of(found), class_="lesson"),
                agents_html(look, found.agents)),
        section(
            "History",
            bar_chart(
                "Failures of this pattern",
                axis([each.at for each in history.points], history.window),
                {"Failures": [float(each.failures) for each in history.points]},
            ),
            remark="Failures in this window.",
        ),
        section(
            "Wordings",
            [code(visible(each, 2 * MAX_SENTENCE)) for each in found.wordings or [found.signature]],
            remark="As the tool said it, variable parts masked. Most frequent first.",
        ),
        _rules(look, rules),
        _repairs(look, evidence),
        _examples(look, evidence),
    ]  # fmt: skip
    title = one_line(found.signature, MAX_SIGNATURE)
    return Shown(title, content, history.until, is_complete=history.is_complete)


async def _evidence(
    context: Context, workspace: str, pattern: FailurePattern
) -> tuple[PatternEvidence, list[Row]]:
    evidence = await evidence_of(context, workspace, [pattern], _MAX_SHOWN)
    rules: list[Row] = []
    for known in await context.patterns.get(workspace, [pattern.pattern_id]):
        tool = ToolKey(workspace, known.server_name, known.tool_name)
        belongs = belonging_to(workspace, known)
        rules = rules_of(await record_of(context, tool), belongs, context.redactor)
    return evidence[pattern.pattern_id], rules


def rules_of(record: ToolRecord, belongs: Callable[[str], bool], redactor: Redactor) -> list[Row]:
    """The rules of a pattern's signatures, the surest first; the same edits are one rule.

    How sure it is goes by the surest wording; `worked` and `failed` are suggestions of it that were
    reported so.

    Args:
        record: what is known of the pattern's tool.
        belongs: whether a signature belongs to the pattern.
        redactor: masks secrets.
    """
    same: dict[str, list[RepairRule]] = {}
    for kind in record.knowledge.signatures.values() if record.knowledge else ():
        for key, rule in kind.rules.items() if belongs(kind.signature) else ():
            same.setdefault(key, []).append(rule)
    rows: list[dict[str, Any]] = [
        {
            "lesson": lesson_in_words(each[0].edits, redactor) if each[0].edits else _SAME_CALL,
            "repairs": sum(rule.repairs for rule in each),
            "agents": max(rule.agents() for rule in each),
            "worked": sum(rule.successes for rule in each),
            "failed": sum(rule.failures for rule in each),
            "sure": max(lower_bound(rule_trials(rule)) for rule in each),
            "told": "yes" if any(may_be_told(rule, record) for rule in each) else "no",
            "last_seen": max((rule.last_seen for rule in each if rule.last_seen), default=None),
        }
        for each in same.values()
    ]
    rows.sort(key=lambda row: (-row["sure"], -row["repairs"], row["lesson"]))
    return list(rows[:_MAX_RULES])


def _how_often(history: PatternHistory) -> Html:
    pattern = history.pattern
    first = "" if pattern.first_seen is None else f"first {moment(pattern.first_seen)} UTC"
    return section(
        "How often",
        stats(
            stat("Failures in the window", count(sum(each.failures for each in history.points))),
            stat("Failures ever", count(pattern.count), "up to the latest nightly run"),
            stat("Mended", percent(mended_share(pattern)), f"{count(pattern.mended)} by agents"),
            stat("Last seen", moment(pattern.last_seen), first),
        ),
    )


def _rules(look: Look, rules: Sequence[Row]) -> Html:
    shown = empty(
        "No repair of it was learned yet.",
        "A call that fails and then succeeds with changed parameters, in the same session, is one.",
    )
    if rules:
        shown = look.table(
            "Repair rules",
            [
                Column("lesson", "Repair"),
                Column("repairs", "Repairs", "number", "By agents themselves."),
                Column("agents", "Agents", "number"),
                Column("worked", "Suggested and worked", "number"),
                Column("failed", "Suggested and failed", "number"),
                Column("sure", "Sure", "percent"),
                Column("told", "Told to agents"),
                Column("last_seen", "Last seen", "time"),
            ],
            rules,
        )
    return section(
        "What the memory makes of its repairs",
        shown,
        remark="How sure each is: the lower bound of the probability that it mends such a failure. "
        "What one session alone shows is told to nobody else.",
    )


def _repairs(look: Look, evidence: PatternEvidence) -> Html:
    shown = [repair_html(look, each, 3) for each in evidence.repairs]
    others = [
        details(f"{moment(each.mended.timestamp)} UTC, {one_line(each.mended.agent)}", html)
        for each, html in zip(evidence.repairs[1:], shown[1:], strict=True)
    ]
    return section(
        "Latest repairs",
        _gone(evidence.repairs_gone),
        shown[:1] or p("No repair whose calls are still stored."),
        others,
        remark="What failed, what changed, and what worked.",
    )


def _examples(look: Look, evidence: PatternEvidence) -> Html:
    shown = [
        details(
            f"{moment(each.timestamp)} UTC, {one_line(each.agent)}",
            call_html(look, "Failed", each, 3),
            facts(("Execution", each.execution_id)),
            class_="example",
        )
        for each in evidence.examples
    ]
    return section(
        "Latest examples",
        _gone(evidence.examples_gone),
        shown or p("No example is still stored."),
        remark="As they are stored, secrets masked.",
    )


def _gone(number: int) -> Html | None:
    return note(f"{count(number)} more whose executions have expired.") if number else None
