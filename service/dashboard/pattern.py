"""One failure pattern: its calls, its repairs side by side, and its page. All of it is text."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args

from aftercall.json_patch import Operation, diff
from aftercall.json_values import canonical_json
from aftercall.models import Account, Execution, FailurePattern, PatternState
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.knowledge.calls.account import Grounds
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.confidence import lower_bound
from retrieval.knowledge.memory import MendedFailure
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, mark_of
from retrieval.knowledge.rewrites.edits import Edit, edit_key, edits_of_key
from retrieval.knowledge.rewrites.sentences import lesson_of
from retrieval.knowledge.rows.documents import document_id
from retrieval.knowledge.rows.log import read_executions, read_latest_repairs
from retrieval.knowledge.rows.registry import UnknownNameError
from retrieval.knowledge.tool.record import ToolRecord, may_be_told
from retrieval.knowledge.tool.rules import RepairRule, rule_trials
from service.api.patterns import find_patterns, read_pattern_history
from service.context import Space
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.charts import bar_chart
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.profile import record_of
from service.requests import Window

_MAX_LOOKED: Final = 500
"""Latest repairs of a tool among which those of a pattern are looked for."""
_MAX_CHANGES: Final = 20
_MAX_VALUE: Final = 120


@dataclass(frozen=True, slots=True)
class ShownRepair:
    """A failed call and the success that repaired it; secrets are masked as of today."""

    failed: Execution
    mended: Execution
    lesson: str
    """The lesson in words; empty if nothing was learned."""

    @property
    def account(self) -> Account:
        """Return what became of each value, as far as the two calls show it."""
        return account_of(self.failed.parameters, self.mended.parameters, Grounds()).to_model()

    @property
    def changes(self) -> list[str]:
        """Return what was changed, as JSON Patch operations (RFC 6902), a line each.

        `replace /topK: 50 -> 10`, `add /page: 1`, `remove /tz (was "CET")`. Empty: nothing was.
        """
        operations = diff(self.failed.parameters, self.mended.parameters)
        shown = [_operation_line(each) for each in operations[:_MAX_CHANGES]]
        left = len(operations) - _MAX_CHANGES
        if left > 0:
            shown.append(f"and {left} more")
        return shown

    @property
    def waited_ms(self) -> float:
        """Milliseconds from the failure to the success, by the callers' own clocks."""
        waited = self.mended.timestamp - self.failed.timestamp
        return max(0.0, waited.total_seconds() * 1_000)


@dataclass(frozen=True, slots=True)
class PatternEvidence:
    """The stored calls of a pattern's latest failures and repairs, latest first."""

    repairs: list[ShownRepair]
    examples: list[Execution]
    repairs_gone: int = 0
    examples_gone: int = 0

    @property
    def glimpse(self) -> str:
        """Its gist in one line: what a repair changed, else what the tool stated."""
        if self.repairs:
            changes = "; ".join(self.repairs[0].changes)
            return w.format_line(changes or w.SAME_CALL, 200)
        error = self.examples[0].error if self.examples else None
        if error is None:
            return ""
        return w.format_line(w.error_words(error), 200)


async def gather_evidence(
    space: Space, patterns: Sequence[FailurePattern], most: int
) -> dict[str, PatternEvidence]:
    """Return evidence of patterns by id, at most `most` repairs and examples each."""
    context, workspace = space
    of_tools: dict[ToolKey, Sequence[MendedFailure]] = {}
    mending: dict[str, list[MendedFailure]] = {}
    for each in await find_patterns(space, [one.pattern_id for one in patterns]):
        tool = ToolKey(workspace, each.server_name, each.tool_name)
        if tool not in of_tools:
            of_tools[tool] = await read_latest_repairs(context.store, tool, _MAX_LOOKED)
        belongs = belonging_to(workspace, each)
        of_pattern = [row for row in of_tools[tool] if belongs(row.signature)]
        mending[each.pattern_id] = of_pattern[:most]
    ids: set[str] = set()
    for pattern in patterns:
        ids.update(pattern.examples)
    for rows in mending.values():
        for row in rows:
            ids |= {row.failed_id, row.mended_id}
    calls: dict[str, Execution] = {}
    if ids:
        for stored in await read_executions(context.store.events, workspace, sorted(ids)):
            call = stored.execution
            calls[call.execution_id] = context.redactor.call(call)
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
    """Return a function that decides whether failures of a signature belong to the pattern."""
    marks = pattern.member_marks()

    @cache
    def is_of_pattern(signature: str) -> bool:
        of = document_id(workspace, "reflection", pattern.server_name, pattern.tool_name, signature)
        return mark_of(of) in marks

    return is_of_pattern


def read_repairs(
    rows: Iterable[MendedFailure], calls: dict[str, Execution], redactor: Redactor
) -> list[ShownRepair]:
    """Return the repairs with both calls still stored, in their order."""
    found = []
    for row in rows:
        if row.failed_id in calls and row.mended_id in calls:
            lesson = ""
            with suppress(ValueError):  # the calls themselves are shown all the same
                lesson = lesson_in_words(edits_of_key(row.edit_key), redactor)
            found.append(ShownRepair(calls[row.failed_id], calls[row.mended_id], lesson))
    return found


