"""One failure pattern: its calls, its repairs side by side, and its page. All of it is text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final

from aftercall.json_patch import Operation, diff
from aftercall.json_values import JsonObject, canonical_json
from aftercall.models import Execution, FailurePattern, PatternHistory
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.answer import lesson_of
from retrieval.confidence import lower_bound
from retrieval.edits import Edit, edit_key, edits_of_key
from retrieval.knowledge.documents import document_id
from retrieval.knowledge.rules import RepairRule
from retrieval.known_tools.common import ToolRecord, may_be_told
from retrieval.log import executions, repairs
from retrieval.memory import MendedFailure
from retrieval.patterns import ConsolidatedPattern, mark_of
from retrieval.proposals.experience import rule_trials
from service import statistics
from service.context import Context
from service.dashboard.charts import bar_chart
from service.dashboard.html import (
    Column,
    Html,
    Row,
    badge,
    box,
    code,
    details,
    empty,
    facts,
    lines,
    link,
    markup,
    note,
    p,
    section,
    stat,
    stats,
    tag,
)
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.profile import record_of
from service.dashboard.words import (
    MAX_NAME,
    MAX_SENTENCE,
    MAX_SIGNATURE,
    as_json,
    axis,
    count,
    duration,
    moment,
    one_line,
    percent,
    tool_name,
    visible,
)
from service.patterns import UnknownPatternError, stored_patterns

SAME_CALL: Final = "Nothing was changed: the same call worked when it was made again."
_MAX_LOOKED: Final = 500
"""Latest repairs of a tool among which those of a pattern are looked for."""
_MAX_PARAMETERS: Final = 4_000
_MAX_CHANGES: Final = 20
_MAX_VALUE: Final = 120
_MAX_LESSON: Final = 500


@dataclass(frozen=True, slots=True)
class ShownRepair:
    """A failed call and the success that mended it; secrets are masked as of today."""

    failed: Execution
    mended: Execution
    lesson: str
    """What was learned from it, in words; empty where nothing was."""

    @property
    def changes(self) -> list[str]:
        """What was changed, as JSON Patch operations (RFC 6902), a line each.

        `replace /topK: 50 -> 10`, `add /page: 1`, `remove /tz (was "CET")`. Empty: nothing was.
        """
        operations = self._patch()
        left = len(operations) - _MAX_CHANGES
        shown = [_operation_line(each) for each in operations[:_MAX_CHANGES]]
        return [*shown, f"and {left} more"] if left > 0 else shown

    @property
    def patch(self) -> str:
        """The same as a JSON Patch document, for a tool that applies one."""
        return as_json([_operation(each) for each in self._patch()], _MAX_PARAMETERS)

    def _patch(self) -> Sequence[Operation]:
        return diff(self.failed.parameters, self.mended.parameters)


@dataclass(frozen=True, slots=True)
class PatternEvidence:
    """What is still stored of a pattern's latest failures, and of the calls that mended them.

    Both latest first; those that have expired or were removed are counted.
    """

    repairs: list[ShownRepair]
    examples: list[Execution]
    repairs_gone: int = 0
    examples_gone: int = 0

    @property
    def glimpse(self) -> str:
        """Its gist in one line: what a repair changed, else what the tool said."""
        if self.repairs:
            return one_line("; ".join(self.repairs[0].changes) or SAME_CALL, 200)
        return one_line(_error_of(self.examples[0]) or "", 200) if self.examples else ""


async def evidence_of(
    context: Context, workspace: str, patterns: Sequence[FailurePattern], most: int
) -> dict[str, PatternEvidence]:
    """What shows patterns, by id: a few questions to the store, however many there are.

    Of each at most `most` repairs and examples.
    """
    of_tools: dict[ToolKey, Sequence[MendedFailure]] = {}
    mending: dict[str, list[MendedFailure]] = {}
    for each in await stored_patterns(context, workspace, [one.pattern_id for one in patterns]):
        tool = ToolKey(workspace, each.server_name, each.tool_name)
        if tool not in of_tools:
            of_tools[tool] = await repairs(context.store, tool, _MAX_LOOKED)
        belongs = belonging_to(workspace, each)
        own = [row for row in of_tools[tool] if belongs(row.signature)]
        mending[each.pattern_id] = own[:most]
    ids = {each for pattern in patterns for each in pattern.examples}
    for row in (row for rows in mending.values() for row in rows):
        ids |= {row.failed_id, row.mended_id}
    found = await executions(context.store.events, workspace, sorted(ids)) if ids else []
    calls = {each.execution.execution_id: context.redactor.call(each.execution) for each in found}
    shown = {}
    for pattern in patterns:
        rows = mending.get(pattern.pattern_id, [])
        mended = read_repairs(rows, calls, context.redactor)
        failed = [calls[each] for each in pattern.examples if each in calls]
        shown[pattern.pattern_id] = PatternEvidence(
            sorted(mended, key=lambda each: each.mended.timestamp, reverse=True),
            sorted(failed, key=lambda each: each.timestamp, reverse=True)[:most],
            len(rows) - len(mended),
            len(pattern.examples) - len(failed),
        )
    return shown


def belonging_to(workspace: str, pattern: ConsolidatedPattern) -> Callable[[str], bool]:
    """Whether failures of a signature, of the pattern's tool, belong to the pattern."""
    marks = pattern.marks()

    @cache
    def belongs(signature: str) -> bool:
        of = document_id(workspace, "reflection", pattern.server_name, pattern.tool_name, signature)
        return mark_of(of) in marks

    return belongs


