"""The page of one failure pattern: its history, its repairs, and what they rest on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aftercall.models import Execution, FailurePattern, PatternHistory
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.confidence import lower_bound
from retrieval.knowledge.rules import RepairRule
from retrieval.known_tools.common import ToolRecord, may_be_told
from retrieval.log import repairs as tool_repairs
from retrieval.proposals.experience import rule_trials
from service.context import Context
from service.dashboard.calls import (
    MAX_LOOKED,
    ShownRepair,
    agents_html,
    belonging_to,
    call_html,
    executions_of,
    ids_of,
    lesson_in_words,
    read_repairs,
    repair_html,
    repairs_of,
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
    markup,
    note,
    p,
    section,
    stat,
    stats,
)
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.profile import record_of
from service.dashboard.table import Column
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

MAX_REPAIRS: Final = 5

MAX_EXAMPLES: Final = 5

_MAX_RULES: Final = 20


@dataclass(frozen=True, slots=True)
class PatternEvidence:
    """What a pattern's page shows beside what the statistics say; all of it the latest first."""

    examples: list[Execution]
    examples_gone: int
    """Examples whose executions have expired or were removed."""
    repairs: list[ShownRepair]
    repairs_gone: int
    """Repairs among the latest ones whose executions are gone."""
    rules: "list[ShownRule]"
    """The surest first."""


@dataclass(frozen=True, slots=True)
class ShownRule:
    """One way to mend failures of a pattern."""

    lesson: str
    repairs: int
    """Failures that agents mended so by themselves."""
    worked: int
    """Suggestions of it that were reported to have worked."""
    failed: int
    """Suggestions of it that were reported to have failed."""
    agents: int
    """Agents that mended so, as far as they are remembered."""
    sure: float
    """The lower bound of how surely it mends, in [0, 1]; higher is surer."""
    is_told: bool
    """Whether it is common knowledge, so that `/known-tools` may give it to everybody."""
    last_seen: datetime | None


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
    evidence = await look.rarely(
        f"evidence of {pattern_id}", lambda: evidence_of(look.context, look.workspace, found)
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
        _rules(look, evidence),
        _repairs(look, evidence),
        _examples(look, evidence),
    ]  # fmt: skip
    title = one_line(found.signature, MAX_SIGNATURE)
    return Shown(title, markup(content), history.until, is_complete=history.is_complete)


async def evidence_of(context: Context, workspace: str, pattern: FailurePattern) -> PatternEvidence:
    """What shows one pattern.

    Raises:
        StoreError: when the store cannot say.
    """
    mending, rules = [], []
    for known in await context.patterns.get(workspace, [pattern.pattern_id]):
        tool = ToolKey(workspace, known.server_name, known.tool_name)
        belongs = belonging_to(workspace, known)
        mending = repairs_of(await tool_repairs(context.store, tool, MAX_LOOKED), belongs)
        rules = rules_of(await record_of(context, tool), belongs, context.redactor)
    latest = mending[:MAX_REPAIRS]
    calls = await executions_of(context, workspace, [*pattern.examples, *ids_of(latest)])
    examples = [calls[each] for each in pattern.examples if each in calls]
    repairs = read_repairs(latest, calls, context.redactor)
    return PatternEvidence(
        sorted(examples, key=lambda each: each.timestamp, reverse=True)[:MAX_EXAMPLES],
        len(pattern.examples) - len(examples),
        sorted(repairs, key=lambda each: each.mended.timestamp, reverse=True),
        len(latest) - len(repairs),
        rules,
    )


def rules_of(
    record: ToolRecord, belongs: Callable[[str], bool], redactor: Redactor
) -> list[ShownRule]:
    """The rules of a pattern's signatures, the surest first; the same edits are one rule.

    Args:
        record: what is known of the pattern's tool.
        belongs: whether a signature belongs to the pattern.
        redactor: masks secrets.
    """
    if record.knowledge is None:
        return []
    merged: dict[str, ShownRule] = {}
    for kind in record.knowledge.signatures.values():
        for key, rule in kind.rules.items() if belongs(kind.signature) else ():
            shown = _shown_rule(rule, record, redactor)
            merged[key] = _both(merged[key], shown) if key in merged else shown
    surest = sorted(merged.values(), key=lambda each: (-each.sure, -each.repairs, each.lesson))
    return surest[:_MAX_RULES]


def _shown_rule(rule: RepairRule, record: ToolRecord, redactor: Redactor) -> ShownRule:
    same_call = "Make the same call again, later."
    return ShownRule(
        lesson=lesson_in_words(rule.edits, redactor) if rule.edits else same_call,
        repairs=rule.repairs,
        worked=rule.successes,
        failed=rule.failures,
        agents=rule.agents(),
        sure=lower_bound(rule_trials(rule)),
        is_told=may_be_told(rule, record),
        last_seen=rule.last_seen,
    )


def _both(one: ShownRule, other: ShownRule) -> ShownRule:
    """The same edits, learned under two wordings; how sure it is goes by the surer one."""
    seen = [each for each in (one.last_seen, other.last_seen) if each is not None]
    return ShownRule(
        lesson=one.lesson,
        repairs=one.repairs + other.repairs,
        worked=one.worked + other.worked,
        failed=one.failed + other.failed,
        agents=max(one.agents, other.agents),
        sure=max(one.sure, other.sure),
        is_told=one.is_told or other.is_told,
        last_seen=max(seen, default=None),
    )


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


def _rules(look: Look, evidence: PatternEvidence) -> Html:
    shown = empty(
        "No repair of it was learned yet.",
        "A call that fails and then succeeds with changed parameters, in the same session, is one.",
    )
    if evidence.rules:
        shown = look.table(
            "Repair rules",
            [
                Column("lesson", "Repair"),
                Column("repairs", "Repairs", "number", "By agents themselves."),
                Column("agents", "Agents", "number"),
                Column("worked", "Suggested and worked", "number"),
                Column("failed", "Suggested and failed", "number"),
                Column("sure", "Sure", "percent"),
                Column("told", "Told to agents", of=lambda each: "yes" if each.is_told else "no"),
                Column("last_seen", "Last seen", "time"),
            ],
            evidence.rules,
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