def lesson_in_words(edits: Sequence[Edit], redactor: Redactor) -> str:
    """Return the lesson of edits, "" for none.

    Values under a name that became secret since are masked.
    """
    lesson = lesson_of([_without_secrets(each, redactor) for each in edits])
    return w.escape_hidden(redactor.text(lesson), 500)


def _operation_line(operation: Operation) -> str:
    path = w.format_line(operation.path, _MAX_VALUE)
    before = w.format_line(canonical_json(operation.before), _MAX_VALUE)
    value = w.format_line(canonical_json(operation.value), _MAX_VALUE)
    return {
        "add": f"add {path}: {value}",
        "remove": f"remove {path} (was {before})",
        "replace": f"replace {path}: {before} -> {value}",
    }[operation.op]


def _without_secrets(edit: Edit, redactor: Redactor) -> Edit:
    steps = map(str, edit.path)
    secret = next(filter(redactor.is_secret_name, steps), None)
    if secret is None:
        return edit
    values = edit.model_dump(include={"before", "value", "text"})
    for name, value in values.items():
        [masked] = redactor.parameters("", {secret: value}).values()
        values[name] = masked
    return edit.model_copy(update=values)


def state_words(pattern: FailurePattern) -> str:
    """Return whether it is open, ignored or resolved.

    If it came back, the words name the tool's versions.
    """
    review = pattern.review
    if review is None or not review.reopened:
        return pattern.state
    words = "came back"
    if review.version:
        words += f", resolved in {w.format_line(review.version)}"
    if review.version_now:
        words += f", the latest is {w.format_line(review.version_now)}"
    return words


def mended_share(pattern: FailurePattern) -> float | None:
    """Return the share of a pattern's failures that were repaired; None without any failure."""
    return min(1.0, pattern.mended / pattern.count) if pattern.count else None


# The page

_MAX_SHOWN: Final = 5
"""Repairs, and examples."""
_SAME_CALL: Final = "Make the same call again, later."
_RULES: Final = (
    h.Column("lesson", "Repair"),
    h.Column("repairs", "Repairs", "number", "By agents themselves."),
    h.Column("agents", "Agents", "number"),
    h.Column("worked", "Suggested and worked", "number"),
    h.Column("failed", "Suggested and failed", "number"),
    h.Column("sure", "Sure", "percent"),
    h.Column("told", "Told to agents"),
    h.Column("last_seen", "Last seen", "time"),
)


async def show_pattern(look: Look) -> Shown:
    """Return the page."""
    pattern_id = look.named["pattern_id"]
    try:
        history = await read_pattern_history(look.space, pattern_id, Window(window=look.window))
    except UnknownNameError as error:
        raise NothingHereError(
            f"There is no failure pattern {w.format_line(pattern_id, 80)!r}.",
            "The page Failures lists those that were met. One whose failures were all removed is "
            "gone with them.",
        ) from error
    found = history.pattern
    evidence, rules = await look.read_rarely(
        f"evidence of {pattern_id}", lambda: _read_evidence(look.space, found)
    )
    at = w.label_axis([each.at for each in history.points])
    failed = {"Failures": [float(each.failures) for each in history.points]}
    return look.show_page(
        w.format_line(found.title, w.MAX_SIGNATURE),
        "pattern",
        of=history,
        pattern=found,
        met=sum(each.failures for each in history.points),
        share=mended_share(found),
        state=state_words(found),
        states=get_args(PatternState),
        chart=bar_chart("Failures of this pattern", at, failed),
        rules=rules,
        rule_columns=_RULES,
        evidence=evidence,
    )


async def _read_evidence(
    space: Space, pattern: FailurePattern
) -> tuple[PatternEvidence, list[h.Row]]:
    context, workspace = space
    evidence = await gather_evidence(space, [pattern], _MAX_SHOWN)
    rules: list[h.Row] = []
    for known in await find_patterns(space, [pattern.pattern_id]):
        tool = ToolKey(workspace, known.server_name, known.tool_name)
        belongs = belonging_to(workspace, known)
        rules = rules_of(await record_of(context, tool), belongs, context.redactor)
    return evidence[pattern.pattern_id], rules


def rules_of(record: ToolRecord, belongs: Callable[[str], bool], redactor: Redactor) -> list[h.Row]:
    """Return the rules of a pattern's signatures, the surest first; the same edits are one rule."""
    if record.knowledge is None:
        return []
    same: dict[str, list[RepairRule]] = {}
    for kind in record.knowledge.signatures.values():
        if belongs(kind.signature):
            for rule, _ in kind.told_rules():
                same.setdefault(edit_key(rule.edits), []).append(rule)
    rows: list[dict[str, Any]] = []
    for rules in same.values():
        edits = rules[0].edits
        seen = [rule.last_seen for rule in rules if rule.last_seen]
        is_told = any(may_be_told(rule, record) for rule in rules)
        row = {
            "lesson": lesson_in_words(edits, redactor) if edits else _SAME_CALL,
            "repairs": sum(rule.repairs for rule in rules),
            "agents": max(len(rule.repair_agents()) for rule in rules),
            "worked": sum(rule.successes for rule in rules),
            "failed": sum(rule.failures for rule in rules),
            "sure": max(lower_bound(rule_trials(rule)) for rule in rules),
            "told": "yes" if is_told else "no",
            "last_seen": max(seen, default=None),
        }
        rows.append(row)
    rows.sort(key=lambda row: (-row["sure"], -row["repairs"], row["lesson"]))
    return list(rows[:20])
