"""Usual values: what nearly all successes of a tool had, for a parameter that is not there."""

from collections.abc import Iterator

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from retrieval.edits.kinds import Add, Replace
from retrieval.proposals.case import Case
from retrieval.proposals.option import Option
from retrieval.proposals.priors import prior
from retrieval.values import fits

# By the share of the successes that had the value, one success more counted for it and one against
# it, so that few successes make no high share.
_SHARES = [
    (0.9, prior("usual.nearly-always", 8, 2)),
    (0.75, prior("usual.mostly", 4, 2)),
    (0.5, prior("usual.often", 2, 2)),
]
_SHARES_INSTEAD = [
    (0.9, prior("usual.instead.nearly-always", 5, 2)),
    (0.75, prior("usual.instead.mostly", 3, 2)),
    (0.5, prior("usual.instead.often", 2, 3)),
]
_SAID_ELSEWHERE = prior("usual.said-elsewhere", 1, 4)
"""The call has the value in another place: from Rome to Rome is no journey."""
_MOST = 2


def usual_choices(case: Case, name: str, covers: frozenset[int]) -> Iterator[Option]:
    """The usual value in the place of a refused one, where the schema states it as one of a list.

    Of an open list the refused value may be another thing, and is no sign of the usual one.
    """
    view = case.parameter(name)
    stated = (*view.allowed, *view.stated_values) if view else ()
    for option in usual_values(case, name, covers):
        if any(isinstance(edit, Replace) and edit.value in stated for edit in option.edits):
            yield option


def usual_values(case: Case, name: str, covers: frozenset[int]) -> Iterator[Option]:
    """The values that at least half of the successes had, when they are common knowledge.

    For a parameter that is missing, or in the place of a refused value.
    """
    seen, view = case.seen(name), case.parameter(name)
    if seen is None or not seen.successes:
        return
    sent = case.parameters.get(name)
    for common in seen.common_values()[:_MOST]:
        share = (common.weight + 1) / (seen.weight() + 2)
        shares = _SHARES if sent is None else _SHARES_INSTEAD
        trials = next((trials for least, trials in shares if share >= least), None)
        unfit = view is not None and not fits(common.value, view.types)
        if trials and _is_said_elsewhere(case, name, common.value):
            trials = _SAID_ELSEWHERE
        if trials is None or unfit or (name in case.parameters and same_json(common.value, sent)):
            continue
        edit = (
            Replace(name=name, before=sent, value=common.value)
            if name in case.parameters
            else Add(name=name, value=common.value)
        )
        yield Option(
            (edit,),
            f"{common.count} of {seen.successes} successes have this value",
            trials if case.profile_is_current else trials.under_old_schema(),
            ("profile",),
            successes=common.count,
            covers=covers,
        )


def _is_said_elsewhere(case: Case, name: str, value: JsonValue) -> bool:
    others = (other for key, other in case.parameters.items() if key != name)
    return value not in (True, False, None) and any(same_json(value, other) for other in others)
