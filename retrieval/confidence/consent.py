"""Consent: changes that no evidence makes safe to follow without asking.

To charge 375 where the caller said 299 may be what the tool wants, and often what is done in the
end; but what a write is about, and how much, is the caller's to say. Such a suggestion is given,
and stays below the confidence from which gateways act by themselves (0.80, seed 004).
"""

from collections.abc import Iterator
from itertools import islice

from aftercall.json_values import JsonValue
from retrieval.edits.kinds import Add, Replace
from retrieval.identifiers import is_portion
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal

MOST_WITHOUT_CONSENT = 0.75
_SAID = frozenset({"error", "schema", "context", "parameters"})
_MAX_NUMBERS = 1_000


def needs_consent(case: Case, proposal: Proposal) -> bool:
    """Whether a proposal puts into a call that may write what its caller did not say.

    That is a value that others use and neither the schema, the error nor the caller states; or
    another amount than the caller's.
    """
    return case.writes and (_adds_unsaid(case, proposal) or _changes_amount(case, proposal))


def _adds_unsaid(case: Case, proposal: Proposal) -> bool:
    return any(
        isinstance(edit, Add | Replace) and not _is_stated(case, edit)
        for option in proposal.options
        if _SAID.isdisjoint(option.sources)
        for edit in option.edits
    )


def _is_stated(case: Case, edit: Add | Replace) -> bool:
    view = None if edit.inside else case.parameter(edit.name)
    return view is not None and edit.value in (*view.allowed, *view.stated_values)


def _changes_amount(case: Case, proposal: Proposal) -> bool:
    return any(
        not is_portion(name)
        and name in case.parameters
        and name in proposal.parameters
        and _is_other_amount(case.parameters[name], proposal.parameters[name])
        for name in proposal.touched
    )


def _is_other_amount(before: JsonValue, after: JsonValue) -> bool:
    mine, new = (list(islice(_numbers(value), _MAX_NUMBERS)) for value in (before, after))
    return len(mine) == len(new) and sorted(mine) != sorted(new)


def _numbers(value: JsonValue) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
