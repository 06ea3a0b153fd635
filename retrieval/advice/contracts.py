"""Broken contracts: the tool answered, and its answer is not what was agreed on. Pure.

No parameter is wrong by its form, so only experience says what helps: other parameters that made
the result fit (learned repairs), or the same call again where that has worked before.
"""

from collections.abc import Iterator

from aftercall.json_values import JsonValue
from aftercall.models import ExecutionError
from retrieval.advice.quoting import quoted
from retrieval.advice.situation import Advice, NoAdvice, Situation
from retrieval.edits.kinds import edit_key
from retrieval.proposals.case import Case
from retrieval.proposals.option import Trials

_MAX_TOLD = 3
"""Violations that a reason tells."""

# Pseudo-trials: by itself the same call gives the same result; what is learned comes on top.
_AGAIN = Trials(1, 3)
_PER_FAILURE = 3.0
"""Pseudo-wrongs of each failure of this very call after the first, as for waits."""


def contract_advice(case: Case, error: ExecutionError, situation: Situation) -> Advice | NoAdvice:
    """What to do about a result that broke its contract; learned repairs stand beside it."""
    rule = case.signature.rules.get(edit_key([])) if case.signature else None
    standing = rule.weight() if rule else None
    if standing is None or not (standing.repairs or standing.successes):
        reason = f"{_what_broke(error)}; neither other parameters nor a second try is known to help"
        return NoAdvice(reason, yields=True)
    failures = max(situation.repeats.weighed, situation.attempt, 1)
    return Advice(
        "retry_unchanged",
        _AGAIN.plus(Trials(0, _PER_FAILURE * (failures - 1))),
        f"Here {_what_broke(error)}; the same call, sent again, has given a fitting result before.",
        retry_after_ms=0,
        yields=True,
    )


def _what_broke(error: ExecutionError) -> str:
    told = [
        said
        for _, each in zip(range(_MAX_TOLD), _violations(error), strict=False)
        if (said := _told(each))
    ]
    return (
        f"the result broke its contract {'; '.join(told)}"
        if told
        else ("the result broke its contract")
    )


def _violations(error: ExecutionError) -> Iterator[dict[str, JsonValue]]:
    listed = error.details.get("violations")
    several = (
        [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    )
    yield from several or [error.details]


def _told(violation: dict[str, JsonValue]) -> str:
    """Where, what was agreed on, and what came: values of the tool's, quoted as data."""
    path, mismatch = violation.get("path"), violation.get("mismatch")
    if path is None and mismatch is None:
        return ""
    where = f"at {quoted(path)}" if path is not None else "somewhere"
    kind = f" ({quoted(mismatch)})" if mismatch is not None else ""
    sides = [
        f"{word} {quoted(violation[name])}"
        for name, word in (("expected", "expected"), ("actual", "got"))
        if name in violation
    ]
    return f"{where}{kind}{': ' if sides else ''}{', '.join(sides)}"
