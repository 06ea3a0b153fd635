"""Actions other than changing parameters, and whether a retry can repeat a side effect."""

import re
from dataclasses import dataclass

from aftercall.json_values import JsonObject, JsonValue
from aftercall.wire import Action, ErrorCategory, ExecutionError, RetryAdvice, ToolAnnotations
from retrieval.proposals import Trials
from retrieval.reading import ErrorReading

# "retry after 30", "try again in 2 hours", "wait 5s": a unit, or a word of time before the number;
# "retry 1 of 3", "after 5 attempts" and "reset at 2026-02-20" are no waits.
_STATED_WAIT = re.compile(
    r"(?:retry|retrying|try again|wait|available|resets?)\b[^\n\d]{0,30}?"
    r"(?P<sure>\b(?:after|in|for)\b[\s:=]{1,3}|-after[\s:=\"]{1,4})?(?<![\d.])"
    r"(?P<number>\d{1,9}(?:\.\d{1,3})?)(?![\d:/]|-\d)\s{0,2}"
    r"(?P<unit>ms\b|millis|s\b|sec|m\b|min|h\b|hr|hour|days?\b)?"
    r"(?!\s{0,2}(?:of\b|attempts|times|tries|retries|requests))",
    re.IGNORECASE,
)
_MAX_WAIT_MS = 24 * 3_600_000.0
"""A longer wait is no advice for a call, and a number that large is more likely a date."""

# Waits where the tool states none, and how often such a failure passes. Pseudo-trials until the
# workspace has its own: a rate limit with a stated wait nearly always does.
_TRANSIENT: dict[ErrorCategory, tuple[float, Trials]] = {
    "rate_limited": (2_000.0, Trials(12, 3)),
    "unavailable": (1_000.0, Trials(8, 4)),
    "timeout": (1_000.0, Trials(6, 5)),
}
_STATED = Trials(20, 1.5)
_ESCALATE = Trials(20, 1.5)


@dataclass(frozen=True, slots=True)
class Advice:
    """One action that leaves the parameters as they are."""

    action: Action
    trials: Trials
    lesson: str
    retry_after_ms: float | None = None


def advise(reading: ErrorReading, error: ExecutionError) -> Advice | None:
    """What to do about an error that no change of parameters mends; None for other errors."""
    if transient := _TRANSIENT.get(reading.category):
        default_wait, trials = transient
        stated = _stated_wait_ms(error)
        wait = default_wait if stated is None else stated
        said = "the tool says when" if stated is not None else "it often passes"
        return Advice(
            "retry_unchanged",
            trials if stated is None else _STATED,
            f"The failure is of the moment ({reading.category}); call again unchanged after "
            f"{wait / 1000:g} s: {said}.",
            retry_after_ms=wait,
        )
    if reading.category == "permission_denied":
        return Advice(
            "escalate",
            _ESCALATE,
            "The caller lacks a permission; ask whoever grants access to this tool. Another try "
            "will not help.",
        )
    if reading.category == "user_rejected":
        return Advice(
            "escalate", _ESCALATE, "The user refused this call; ask the user before going on."
        )
    return None


def retry_advice(reading: ErrorReading, annotations: ToolAnnotations) -> RetryAdvice:
    """Whether calling again can repeat a side effect (4-rules.md, Retrying)."""
    if reading.category in ("permission_denied", "user_rejected"):
        return RetryAdvice(safe=False, reason="a refusal is not to be tried again")
    if reading.rejected_before_run:
        return RetryAdvice(safe=True, reason="the call was rejected before it ran")
    if annotations.read_only_hint:
        return RetryAdvice(safe=True, reason="the tool says that it only reads")
    if annotations.idempotent_hint:
        return RetryAdvice(safe=True, reason="the tool says that doing it twice changes nothing")
    return RetryAdvice(
        safe=False,
        reason="the call may have had an effect, and nothing says that it can be repeated",
    )


def abstention_reason(reading: ErrorReading) -> str:
    """Why there is nothing to suggest."""
    reasons: dict[ErrorCategory, str] = {
        "wrong_tool_boundary": "the tool says that this is not its job; no change of parameters "
        "makes it so",
        "low_utility": "the tool answered and says that the answer is of little use; the "
        "parameters were valid",
        "contract_violation": "the result broke its contract; that is for the tool to mend",
        "conflict": "the call conflicts with what exists, and no earlier repair of this is known",
        "unknown": "the error could not be read, and no earlier repair of it is known",
    }
    return reasons.get(
        reading.category,
        "nothing stated, learned or near enough to be more than a guess is known for this failure",
    )


def _stated_wait_ms(error: ExecutionError) -> float | None:
    waits = [(key, 1.0) for key in ("retryAfterMs", "retry_after_ms")]
    waits += [(key, 1000.0) for key in ("retryAfter", "retry_after", "Retry-After")]
    for key, factor in waits:
        stated = _number(error.details, key)
        if stated is not None and stated * factor <= _MAX_WAIT_MS:
            return stated * factor
    for found in _STATED_WAIT.finditer(error.message[:2000]):
        if found["unit"] or found["sure"]:
            wait = float(found["number"]) * _unit_ms(found["unit"])
            if wait <= _MAX_WAIT_MS:
                return wait
    return None


def _unit_ms(unit: str | None) -> float:
    """Milliseconds of a unit as it was written; seconds when there is none, as in HTTP."""
    name = (unit or "s").lower()
    if name.startswith(("ms", "milli")):
        return 1.0
    return {"s": 1e3, "m": 60e3, "h": 3_600e3, "d": 86_400e3}[name[0]]


def _number(details: JsonObject, key: str) -> float | None:
    value: JsonValue = details.get(key)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
        return float(value)
    valid = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if valid else None  # type: ignore[arg-type]  # `valid` says it is a number
