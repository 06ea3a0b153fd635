"""Repair mining: a failure, then the success of the same tool and session that repaired it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from aftercall.json_patch import same_json
from aftercall.models import Execution
from aftercall.outcomes import TRANSIENT
from aftercall.tables import gather_values
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edits import Edit, ValueSources
from retrieval.knowledge.rewrites.inference import all_edits, infer_edits

MAX_GAP = timedelta(minutes=30)
"""A success that comes later answers another need."""
MAX_CALLS_BETWEEN = 10
_MAY_PASS = TRANSIENT | {"contract_violation"}
"""Failures that the same call may not meet again: the moment passes, or the result differs."""
Read = Callable[[Execution], ErrorReading]
Certainty = Literal["stated", "next", "later", "followed"]
"""Who states that it is a repair: the caller (`repairOf`); the order, when it is the first success
after the failure; only its likeness, when other successes lie between; or no one, when it followed
a suggestion."""


@dataclass(frozen=True, slots=True)
class MinedRepair:
    """A failed execution, the success that repaired it, and what the success did differently.

    `edits` is empty when calling again unchanged was enough, and None when what the success did
    instead is no rule: a new intent, or a value of its own. That such calls were repaired otherwise
    speaks against the rules of their error.
    """

    failed: Execution
    mended: Execution
    reading: ErrorReading
    edits: list[Edit] | None
    certainty: Certainty = "next"
    all_edits: Sequence[Edit] = ()
    """Everything that the success did differently, the next intent of its caller too."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A failed call, and what was sent instead of it and got the same error."""

    failed: Execution
    again: Execution
    reading: ErrorReading


def tried_in_vain(calls: Sequence[Execution], new: Execution, read: Read) -> Tried | None:
    """Return the failure that a failed call was to repair, where it failed with the same error.

    It is the one that the call names, or else the one before it. None where the error is another
    one, or where the call follows a suggestion, whose outcome it then is.
    """
    if new.error is None or new.suggestion_id is not None:
        return None
    earlier = [each for each in calls if each.execution_id != new.execution_id]
    earlier.sort(key=lambda call: (call.timestamp, call.attempt))
    named = [each for each in earlier if each.execution_id == new.repair_of]
    failed = next(reversed(named or earlier), None)
    if failed is None or failed.error is None or same_json(failed.parameters, new.parameters):
        return None
    reading = read(failed)
    is_near = bool(named) or new.timestamp - failed.timestamp <= MAX_GAP
    # Read as the failed call's: which names a message holds depends on the call.
    again = read_error(new.error, failed.parameters)
    is_same = reading.signature == again.signature and reading.category not in TRANSIENT
    return Tried(failed, new, reading) if is_near and is_same else None


def mine_repairs(calls: Sequence[Execution], new: Execution, read: Read) -> list[MinedRepair]:
    """Return the repairs that a call is a half of, in the calls of one tool in one session.

    Each failure is paired with the first later success that repairs it. Order is by `sequence`
    where all calls have one, else by time; a call that names the failure in `repairOf` is paired
    first.
    """
    ordered = sorted(calls, key=lambda call: (call.timestamp, call.attempt))
    if all(call.sequence is not None for call in calls):
        ordered.sort(key=lambda call: (call.sequence, call.attempt))
    place = next(at for at, call in enumerate(ordered) if call.execution_id == new.execution_id)
    naming = gather_values((call.repair_of, (at, call)) for at, call in enumerate(ordered))
    repairs = []
    for at, failed in enumerate(ordered):
        if failed.error is None or (new.outcome == "failure" and failed is not ordered[place]):
            continue
        named = [call for where, call in naming.get(failed.execution_id, ()) if where > at]
        near = [
            each
            for each in ordered[at + 1 : at + 1 + MAX_CALLS_BETWEEN]
            if each.timestamp - failed.timestamp <= MAX_GAP
            and each.repair_of in (None, failed.execution_id)
        ]
        successes = {e.execution_id: e for e in (*named, *near) if e.outcome == "success"}
        if new.outcome == "success" and new.execution_id not in successes:
            continue
        repair = _mine_pair(failed, list(successes.values()), read(failed))
        if repair is not None and new.execution_id in (
            failed.execution_id,
            repair.mended.execution_id,
        ):
            repairs.append(repair)
    return repairs


@dataclass(frozen=True, slots=True)
class Passed:
    """A failed call that worked later as it was, and the other tools' successes in between."""

    failed: Execution
    worked: Execution
    between: Sequence[Execution]


def find_passed(calls: Sequence[Execution], new: Execution) -> Passed | None:
    """Return the latest failure of the very call that works now, with what made it work.

    None for none.

    `calls` are of all tools in the session, in order, the new one last.
    """
    if new.outcome != "success" or new.suggestion_id is not None:
        return None
    between: list[Execution] = []
    for each in reversed(calls):
        if new.timestamp - each.timestamp > MAX_GAP or len(between) > MAX_CALLS_BETWEEN:
            return None
        if each.execution_id == new.execution_id:
            continue
        is_tool = (each.server_name, each.tool_name) == (new.server_name, new.tool_name)
        if is_tool and same_json(each.parameters, new.parameters):
            return Passed(each, new, between[::-1]) if each.error is not None else None
        if each.outcome == "success" and not is_tool and each.server_name == new.server_name:
            between.append(each)
    return None


def _mine_pair(
    failed: Execution, successes: Sequence[Execution], reading: ErrorReading
) -> MinedRepair | None:
    value_sources = ValueSources(reading.faults, failed.context)
    otherwise: MinedRepair | None = None
    for rank, success in enumerate(successes):
        if success.suggestion_id is not None:
            # It followed our suggestion and is counted as its outcome; here what changed is kept.
            every = all_edits(failed.parameters, success.parameters, value_sources)
            return (
                MinedRepair(failed, success, reading, None, "followed", every) if not rank else None
            )
        certainty: Certainty = (
            "stated" if success.repair_of is not None else "later" if rank else "next"
        )
        if same_json(success.parameters, failed.parameters):
            # The same call worked later: a repair only where waiting or trying again is one.
            may_pass = reading.category in _MAY_PASS
            return MinedRepair(failed, success, reading, [], certainty) if may_pass else None
        edits = None
        if reading.category not in TRANSIENT:
            edits = infer_edits(failed.parameters, success.parameters, reading, value_sources)
        if not edits and (certainty == "later" or otherwise is not None):
            continue
        every = all_edits(failed.parameters, success.parameters, value_sources)
        repair = MinedRepair(failed, success, reading, edits or None, certainty, every)
        if edits:
            return repair
        otherwise = repair
    return otherwise
