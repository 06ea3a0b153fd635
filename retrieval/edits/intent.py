"""What of a change is the repair, and what is another wish of the caller.

A repaired call does what the failed one meant. Another id, another text, another list of things is
another wish, unless the error itself states or refuses that very value.
"""

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from retrieval.edits.grounded import Balance, FromContext, FromError
from retrieval.edits.keys import Edit, touches
from retrieval.edits.structure import Add, Remove, Replace
from retrieval.identifiers import words_of
from retrieval.reading import ErrorReading, Fault
from retrieval.reading.faults import FaultKind
from retrieval.values import differ_in_digits

_FORM_FAULTS: frozenset[FaultKind] = frozenset(
    {"not_allowed", "bad_format", "out_of_range", "wrong_type"}
)
"""Faults of the value's form: a value that differs in its digits may still be the same wish."""
_FREE_TEXT = frozenset(
    ("query", "q", "message", "text", "content", "body", "prompt", "question", "description",
     "comment", "title", "subject", "thought", "summary", "note", "search", "caption", "tweet")
)  # fmt: skip
_MOST_CHANGED = 4
"""Names: two renames, of which each takes one away and adds one."""
_MOST_WORDS = 3
"""A text of more words is a sentence: its caller's own."""


def may_be_repair(failed: JsonObject, mended: JsonObject, reading: ErrorReading) -> bool:
    """Whether the two calls differ in little enough, or in what the error names; cheap to ask."""
    changed = {name for name, value in mended.items() if not same_json(value, failed.get(name))}
    changed |= failed.keys() ^ mended.keys()
    about = called_for(reading)
    if about is not None:
        return not changed.isdisjoint(about)
    return len(changed) > 0 and (bool(reading.implicated) or len(changed) <= _MOST_CHANGED)


def called_for(reading: ErrorReading) -> frozenset[str] | None:
    """The top-level parameters that the error is about; None when it may be about any."""
    stated = any(fault.stated is not None for fault in reading.faults)
    return None if stated else reading.implicated or None


def only_the_repair(
    edits: list[Edit], failed: JsonObject, reading: ErrorReading
) -> list[Edit] | None:
    """Those of the edits that mended what the error is about; None when that was another wish."""
    if not any(fault.path for fault in reading.faults):
        return _small_repair(edits, failed, reading)
    touching = [edit for edit in edits if _is_called_for(edit, reading)]
    beside = [edit for edit in edits if not _is_called_for(edit, reading)]
    if any(_is_another_thing(edit, reading) for edit in touching):
        return None
    if any(isinstance(edit, Replace) for edit in beside) and any(
        isinstance(edit, Add | Replace | FromContext) for edit in touching
    ):
        return None  # the value went with a new intent: it was right for that one
    return touching or None


def _small_repair(
    edits: list[Edit], failed: JsonObject, reading: ErrorReading
) -> list[Edit] | None:
    """Where the error names no place: what it calls for, or else a small change in form."""
    stated: list[Edit] = [e for e in edits if isinstance(e, FromError | Balance)]
    if stated:
        others = [edit for edit in edits if edit not in stated]
        return None if any(isinstance(edit, Replace | Add) for edit in others) else stated
    if any(isinstance(edit, Replace) for edit in edits):
        return None  # nothing says that this value was wrong
    untouched = len(failed) - len({edit.name for edit in edits} & failed.keys())
    small = len(edits) <= 2 and (untouched >= len(edits) or len(failed) <= 1)
    return edits if small and not any(_is_another_thing(e, reading) for e in edits) else None


def _is_called_for(edit: Edit, reading: ErrorReading) -> bool:
    """Whether an edit is of a place that the error is about, or puts what it states."""
    if isinstance(edit, FromError | Balance):
        return True
    return any(_is_about(edit, fault) for fault in reading.faults if fault.path)


def _is_about(edit: Edit, fault: Fault) -> bool:
    # A rename takes its source from a name that the error need not mention.
    return touches(edit, Remove(name=str(fault.path[0]), inside=fault.path[1:]))


def _is_another_thing(edit: Edit, reading: ErrorReading) -> bool:
    """Whether a value gave way to that of another wish."""
    if isinstance(edit, Add):
        return isinstance(edit.value, dict | list) and bool(edit.value)
    if not isinstance(edit, Replace):
        return False
    kinds = {fault.kind for fault in reading.faults if fault.path and _is_about(edit, fault)}
    if _is_content(edit.before) or _is_content(edit.value):
        return True
    if kinds & _FORM_FAULTS:
        return False
    free = not _FREE_TEXT.isdisjoint(words_of(str(edit.path[-1])))
    return free or differ_in_digits(str(edit.before), str(edit.value))


def _is_content(value: JsonValue) -> bool:
    """Whether a value is a thing of many parts that its caller wrote."""
    if isinstance(value, dict | list):
        return bool(value)
    return isinstance(value, str) and len(value.split()) > _MOST_WORDS
