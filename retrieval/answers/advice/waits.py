"""Transient failures: how long to wait before the same call, and when to stop trying. Pure.

A tool states a wait as `Retry-After` in seconds and as HTTP date (RFC 9110), `retryAfterMs`,
`X-RateLimit-Reset` as Unix time or seconds, `RateLimit-Reset` (IETF draft), `google.rpc.RetryInfo`,
ISO 8601 moments, and words such as `try again in 6m0s`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory, ExecutionError
from retrieval.answers.proposers.case import Advice, CallContext
from retrieval.knowledge.beta import Trials

MIN_WAIT_MS = 100.0
MAX_WAIT_MS = 24 * 3_600_000.0
"""A longer wait is no advice for a call."""
_READ = 2_000
_MAX_VALUES = 200
_MAX_DEPTH = 5
_MAX_TEXT = 64
_EPOCH_S = 1e9
"""From here on a number of seconds is a moment (since 2001), not a wait of 30 years."""
_EPOCH_MS = 1e12
_LATEST_EPOCH_S = 7.3e9
"""The year 2201: what lies beyond is no moment that anyone waits for."""
_UNIT = r"(?:milliseconds?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
_AMOUNT = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?)\s{{0,2}}({_UNIT})(?![a-z])", re.IGNORECASE)
# "retry after 30", "try again in 2 hours", "wait 5s": a unit, or a word of time before the number;
# "retry 1 of 3", "after 5 attempts" and "reset at 2026-02-20" are no waits.
_STATED = re.compile(
    r"(?:retry|retrying|try again|wait|available|resets?)\b[^\n\d]{0,30}?"
    r"(?P<sure>\b(?:after|in|for)\b[\s:=]{1,3}|-after[\s:=\"]{1,4})?(?<![\d.])"
    rf"(?P<amount>(?:\d{{1,9}}(?:\.\d{{1,9}})?\s{{0,2}}{_UNIT}(?![a-z])(?:,? (?:and )?)?){{1,4}}|"
    r"(?P<bare>\d{1,9}(?:\.\d{1,9})?)(?=\s{0,2}(?:$|[.,;)\]}\"'](?!\d)|\n)))"
    r"(?!\s{0,2}(?:of\b|attempts|times|tries|retries|requests))",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:try again|retry|wait)[^\n\d]{0,20}?\b(?:in|for|after)? ?"
    r"\b(?P<word>an?|one|a few|several) (?P<unit>second|minute|hour)s?\b",
    re.IGNORECASE,
)
_FEW = {"a few": 5.0, "several": 5.0}
_HEADER = re.compile(
    r"\b(?P<name>retry[-_]after(?:[-_]ms)?|x-rate-?limit-reset(?:-after)?|ratelimit-reset|"
    r"retryDelay|retryAfter(?:Ms)?)"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>[^\n\"'}\]]{1,40})",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"(?:retry|try again|available|resets?|until|after|at)\b[^\n\d]{0,20}"
    r"(?P<moment>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?\s?(?:Z|UTC|[+-]\d\d:?\d\d))",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_BEYOND = 1e15
"""No number from here on is a wait or a moment, however it is written."""

# Names of details and headers, folded, with the milliseconds of one unit of theirs.
_NAMED = {
    "retryafterms": 1.0, "retryaftermilliseconds": 1.0, "retryinms": 1.0, "retryafter": 1e3,
    "retryafterseconds": 1e3, "retryin": 1e3, "retrydelay": 1e3, "xratelimitreset": 1e3,
    "ratelimitreset": 1e3, "xratelimitresetafter": 1e3, "resetafter": 1e3, "resetat": 1e3,
    "ratelimitresetat": 1e3,
}  # fmt: skip


def stated_wait_ms(error: ExecutionError, now: datetime | None) -> float | None:
    """Return the wait that the tool states, in milliseconds; None when it states none.

    It is at least `MIN_WAIT_MS`; a tool that states several means the first. One of more than
    `MAX_WAIT_MS` counts only when no other is stated. Without `now`, moments are not read.
    """
    details = (
        _wait_ms(value, unit, now)
        for name, value in islice(_walk_entries(error.details, _MAX_DEPTH), _MAX_VALUES)
        if (unit := _NAMED.get(re.sub(r"[-_ ]", "", name[:_MAX_TEXT]).lower())) is not None
    )
    waits = [
        wait for wait in (*details, *_from_text(error.message[:_READ], now)) if wait is not None
    ]
    if not waits:
        return None
    return max(MIN_WAIT_MS, next((wait for wait in waits if wait <= MAX_WAIT_MS), waits[0]))


def _walk_entries(value: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    items = [("", each) for each in value] if isinstance(value, list) else []
    for name, inner in (value.items() if isinstance(value, dict) else items) if depth else ():
        yield name, inner
        yield from _walk_entries(inner, depth - 1)


def _from_text(message: str, now: datetime | None) -> Iterator[float | None]:
    for header in _HEADER.finditer(message):
        unit = _NAMED[re.sub(r"[-_]", "", header["name"]).lower()]
        yield _wait_ms(header["value"].strip(), unit, now)
    for found in _STATED.finditer(message):
        if found["bare"] is None:
            yield _sum_ms(found["amount"])
        elif found["sure"]:
            yield _wait_ms(found["bare"], 1e3, now)
    yield from (_until_ms(each["moment"], now) for each in _MOMENT.finditer(message))
    for said in _WORDS.finditer(message):
        yield _FEW.get(said["word"].lower(), 1.0) * _unit_ms(said["unit"])


def _wait_ms(value: JsonValue, unit: float, now: datetime | None) -> float | None:
    """Return a value of a header or detail.

    A number, a text of one, `3.5s`, a date, or a Duration.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, dict):  # google.protobuf.Duration as an object
        parts = [value.get(key) for key in ("seconds", "nanos")]
        seconds, nanos = (_plain_number(part) or 0.0 for part in parts)
        return (seconds + nanos * 1e-9) * 1e3 if parts != [None, None] else None
    number = _plain_number(value)
    if number is not None:
        if number < _EPOCH_S:
            return number * unit
        at = number if number < _EPOCH_MS else number / 1e3
        is_ahead = now is not None and now.timestamp() < at < _LATEST_EPOCH_S
        return (at - now.timestamp()) * 1e3 if now is not None and is_ahead else None
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return None
    text = value.strip()
    if re.fullmatch(rf"(?:\d{{1,9}}(?:\.\d{{1,9}})?\s?{_UNIT}\s?){{1,4}}", text, re.IGNORECASE):
        return _sum_ms(text)
    return _until_ms(text, now)


