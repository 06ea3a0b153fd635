"""Bounds: a number inside the stated or the seen ones, and what a number beyond them may mean."""

import re
from collections.abc import Iterator

from aftercall.models import EvidenceSource
from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials, put
from retrieval.answers.proposers.slips import crossed_options, seconds_options
from retrieval.answers.proposers.subjects import is_setting
from retrieval.answers.proposers.types import CONVERTED
from retrieval.answers.proposers.values import SYNONYM
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Clamp, Replace
from retrieval.knowledge.tool.profile import ParameterProfile
from retrieval.knowledge.values.likeness import is_portion, with_synonyms
from retrieval.knowledge.values.measures import codes_of
from retrieval.knowledge.values.scalars import write_number
from retrieval.knowledge.values.texts import is_number

_STATED_BOUND = prior_trials("clamp.stated")  # the error names the parameter and its bound
_MATCHED_BOUND = prior_trials("clamp.matched")  # it names a bound, and one value lies beyond it
_SEEN_BOUND = prior_trials("clamp.seen")
_SEEN_ENOUGH = 5
"""Successes from which on their numbers show a bound."""
_RAISED = prior_trials("clamp.raised")  # 0 -> 1: too small was often meant as "none" or "all"
_UNSIGNED = prior_trials("clamp.unsigned")  # -30 -> 30, where nothing may be negative
_EXACT_PART = prior_trials("length.part")
_OTHER_BOUND = Trials(3, 3)
"""A judgement: 3.8 where 0.25 is the most is a share in percent, and a year beyond it another."""
_NONE = -1
"""What many languages give for "none" or "the last": no number that has lost its sign."""
_ANOTHER_UNIT = 2
"""A judgement: what is more than so many times the most was likely counted in another unit."""
_INTENT_BOUND = Trials(1, 8)
"""Of an amount that a write is about: to transfer 100 instead of 500 is another transfer."""


def out_of_range_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """Yield the nearest value inside the bounds; the seen ones when the error states none."""
    name = fault.parameter
    candidates: list[str] = []
    if not name:
        candidates = _parameters_beyond(case, fault)
    elif name in case.parameters:
        candidates = [name]
    if fault.of_length:
        yield from _of_length(case, index, name, fault)
    if fault.of_length or len(candidates) != 1 or candidates[0] is None:
        return
    target = candidates[0]
    yield from crossed_options(case, index, target)
    yield from seconds_options(case, index, target)
    view = case.view_parameter(target)
    seen = case.observed_values(target)
    value = case.parameters[target]
    low = fault.minimum
    high = fault.maximum
    if view and low is None:
        low = view.minimum
    if view and high is None:
        high = view.maximum
    sent = value if is_number(value) else 0
    if sent < _NONE and low is not None and _is_within(-sent, low, high):
        unsigned = Replace(name=target, before=value, value=-sent)
        yield one_edit(index, unsigned, "the same without its sign", _UNSIGNED, "parameters")
    if high is not None and sent > high >= sent / 100 and high <= 1:
        share = Replace(name=target, before=value, value=round(sent / 100, 9))
        yield one_edit(index, share, "the same as a share of one", CONVERTED, "parameters")
    if low is not None or high is not None:
        if is_setting(target, view, seen):
            yield from _stated_bound(case, index, fault, target, (low, high))
    elif seen and seen.successes >= _SEEN_ENOUGH:
        yield from _seen_bound(case, index, target, seen)


def _stated_bound(
    case: Case, index: int, fault: Fault, name: str, bounds: tuple[float | None, float | None]
) -> Iterator[Option]:
    """Yield the nearest number within bounds that error or schema states, for a setting."""
    low, high = bounds
    value = case.parameters[name]
    view = case.view_parameter(name)
    seen = case.observed_values(name)
    sent = value if is_number(value) else 0
    if high is not None and sent > _ANOTHER_UNIT * high > 0 and not is_portion(name):
        return
    is_whole = isinstance(value, int) and not (view and "number" in view.types)
    if fault.exclusive and not is_whole:
        return  # the nearest number inside an open bound is no caller's wish
    stated = " to ".join(write_number(limit) for limit in (low, high) if limit is not None)
    successes = _successes_within(seen, low, high)
    within = f"; {successes} successes stay within it" if successes else ""
    source: EvidenceSource = "schema" if fault.from_schema else "error"
    reason = f"the {source} states the limit {stated}{within}"
    edit = Clamp(name=name, minimum=low, maximum=high)
    trials = _bound_trials(case, name, low, is_named=fault.parameter in case.parameters)
    yield one_edit(index, edit, reason, trials, source, successes)


