"""Why nothing is suggested, in words that help: what exists near a value that does not. Pure."""

from collections.abc import Iterator
from itertools import islice

from rapidfuzz.distance import JaroWinkler

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory
from aftercall.redaction import is_redacted
from retrieval.advice.quoting import quoted
from retrieval.advice.situation import Situation
from retrieval.catalogues import catalogue, is_about
from retrieval.proposals.case import Case
from retrieval.reading.faults import Fault

LOOP = 3
"""Failures of exactly the same call with the same error that make a loop."""
_MOST_NEAR = 3
_MIN_LIKENESS = 0.6
"""Jaro-Winkler, 0 to 1: below it two values share little more than their length."""
_MAX_KNOWN = 1_000
_MAX_TEXT = 100
_REASONS: dict[ErrorCategory, str] = {
    "wrong_tool_boundary": "the tool says that this is not its job; no change of parameters "
    "makes it so",
    "low_utility": "the tool answered and says that the answer is of little use; the "
    "parameters were valid",
    "conflict": "the call conflicts with what exists, and no earlier repair of this is known",
    "unknown": "the error could not be read, and no earlier repair of it is known",
}
_NOTHING = (
    "nothing stated, learned or near enough to be more than a guess is known for this failure"
)
_UNSEEN = (
    "the parameters of the call are not known, so no change of them can be told; ask again with "
    "them"
)
_OF_VALUES = frozenset({"not_found", "not_allowed", "invalid", "bad_format"})


def abstention_reason(case: Case, situation: Situation) -> str:
    """Why there is nothing to suggest, with what is near and the corpus's lesson, if any."""
    otherwise = _NOTHING if case.parameters_known else _UNSEEN
    parts = [_REASONS.get(case.reading.category, otherwise)]
    parts += [near] if (near := _near_sentence(case, situation)) else []
    parts += [seed.lesson for seed in case.seeds[:1]]
    return ". ".join(part.rstrip(".") for part in parts)


def loop_note(situation: Situation) -> str | None:
    """A sentence about the same call failing again and again; None when it does not."""
    if situation.repeats.total >= LOOP:
        return (
            f"These exact parameters failed {situation.repeats.total} times with this error; do "
            "not send them again."
        )
    if situation.attempt >= LOOP:
        return f"This was attempt {situation.attempt} of the call; do not send it again as it is."
    return None


def _near_sentence(case: Case, situation: Situation) -> str | None:
    for fault in case.faults:
        name = fault.parameter
        if name is None and len(case.parameters) == 1:
            name = next(iter(case.parameters))
        if fault.kind in _OF_VALUES and name in case.parameters:
            near = _near_values(case, fault, str(name), situation)
            if near:
                return f"near {quoted(name)} there are {', '.join(quoted(each) for each in near)}"
    if case.reading.category == "not_found" and not case.faults and len(case.parameters) == 1:
        [name] = case.parameters
        near = _near_values(case, None, name, situation)
        if near:
            return f"near {quoted(name)} there are {', '.join(quoted(each) for each in near)}"
    return None


def _near_values(
    case: Case, fault: Fault | None, name: str, situation: Situation
) -> list[JsonValue]:
    """The nearest values that are common knowledge, best first; none that is masked today."""
    value = case.parameters[name]
    if isinstance(value, dict | list | bool) or value is None or is_redacted(value):
        return []
    text = str(value).lower()[:_MAX_TEXT]
    scored = [
        (JaroWinkler.similarity(text, str(each).lower()[:_MAX_TEXT]), str(each), each)
        for each in islice(_known(case, fault, name), _MAX_KNOWN)
        if isinstance(each, str | int | float) and not isinstance(each, bool)
        and not same_json(each, value) and not is_redacted(each)
    ]  # fmt: skip
    best: dict[str, tuple[float, JsonValue]] = {
        shown: (score, each) for score, shown, each in scored if score >= _MIN_LIKENESS
    }
    ranked = sorted(best.values(), key=lambda pair: (-pair[0], str(pair[1])))
    return [each for _, each in ranked if situation.may_show(name, each)][:_MOST_NEAR]


def _known(case: Case, fault: Fault | None, name: str) -> Iterator[JsonValue]:
    if fault is not None:
        yield from fault.allowed
        if fault.suggested is not None:
            yield fault.suggested
    if view := case.parameter(name):
        yield from view.allowed
        yield from view.stated_values
    if seen := case.seen(name):
        yield from (common.value for common in seen.common_values())
    for seed in case.seeds:
        if seed.catalogue and is_about(seed.catalogue, name, case.reading.signature):
            yield from catalogue(seed.catalogue)
