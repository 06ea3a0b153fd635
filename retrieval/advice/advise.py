"""Which action helps where no change of parameters does. Pure."""

from dataclasses import replace

from aftercall.models import ExecutionError
from aftercall.outcomes import REFERRALS
from retrieval.advice.contracts import contract_advice
from retrieval.advice.first import first_tool
from retrieval.advice.permission import permission_lesson
from retrieval.advice.quoting import quoted
from retrieval.advice.refusals import Refusal, RefusalKind, refusal_of
from retrieval.advice.situation import Advice, NoAdvice, Situation
from retrieval.advice.splitting import split_advice, split_of
from retrieval.advice.switching import is_unknown_tool, near_name_advice, switch_advice
from retrieval.advice.transient import transient_advice
from retrieval.advice.waits import stated_wait_ms
from retrieval.confidence.features import lower_bound
from retrieval.knowledge.recovery import TRANSIENT
from retrieval.proposals.case import Case
from retrieval.proposals.option import Trials
from retrieval.reading.faults import Fault
from retrieval.reading.reader import ErrorReading

# Pseudo-trials: how often handing over is right, when the tool says so in these words.
_ESCALATE = Trials(20, 1.5)
_REFUSED = Trials(14, 2)

_BY_CODE = 0.95
"""Confidence of a category that a code or a type gives (see `reading.category`)."""
_NO_REFUSALS = frozenset({"user_rejected", "wrong_tool_boundary", "low_utility",
                          "contract_violation"})  # fmt: skip
_ASK: dict[RefusalKind, str] = {
    "funds": "there is not enough money or credit for it; ask the user how to pay, or for less",
    "quota": "the account's allowance is used up; ask whoever holds the account",
    "capacity": "there is not enough left of what was asked for; ask the user for another choice",
    "unavailable": "it is not offered then or there; look up what is, and let the user choose",
    "payment": "the means of payment is not known or not taken; look up those on file, and ask the "
    "user which one to use",
    "rule": "a rule of the business forbids it; ask the user for another way",
    "state": "its state does not allow it any more; ask the user how to go on",
}


def needs_like_calls(reading: ErrorReading) -> bool:
    """Whether successes of other tools like the failed call matter to the answer."""
    return reading.category in REFERRALS


def needs_other_tools(reading: ErrorReading, error: ExecutionError, tool_name: str) -> bool:
    """Whether the workspace's other tools matter to the answer, so that they are gathered."""
    if needs_like_calls(reading) or is_unknown_tool(error, tool_name):
        return True
    refusal = refusal_of(error.message)
    return refusal is not None and refusal.kind == "precondition"


def advise(case: Case, error: ExecutionError, situation: Situation) -> Advice | NoAdvice | None:
    """What to do about an error that no change of parameters mends; None for all other errors.

    Args:
        case: the failed call with what is known of its tool.
        error: what the tool said.
        situation: where the call stands.
    """
    category = case.reading.category
    if category == "user_rejected":
        return Advice(
            "escalate", _ESCALATE, "The user refused this call; ask the user before going on."
        )
    if category in REFERRALS:
        return _referred(case, error, situation)
    if category == "contract_violation":
        return contract_advice(case, error, situation)
    if is_unknown_tool(error, situation.tool_name):
        return near_name_advice(case, situation)
    refusal = None if category in _NO_REFUSALS else refusal_of(error.message)
    if category in TRANSIENT and not (refusal and _lasts(refusal, case, error, situation)):
        return transient_advice(category, error, situation)
    if refusal is not None and not _states_a_repair(case):
        return _refused(refusal, case, error, situation)
    if category == "permission_denied":
        return Advice("escalate", _ESCALATE, permission_lesson(error))
    return None


def _referred(case: Case, error: ExecutionError, situation: Situation) -> Advice | NoAdvice | None:
    """Another tool, or several for the parts of the task; the surer where both are known."""
    split = split_of(error, situation)
    parts = split.tools if split is not None and split.names_tools else ()
    switch = switch_advice(case, error, situation, parts=parts)
    known = [switch] if isinstance(switch, Advice) else []
    if split is not None and (split.names_tools or not known):
        known.append(split_advice(split))
    is_boundary = case.reading.category == "wrong_tool_boundary"
    if not known:
        return switch if is_boundary else None
    best = max(known, key=lambda each: lower_bound(each.trials))
    # An answer of little use may be better for other parameters; a boundary stays one.
    return best if is_boundary else replace(best, yields=True)


def _refused(refusal: Refusal, case: Case, error: ExecutionError, situation: Situation) -> Advice:
    said = f"The tool says {quoted(refusal.words)}"
    if refusal.kind == "precondition":
        here = (
            each.tool.name
            for each in situation.others
            if each.tool.server_name == situation.server_name
        )
        first = first_tool(error.message, situation.tool_name, here)
        what = f"call {quoted(first)}" if first else "do what it asks for"
        lesson = (
            f"{said}: no parameter is wrong, something has to be done first. If the user wants it, "
            f"{what}, and then the same call again."
        )
    else:
        lesson = f"{said}: {_ASK[refusal.kind]}. Other parameters are the user's to decide."
    # Where the category says that no parameter is wrong, no learned change stands beside it.
    yields = case.reading.category not in TRANSIENT | {"permission_denied"}
    return Advice("escalate", _REFUSED, lesson, yields=yields)


def _lasts(refusal: Refusal, case: Case, error: ExecutionError, situation: Situation) -> bool:
    """Whether a refusal is not of the moment, whatever its category says.

    A stated wait is the tool's own word that it passes, and so is a code such as 503, but for money
    and allowances. A category that was read from words alone is less sure than the refusal's own.
    """
    if stated_wait_ms(error, situation.now) is not None:
        return False
    return refusal.kind in ("quota", "funds") or case.reading.confidence < _BY_CODE


def _states_a_repair(case: Case) -> bool:
    """Whether the error, or the live schema, says what is wrong with a parameter's form."""
    is_live = case.view is not None and case.view.source == "schema"
    shown = [fault for fault in case.faults if fault.from_schema and is_live]
    return any(_is_of_form(fault) for fault in (*case.reading.faults, *shown))


def _is_of_form(fault: Fault) -> bool:
    return bool(
        fault.kind in ("missing", "unexpected", "wrong_type")
        or fault.allowed
        or fault.suggested
        or fault.expected_format
        or fault.minimum is not None
        or fault.maximum is not None
    )
