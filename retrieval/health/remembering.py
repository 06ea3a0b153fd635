"""Remembering: the latest events of a tool one by one, in bounded room, in any order of arrival.

Each list keeps its latest events by time and id, so that it ends the same in any order of arrival.
The latest few keep their words; of the others there stays what questions count by.
"""

from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime
from math import ceil
from typing import Any, TypeVar

from pydantic import BaseModel

from retrieval.health.tool_health import (
    MAX_CORRECTIONS,
    MAX_LOW_UTILITY,
    MAX_METHODS,
    MAX_OWN_FAILURES,
    MAX_REFERRALS,
    MAX_WEAK,
    Corrected,
    KnownHealth,
    MethodTallies,
    OwnFailure,
    Referred,
    Weak,
)

MAX_WORDED = 16
"""Latest events of a list that keep their words: as many as anybody reads."""

MAX_WORDS = 300
"""Characters kept of what a tool or a user said."""

MAX_ROW = 40_000
"""Bytes of a tool's row. What a hostile tool says may be longer than all lists have room for."""

_FADED_EVIDENCE = 40
"""Characters that stay of the evidence of older referrals: that there was any still counts."""

_SHED = 4
"""Of a row that is too large the oldest quarter of every list goes, until it fits."""

EventT = TypeVar("EventT", bound=BaseModel)


def short(text: str, limit: int = MAX_WORDS) -> str:
    """Text on one line, of at most so many characters."""
    return " ".join(text[: 4 * limit].split())[:limit]


def remember_referral(known: KnownHealth, new: Referred) -> None:
    """Add a referral, in place of the oldest of its kind."""
    like = [each for each in known.referrals if each.kind == new.kind]
    others = [each for each in known.referrals if each.kind != new.kind]
    most = MAX_REFERRALS if new.kind == "wrong_tool_boundary" else MAX_LOW_UTILITY
    faded = _insert(like, new, most, _by_execution)
    known.referrals = sorted([*others, *like], key=_by_execution)
    for each in faded:
        each.shape, each.split, each.message = None, [], ""
        if each.evidence is not None:
            each.evidence = each.evidence[:_FADED_EVIDENCE]


def remember_weak(known: KnownHealth, new: Weak) -> None:
    """Add a weak success, in place of the oldest."""
    _insert(known.recent_weak, new, MAX_WEAK, _by_execution)


def remember_own_failure(known: KnownHealth, new: OwnFailure) -> None:
    """Add a failure of the implementation, in place of the oldest."""
    for each in _insert(known.own_failures, new, MAX_OWN_FAILURES, _by_execution):
        each.message = ""


def remember_correction(known: KnownHealth, new: Corrected) -> None:
    """Add a correction, in place of the oldest."""
    for each in _insert(known.recent_corrections, new, MAX_CORRECTIONS, _by_correction):
        each.text = ""


def method_to_update(known: KnownHealth, method: str) -> MethodTallies:
    """A method's tallies, made when they are new in the place of the least called."""
    tallies = known.methods.setdefault(method, MethodTallies())
    while len(known.methods) > MAX_METHODS:
        others = (each for each in known.methods if each != method)
        del known.methods[min(others, key=lambda each: _importance(known.methods[each], each))]
    return tallies


def encoded(known: KnownHealth) -> bytes:
    """A tool's row, of at most `MAX_ROW` bytes; one of which little is known is short.

    Of one that is too large, what is remembered one by one is shed from `known` itself, the oldest
    first, and the least called methods; what counts all events of the tool stays.
    """
    data = _dumped(known)
    while len(data) > MAX_ROW:
        _shed(known)
        data = _dumped(known)
    return data


def _dumped(known: KnownHealth) -> bytes:
    return known.model_dump_json(exclude_defaults=True).encode()


def _shed(known: KnownHealth) -> None:
    lists: tuple[list[Any], ...] = (
        known.referrals, known.own_failures, known.recent_corrections, known.recent_weak,
        known.violations,
    )  # fmt: skip
    for events in lists:
        del events[: ceil(len(events) / _SHED)]
    least = sorted(known.methods, key=lambda each: _importance(known.methods[each], each))
    for method in least[: ceil(len(least) / _SHED)]:
        del known.methods[method]


def _insert(
    events: list[EventT], new: EventT, limit: int, key: Callable[[EventT], tuple[datetime, str]]
) -> list[EventT]:
    """Put an event into its place; returns those that keep their words no longer."""
    events.insert(bisect_right(events, key(new), key=key), new)
    del events[:-limit]
    faded = events[-MAX_WORDED - 1 : -MAX_WORDED]
    is_older = bool(faded) and key(new) < key(faded[0])
    return [*faded, new] if is_older else faded


def _by_execution(event: Referred | Weak | OwnFailure) -> tuple[datetime, str]:
    return event.at, event.execution_id


def _by_correction(event: Corrected) -> tuple[datetime, str]:
    return event.at, event.correction_id


def _importance(tallies: MethodTallies, method: str) -> tuple[int, str]:
    return tallies.successes.count + tallies.failures.count, method