def read_repairs(
    rows: Iterable[MendedFailure], calls: dict[str, Execution], redactor: Redactor
) -> list[ShownRepair]:
    """The repairs of which both calls are still stored, in their order."""
    return [
        ShownRepair(calls[row.failed_id], calls[row.mended_id], _lesson_of_row(row, redactor))
        for row in rows
        if row.failed_id in calls and row.mended_id in calls
    ]


def lesson_in_words(edits: Sequence[Edit], redactor: Redactor) -> str:
    """What edits teach; values under a name that became secret since are masked."""
    lesson = lesson_of([_without_secrets(each, redactor) for each in edits])
    return visible(redactor.text(lesson), _MAX_LESSON)


def call_html(look: Look, title: str, call: Execution, level: int) -> Html:
    """One call: who made it and when, what was sent, what the tool said, what it was for.

    `level` is that of the heading; it comes after one of the level before.
    """

    def part(name: str, content: Html) -> list[Html]:
        return [tag(f"h{level + 1}", name, class_="call-part"), content]

    sent = "Nobody saw its parameters."
    if call.parameters_known:
        sent = as_json(call.parameters, _MAX_PARAMETERS)
    error = _error_of(call)
    return box(
        "call",
        tag(f"h{level}", title, class_="call-title"),
        tag(
            "p",
            f"{moment(call.timestamp)} UTC by ",
            link(one_line(call.agent), look.agent(call.agent)),
            _more(call),
            class_="note",
        ),
        part("Context", p(visible(call.context, MAX_SENTENCE), class_="said"))
        if call.context
        else None,
        part("Parameters", code(sent)),
        None if error is None else part("Error", code(error)),
    )


def repair_html(look: Look, repair: ShownRepair, level: int) -> Html:
    """The failed call and the one that mended it, and between them what changed.

    `level` is that of the headings of the three; they come after one of the level before.
    """
    waited = max(timedelta(), repair.mended.timestamp - repair.failed.timestamp)
    return box(
        "pair",
        call_html(look, "Failed", repair.failed, level),
        box(
            "call",
            tag(f"h{level}", "Mended by", class_="call-title"),
            lines(repair.changes, class_="changes") if repair.changes else p(SAME_CALL),
            p(repair.lesson, class_="lesson") if repair.lesson else None,
            p(f"{duration(waited.total_seconds() * 1_000)} after the failure.", class_="note"),
            details("JSON Patch", code(repair.patch)),
        ),
        call_html(look, "Worked", repair.mended, level),
    )


def agents_html(look: Look, agents: Sequence[str], most: int = 6) -> Html | None:
    """Links to some of the agents that a pattern happened to."""
    if not agents:
        return None
    links: list[Html] = []
    for agent in agents[:most]:
        links.append(markup([", " if links else None, link(one_line(agent), look.agent(agent))]))
    left = len(agents) - most
    return p("Happened to ", links, f" and {count(left)} more." if left > 0 else ".",
             class_="note agents")  # fmt: skip


def _error_of(call: Execution) -> str | None:
    error = call.error
    if error is None:
        return None
    code = f" ({error.code})" if error.code else ""
    return visible(f"{error.type}{code}: {error.message}", 2 * MAX_SENTENCE)


