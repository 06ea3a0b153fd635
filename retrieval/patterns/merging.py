"""What a pattern says of its failures, made from all of them each time: nothing adds up twice."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from retrieval.patterns.clustering import Failure, Grouped
from retrieval.patterns.record import Pattern, mark_of

MAX_SIGNATURES = 8
MAX_AGENTS = 24
MAX_EXAMPLES = 5

LessonOf = Callable[[Pattern, Sequence[Failure]], str]
"""The lesson of a pattern with these failures."""


def merged(group: Grouped, lesson_of: LessonOf) -> Pattern:
    """The pattern with counts, agents, examples and lesson of its failures."""
    pattern = group.pattern
    failures = sorted(group.failures, key=lambda each: (-each.count, each.document_id))
    latest = sorted(failures, key=_latest_last)
    marks = {mark_of(each.document_id) for each in failures}
    found = pattern.model_copy(
        update={
            "signatures": [each.signature for each in failures[:MAX_SIGNATURES]],
            "count": sum(each.count for each in failures),
            "mended": sum(each.mended for each in failures),
            "agents": _distinct((a for each in failures for a in each.agents), MAX_AGENTS),
            "execution_ids": _distinct(
                (one for each in reversed(latest) for one in reversed(each.execution_ids)),
                MAX_EXAMPLES,
            )[::-1],
            "lesson": lesson_of(pattern, failures),
            "first_seen": _least((pattern.first_seen, *map(_first_seen, failures))),
            "last_seen": _most(each.last_seen for each in failures),
        }
    )
    found.set_marks(marks)
    return found


def _distinct(values: Iterable[str], limit: int) -> list[str]:
    found: dict[str, None] = {}
    for value in values:
        found[value] = None
        if len(found) == limit:
            break
    return list(found)


def _latest_last(failure: Failure) -> tuple[float, str]:
    at = failure.last_seen
    return (at.timestamp() if at is not None else 0.0, failure.document_id)


def _first_seen(failure: Failure) -> datetime | None:
    return failure.first_seen or failure.last_seen


def _least(moments: Iterable[datetime | None]) -> datetime | None:
    return min((each for each in moments if each is not None), default=None)


def _most(moments: Iterable[datetime | None]) -> datetime | None:
    return max((each for each in moments if each is not None), default=None)
