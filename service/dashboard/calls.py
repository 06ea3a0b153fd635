"""Recorded calls, and repairs side by side: read, masked and shown. All of it is text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Final

from aftercall.json_patch import Operation, diff
from aftercall.json_values import JsonObject, canonical_json
from aftercall.models import Execution, FailurePattern
from aftercall.redaction import Redactor
from mongo.records import ToolKey
from retrieval.answer import lesson_of
from retrieval.edits import Edit, edits_of_key
from retrieval.knowledge.documents import document_id
from retrieval.log import executions, repairs
from retrieval.memory import MendedFailure
from retrieval.patterns import ConsolidatedPattern, mark_of
from service.context import Context
from service.dashboard.html import Html, box, code, details, lines, link, markup, p, tag
from service.dashboard.look import Look
from service.dashboard.words import (
    MAX_NAME,
    MAX_SENTENCE,
    as_json,
    count,
    duration,
    moment,
    one_line,
    visible,
)

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

    Args:
        context: of the service.
        workspace: the tenant.
        patterns: as they are answered.
        most: repairs and examples of each.

    Raises:
        StoreError: when the store cannot say.
    """
    of_tools: dict[ToolKey, Sequence[MendedFailure]] = {}
    mending: dict[str, list[MendedFailure]] = {}
    for each in await context.patterns.get(workspace, [one.pattern_id for one in patterns]):
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

    Args:
        look: of the page.
        title: what the call is here.
        call: the call, secrets masked.
        level: of the heading with the title; it comes after one of the level before.
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

    Args:
        look: of the page.
        repair: both calls.
        level: of the headings of the three; they come after one of the level before.
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
    """`type (code): message`; None of a success."""
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
