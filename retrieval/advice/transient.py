"""Transient failures: how long to wait before the same call, and when to stop trying. Pure."""

from aftercall.models import ErrorCategory, ExecutionError
from retrieval.advice.situation import Advice, Situation
from retrieval.advice.waits import MAX_WAIT_MS, MIN_WAIT_MS, stated_wait_ms
from retrieval.knowledge.recovery import RecoveryTimes
from retrieval.proposals.option import Trials

GIVE_UP = 5
"""Failures of the same call, with no success in between, after which somebody has to look."""
_QUANTILE = 0.75
"""Within the wait that is advised, three of four sessions saw such a failure pass."""
_GROWTH = 2.0
"""Of the wait with each failure in a row, unless the tool says when: exponential backoff
(4-rules.md, Retrying)."""

# Waits where nobody says how long, and how often such a failure passes: pseudo-trials until the
# workspace has its own. With a stated wait it nearly always does.
_DEFAULT: dict[ErrorCategory, tuple[float, Trials]] = {
    "rate_limited": (2_000.0, Trials(12, 3)),
    "unavailable": (1_000.0, Trials(8, 4)),
    "timeout": (1_000.0, Trials(6, 5)),
}
_STATED = Trials(20, 1.5)
_STUCK = Trials(12, 2)
_PER_FAILURE = 3.0
"""Pseudo-wrongs of each failure in a row after the first: the wait was not enough."""


def transient_advice(
    category: ErrorCategory, error: ExecutionError, situation: Situation
) -> Advice:
    """To call again after a while; to hand over once that has not helped often enough.

    Args:
        category: one of `recovery.TRANSIENT`.
        error: what the tool said.
        situation: where the call stands.
    """
    failures = max(situation.repeats.weighed, situation.attempt, 1)
    if failures >= GIVE_UP:
        return Advice(
            "escalate",
            _STUCK,
            f"This call has failed {failures} times in a row ({category}) and waiting has not "
            "helped; ask whoever runs the tool, and do not send it again for now.",
        )
    stated = stated_wait_ms(error, situation.now)
    if stated is not None and stated > MAX_WAIT_MS:
        return Advice(
            "escalate",
            _STUCK,
            f"The tool says to come back in more than a day ({category}); ask the user whether to "
            "wait, or whoever runs the tool for another way.",
        )
    if stated is not None:
        wait, trials, why = stated, _STATED, "the tool says when"
    else:
        wait, trials, why = _usual_wait(category, situation)
        wait *= _GROWTH ** (failures - 1)
    if failures > 1:
        trials = trials.plus(Trials(0, _PER_FAILURE * (failures - 1)))
        why += f", but this call has failed {failures} times in a row"
    wait = min(max(wait, MIN_WAIT_MS), MAX_WAIT_MS)
    return Advice(
        "retry_unchanged",
        trials,
        f"The failure is of the moment ({category}); call again unchanged after {_in_words(wait)}: "
        f"{why}.",
        retry_after_ms=round(wait),
    )


def _usual_wait(category: ErrorCategory, situation: Situation) -> tuple[float, Trials, str]:
    default, trials = _DEFAULT[category]
    for times in situation.recoveries:
        seconds = times.quantile_s(_QUANTILE)
        if seconds is not None:
            return seconds * 1e3, trials, _learned(times)
    return default, trials, "such failures often pass"


def _learned(times: RecoveryTimes) -> str:
    return f"three of four of {len(times.recoveries)} sessions saw the same call work by then"


def _in_words(wait_ms: float) -> str:
    """`0.5 s`, `90 s`, `12 min`, `3 h`: two digits that matter, rounded."""
    for size, unit in ((3_600e3, "h"), (60e3, "min")):
        if wait_ms >= 2 * size:
            return f"{wait_ms / size:.3g} {unit}"
    return f"{wait_ms / 1e3:.3g} s"
