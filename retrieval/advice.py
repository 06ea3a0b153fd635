"""Actions other than changing parameters, and whether a retry can repeat a side effect."""

import re
from dataclasses import dataclass

from aftercall.json_values import JsonObject, JsonValue
from aftercall.wire import Action, ErrorCategory, ExecutionError, RetryAdvice, ToolAnnotations
from retrieval.proposals import Trials
from retrieval.reading import ErrorReading

_STATED_WAIT = re.compile(
    r"(?:retry|try again|wait|available|reset)[^\n\d]{0,30}?(\d+(?:\.\d+)?)\s*"
    r"(ms|milli|s\b|sec|m\b|min)?",
    re.IGNORECASE,
)
_MAX_WAIT_MS = 15 * 60_000.0

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
    for key in ("retryAfterMs", "retry_after_ms"):
        if (wait := _number(error.details, key)) is not None:
            return min(wait, _MAX_WAIT_MS)
    for key in ("retryAfter", "retry_after", "Retry-After"):
        if (wait := _number(error.details, key)) is not None:
            return min(wait * 1000, _MAX_WAIT_MS)
    if found := _STATED_WAIT.search(error.message[:2000]):
        unit = (found[2] or "s").lower()
        factor = 1 if unit.startswith(("ms", "milli")) else 60_000 if unit.startswith("m") else 1000
        return min(float(found[1]) * factor, _MAX_WAIT_MS)
    return None


def _number(details: JsonObject, key: str) -> float | None:
    value: JsonValue = details.get(key)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
        return float(value)
    valid = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if valid else None  # type: ignore[arg-type]  # `valid` says it is a number
