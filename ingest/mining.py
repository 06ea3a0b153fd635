"""Repair mining: a failure, then a success of the same tool in the same session, that mended it.

Other failures may lie between: an agent that mends one fault at a time teaches by each of its
attempts what the success did differently.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from aftercall.json_patch import same_json
from aftercall.models import Execution
from retrieval.edits.infer import infer_edits
from retrieval.edits.kinds import Edit, Grounds
from retrieval.reading.reader import ErrorReading, read_error

MAX_GAP = timedelta(minutes=30)
"""A success that comes later answers another need."""
MAX_CALLS_BETWEEN = 10
_TRANSIENT = frozenset({"timeout", "rate_limited", "unavailable"})
_MAY_PASS = _TRANSIENT | {"contract_violation"}
"""Failures that the same call may not meet again: the moment passes, or the result differs."""

Certainty = Literal["stated", "next", "later"]
"""Who says that it is a repair: the caller (`repairOf`); the order, when it is the first success
after the failure; or only its likeness, when other successes lie between."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A failed execution, the success that mended it, and what the success did differently.

    `edits` is empty when calling again unchanged was enough, and None when what the success did
    instead is no rule: a new intent, or a value of its own. That such calls were mended otherwise
    speaks against the rules of their error.
    """

    failed: Execution
    mended: Execution
    reading: ErrorReading
    edits: list[Edit] | None
    certainty: Certainty = "next"


def mine(calls: Sequence[Execution]) -> list[Repair]:
    """The repairs in the calls of one tool in one session.

    Each failure is paired with the first later success that mends it. Order is by `sequence` where
    all calls have one, else by time; a call that names the failure in `repairOf` is paired first.
    """
    ordered = _ordered(calls)
    naming: dict[str, list[tuple[int, Execution]]] = defaultdict(list)
    for position, call in enumerate(ordered):
        if call.repair_of is not None:
            naming[call.repair_of].append((position, call))
    repairs = []
    for position, failed in enumerate(ordered):
        named = [call for at, call in naming.get(failed.execution_id, ()) if at > position]
        later = ordered[position + 1 : position + 1 + MAX_CALLS_BETWEEN]
        if failed.outcome == "failure" and (repair := _mended(failed, named, later)):
            repairs.append(repair)
    return repairs


def _mended(
    failed: Execution, named: Sequence[Execution], later: Sequence[Execution]
) -> Repair | None:
    if failed.error is None:
        return None
    reading = read_error(failed.error, failed.parameters)
    near = [
        each
        for each in later
        if each.timestamp - failed.timestamp <= MAX_GAP
        and each.repair_of in (None, failed.execution_id)
    ]
    grounds = Grounds(reading.faults, failed.context)
    otherwise: Repair | None = None
    for rank, success in enumerate(_successes([*named, *near])):
        if success.suggestion_id is not None:
            return None  # our own doing: it teaches as the outcome of that suggestion
        certainty: Certainty = (
            "stated" if success.repair_of is not None else "later" if rank else "next"
        )
        if same_json(success.parameters, failed.parameters):
            # The same call worked later: a repair only where waiting or trying again is one.
            passed = reading.category in _MAY_PASS
            return Repair(failed, success, reading, [], certainty) if passed else None
        if reading.category in _TRANSIENT:
            continue
        edits = infer_edits(failed.parameters, success.parameters, reading, grounds)
        if edits:
            return Repair(failed, success, reading, edits, certainty)
        if certainty != "later" and otherwise is None:
            otherwise = Repair(failed, success, reading, None, certainty)
    return otherwise


def _successes(calls: Iterable[Execution]) -> list[Execution]:
    distinct = {each.execution_id: each for each in calls if each.outcome == "success"}
    return list(distinct.values())


def _ordered(calls: Sequence[Execution]) -> list[Execution]:
    if all(call.sequence is not None for call in calls):
        return sorted(calls, key=lambda call: (call.sequence, call.attempt, call.timestamp))
    return sorted(calls, key=lambda call: (call.timestamp, call.attempt))