def _more(call: Execution) -> str:
    parts = [
        "",
        f"version {visible(call.tool_version, MAX_NAME)}" if call.tool_version else None,
        f"attempt {call.attempt}" if call.attempt > 1 else None,
        duration(call.duration_ms) if call.duration_ms else None,
        "after a suggestion" if call.suggestion_id is not None else None,
    ]
    return ", ".join(each for each in parts if each is not None)


def _operation_line(operation: Operation) -> str:
    path = one_line(operation.path, _MAX_VALUE)
    before, value = (
        one_line(canonical_json(each), _MAX_VALUE) for each in (operation.before, operation.value)
    )
    match operation.op:
        case "add":
            return f"add {path}: {value}"
        case "remove":
            return f"remove {path} (was {before})"
        case "replace":
            return f"replace {path}: {before} -> {value}"


def _operation(operation: Operation) -> JsonObject:
    named: JsonObject = {"op": operation.op, "path": operation.path}
    return named if operation.op == "remove" else named | {"value": operation.value}


def _lesson_of_row(row: MendedFailure, redactor: Redactor) -> str:
    try:
        edits = edits_of_key(row.edit_key)
    except ValueError:  # the calls themselves are shown all the same
        return ""
    return lesson_in_words(edits, redactor) if edits else ""


def _without_secrets(edit: Edit, redactor: Redactor) -> Edit:
    secret = next((str(step) for step in edit.path if redactor.is_secret_name(str(step))), None)
    if secret is None:
        return edit
    values = edit.model_dump(include={"before", "value", "text"})
    masked = {
        name: next(iter(redactor.parameters("", {secret: value}).values()))
        for name, value in values.items()
    }
    return edit.model_copy(update=masked)


def about(look: Look, pattern: FailurePattern, *more: Html) -> Html:
    """The tool and the category of a pattern."""
    tool = link(tool_name(pattern.tool), look.tool(pattern.tool), "tool")
    return p(tool, badge(pattern.category), *more, class_="about")


def help_of(pattern: FailurePattern) -> str:
    """What helps against it, or that nothing is known."""
    if not pattern.lesson:
        return "Nothing is known yet that helps against it."
    return visible(pattern.lesson, MAX_SENTENCE)


def mended_share(pattern: FailurePattern) -> float | None:
    """The share of a pattern's failures, of all times, that agents mended; None without any."""
    return min(1.0, pattern.mended / pattern.count) if pattern.count else None


# The page

_MAX_SHOWN: Final = 5
"""Repairs, and examples."""
_SAME_CALL: Final = "Make the same call again, later."
_MAX_RULES: Final = 20


async def pattern(look: Look) -> Shown:
    """The page."""
    pattern_id = look.named["pattern_id"]
    try:
        history = await statistics.pattern(*look.space, pattern_id, look.window)
    except UnknownPatternError as error:
        raise NothingHereError(
            f"There is no failure pattern {one_line(pattern_id, 80)!r}.",
            "The page Failures lists those that were met. One whose failures were all removed is "
            "gone with them.",
        ) from error
    found = history.pattern
    evidence, rules = await look.rarely(
        f"evidence of {pattern_id}", lambda: _evidence(*look.space, found)
    )
    content = [
        about(look, found, link("All failures", look.link("/failures"))),
        _how_often(history),
        section("What helps", p(help_of(found), class_="lesson"),
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
    for known in await stored_patterns(context, workspace, [pattern.pattern_id]):
        tool = ToolKey(workspace, known.server_name, known.tool_name)
        belongs = belonging_to(workspace, known)
        rules = rules_of(await record_of(context, tool), belongs, context.redactor)
    return evidence[pattern.pattern_id], rules


def rules_of(record: ToolRecord, belongs: Callable[[str], bool], redactor: Redactor) -> list[Row]:
    """The rules of a pattern's signatures, the surest first; the same edits are one rule.

    How sure it is goes by the surest wording; `worked` and `failed` are suggestions of it that were
    reported so.
    """
    same: dict[str, list[RepairRule]] = {}
    for kind in record.knowledge.signatures.values() if record.knowledge else ():
        for rule, _ in kind.told_rules() if belongs(kind.signature) else ():
            same.setdefault(edit_key(rule.edits), []).append(rule)
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
