"""Repairs of a pattern: which belong to it, and what each did, side by side. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from aftercall.models import Execution
from aftercall.redaction import Redactor
from mongo.records import RepairRow
from retrieval.answer import lesson_of
from retrieval.edits.kinds import Edit, edits_of_key
from retrieval.knowledge.documents import document_id
from retrieval.patterns import Pattern, mark_of
from service.dashboard.shown.call_text import (
    ShownCall,
    changes_between,
    patch_of,
    shown_call,
    visible,
)

MAX_LESSON = 500
"""Characters of what a repair teaches."""

Executions = Mapping[str, Execution]
"""By id: those that are still stored."""


@dataclass(frozen=True, slots=True)
class ShownRepair:
    """A failed call and the success that mended it."""

    failed: ShownCall
    mended: ShownCall
    changes: tuple[str, ...]
    """JSON Patch operations, one line each; empty where the same call worked when made again."""
    patch: str
    """The same as a JSON Patch document."""
    lesson: str
    """What was learned from it, in words; empty where nothing was."""
    waited: timedelta
    """From the failure to the success, by the times that callers gave; never below 0."""


def belonging_to(workspace: str, pattern: Pattern) -> Callable[[str], bool]:
    """Whether failures of a signature, of the pattern's tool, belong to the pattern."""
    marks = pattern.marks()

    def belongs(signature: str) -> bool:
        of = document_id(workspace, "reflection", pattern.server_name, pattern.tool_name, signature)
        return mark_of(of) in marks

    return belongs


def repairs_of(rows: Iterable[RepairRow], belongs: Callable[[str], bool]) -> list[RepairRow]:
    """The rows of a tool that are repairs of the pattern, in their order."""
    known: dict[str, bool] = {}
    found = []
    for row in rows:
        if row.signature not in known:
            known[row.signature] = belongs(row.signature)
        if known[row.signature]:
            found.append(row)
    return found


def ids_of(rows: Iterable[RepairRow]) -> list[str]:
    """The executions that the rows name, each once."""
    return list(dict.fromkeys(each for row in rows for each in (row.failed_id, row.mended_id)))


def shown_repairs(
    rows: Iterable[RepairRow], executions: Executions, redactor: Redactor
) -> Iterator[ShownRepair]:
    """The repairs of which both calls are still stored, in their order.

    Secrets are masked as of today, also in calls that were stored before they were known as such.
    """
    for row in rows:
        failed, mended = executions.get(row.failed_id), executions.get(row.mended_id)
        if failed is not None and mended is not None:
            yield _shown(row, redactor.call(failed), redactor.call(mended), redactor)


def _shown(row: RepairRow, failed: Execution, mended: Execution, redactor: Redactor) -> ShownRepair:
    return ShownRepair(
        failed=shown_call(failed),
        mended=shown_call(mended),
        changes=tuple(changes_between(failed.parameters, mended.parameters)),
        patch=patch_of(failed.parameters, mended.parameters),
        lesson=_lesson(row, redactor),
        waited=max(timedelta(), mended.timestamp - failed.timestamp),
    )


def _lesson(row: RepairRow, redactor: Redactor) -> str:
    try:
        edits = edits_of_key(row.data.decode())
    except ValueError:  # made by another version: the calls themselves are shown all the same
        return ""
    return told_lesson(edits, redactor) if edits else ""


def told_lesson(edits: Sequence[Edit], redactor: Redactor) -> str:
    """What edits teach, in plain words; values under a name that became secret since are masked."""
    lesson = lesson_of([_without_secrets(each, redactor) for each in edits])
    return visible(redactor.text(lesson), MAX_LESSON)


def _without_secrets(edit: Edit, redactor: Redactor) -> Edit:
    secret = next((str(step) for step in edit.path if redactor.is_secret_name(str(step))), None)
    if secret is None:
        return edit
    values = edit.model_dump(include={"before", "value", "text"})
    update = {
        name: next(iter(redactor.parameters("", {secret: value}).values()))
        for name, value in values.items()
    }
    return edit.model_copy(update=update)