def _seen_bound(case: Case, index: int, name: str, seen: ParameterProfile) -> Iterator[Option]:
    """Yield the bound of all successes, where it is common knowledge."""
    known = seen.find_boundary()
    if not known:
        return
    value = case.parameters[name]
    too_large = (float(value) if isinstance(value, int | float) else 0.0) > known.largest
    bound = known.largest if too_large else known.smallest
    if all(common.value != bound for common in seen.common_values()):
        return  # where someone else stopped is theirs to know
    edit = Clamp(name=name, **{"maximum" if too_large else "minimum": bound})
    reason = f"{seen.successes} successes stay on this side of {write_number(bound)}"
    yield one_edit(index, edit, reason, _SEEN_BOUND, "profile", seen.successes)


def _of_length(case: Case, index: int, name: str | None, fault: Fault) -> Iterator[Option]:
    """Yield the code that a text of the wrong length names, or its only part of the right one."""
    text = case.parameters.get(name or "")
    if not isinstance(text, str):
        return
    coded = [each for each in codes_of(text) if len(each) == fault.maximum]
    if text.isupper() or text.islower():  # a code, in the style of the one that was sent
        coded = [each for each in coded if each.isupper() == text.isupper()]
    if name and len(coded) == 1:
        yield one_edit(index, put(case, name, coded[0]), "the code of it", SYNONYM, "error")
    yield from _exact_part(case, index, str(name), fault)


def _successes_within(seen: ParameterProfile | None, low: float | None, high: float | None) -> int:
    """Return how many successes there were, where all their numbers are within bounds."""
    if seen is None or seen.minimum is None or seen.maximum is None:
        return 0
    if _is_within(seen.minimum, low, high) and _is_within(seen.maximum, low, high):
        return seen.successes
    return 0


def _exact_part(case: Case, index: int, name: str, fault: Fault) -> Iterator[Option]:
    """Yield the only part of a text that has the stated length, or its code."""
    text = str(case.parameters[name])
    length = fault.maximum
    if fault.minimum != length:
        return
    if length is None:
        return
    parts = {each for each in re.split(r"[\s:/?&=#]+", text) if each != text}
    found = {each for each in parts if len(each) == length}
    found |= {each for each in with_synonyms(text.lower()) if len(each) == length}
    if len(found) == 1:
        reason = f"the only part of it with {write_number(length)} characters"
        yield one_edit(index, put(case, name, found.pop()), reason, _EXACT_PART, "error")


def _bound_trials(case: Case, name: str, low: float | None, *, is_named: bool) -> Trials:
    value = case.parameters[name]
    if not is_portion(name):
        if case.writes:
            return _INTENT_BOUND
        return _OTHER_BOUND
    if isinstance(value, int | float) and low is not None and value < low:
        return _RAISED
    if is_named:
        return _STATED_BOUND
    return _MATCHED_BOUND


def _is_within(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def _parameters_beyond(case: Case, fault: Fault) -> list[str]:
    """Parameters beyond a bound without a name; of several those that have it by the schema."""
    names = [
        name
        for name, value in case.parameters.items()
        if is_number(value) and not _is_within(value, fault.minimum, fault.maximum)
    ]
    bound = [
        name
        for name in names
        if (view := case.view_parameter(name))
        and (view.minimum, view.maximum) != (None, None)
        and fault.maximum in (None, view.maximum)
        and fault.minimum in (None, view.minimum)
    ]
    if len(names) == 1:
        return names
    return bound