def _plain_number(value: JsonValue) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < _BEYOND else None
    return None


def _until_ms(text: str, now: datetime | None) -> float | None:
    """Milliseconds until an HTTP date or an ISO moment; None when it is neither, or has passed."""
    if now is None or not text[:1].isalnum():
        return None
    try:
        if text[0].isdigit():
            moment = datetime.fromisoformat(re.sub(r"\s?UTC$", "Z", text, flags=re.IGNORECASE))
        else:
            moment = parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        wait = (moment - now).total_seconds() * 1e3
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return wait if wait > 0 else None


def _sum_ms(text: str) -> float:
    return sum(float(number) * _unit_ms(unit) for number, unit in _AMOUNT.findall(text))


def _unit_ms(unit: str) -> float:
    name = unit.lower()
    if name.startswith(("ms", "milli")):
        return 1.0
    return {"s": 1e3, "m": 60e3, "h": 3_600e3, "d": 86_400e3}[name[0]]


GIVE_UP = 5
"""Failures of the same call, with no success in between, after which someone has to look."""
_QUANTILE = 0.75
"""Within the wait that is advised, three of four sessions saw such a failure pass."""
_GROWTH = 2.0
"""Of the wait with each failure in a row, unless the tool states when: exponential backoff
(4-rules.md, Retrying)."""

# Waits where no one states how long, and how often such a failure passes: pseudo-trials until the
# workspace has its own. With a stated wait it nearly always does.
_DEFAULT: dict[ErrorCategory, tuple[float, Trials]] = {
    "rate_limited": (2_000.0, Trials(12, 3)),
    "unavailable": (1_000.0, Trials(8, 4)),
    "timeout": (1_000.0, Trials(6, 5)),
}
_WAIT_STATED = Trials(20, 1.5)
_STUCK = Trials(12, 2)
_PER_FAILURE = 3.0
"""Pseudo-wrongs of each failure in a row after the first: the wait was not enough."""


def transient_advice(
    category: ErrorCategory, error: ExecutionError, call_context: CallContext
) -> Advice:
    """To call again after a while; to hand over once that has not helped often enough."""
    failures = max(call_context.repeats.weighed, call_context.attempt, 1)
    if failures >= GIVE_UP:
        return Advice(
            "escalate",
            _STUCK,
            f"This call has failed {failures} times in a row ({category}) and waiting has not "
            "helped; ask the tool's operator, and do not send it again for now.",
        )
    stated = stated_wait_ms(error, call_context.now)
    if stated is not None and stated > MAX_WAIT_MS:
        return Advice(
            "escalate",
            _STUCK,
            f"The tool says to come back in more than a day ({category}); ask the user whether to "
            "wait, or ask the tool's operator for another way.",
        )
    if stated is not None:
        wait, trials, why = stated, _WAIT_STATED, "the tool says when"
    else:
        wait, trials, why = _usual_wait(category, call_context)
        wait *= _GROWTH ** (failures - 1)
    if failures > 1:
        trials = trials.add_trials(Trials(0, _PER_FAILURE * (failures - 1)))
        why += f", but this call has failed {failures} times in a row"
    wait = min(max(wait, MIN_WAIT_MS), MAX_WAIT_MS)
    return Advice(
        "retry_unchanged",
        trials,
        f"The failure is of the moment ({category}); call again unchanged after {in_words(wait)}: "
        f"{why}.",
        retry_after_ms=round(wait),
    )


def _usual_wait(category: ErrorCategory, call_context: CallContext) -> tuple[float, Trials, str]:
    default, trials = _DEFAULT[category]
    for times in call_context.recoveries:
        seconds = times.quantile_s(_QUANTILE)
        if seconds is not None:
            sessions = len(times.recoveries)
            why = f"three of four of {sessions} sessions saw the same call work by then"
            return seconds * 1e3, trials, why
    return default, trials, "such failures often pass"


def in_words(wait_ms: float) -> str:
    """`0.5 s`, `90 s`, `12 min`, `3 h`: two digits that matter, rounded."""
    for size, unit in ((3_600e3, "h"), (60e3, "min")):
        if wait_ms >= 2 * size:
            return f"{wait_ms / size:.3g} {unit}"
    return f"{wait_ms / 1e3:.3g} s"
