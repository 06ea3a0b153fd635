"""What the confidence of a proposal is judged by: few numbers, each with a meaning."""

from collections.abc import Iterable
from math import log, prod, sqrt

from retrieval.edits.kinds import Add, Replace
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.proposals.option import Trials

FEATURES = (
    "likelihood",
    "rivals",
    "uncovered",
    "options",
    "strange",
    "no_schema",
    "blind",
    "new_value_in_write",
)
"""The order of the vector that `features_of` gives."""

_LEAST = 0.005
_FEW = 3
"""Successes below which a profile says nothing of what is usual."""


def lower_bound(trials: Trials) -> float:
    """The Beta mean less one standard deviation, in [0, 1]; higher means more likely right."""
    total = trials.right + trials.wrong
    return max(0.0, trials.mean - sqrt(trials.right * trials.wrong / (total**2 * (total + 1))))


def likelihood(proposal: Proposal) -> float:
    """The probability, in (0, 1), that all options are right: the product of their Beta means."""
    estimate = prod(option.evidence.mean for option in proposal.options)
    return min(1 - _LEAST, max(_LEAST, estimate))


def features_of(
    case: Case, proposal: Proposal, own: float, others: Iterable[float]
) -> tuple[float, ...]:
    """The features of a proposal, as `FEATURES` names them.

    Args:
        case: the failed call.
        proposal: what would be changed.
        own: its `likelihood`.
        others: those of the other proposals that may be made for the case.
    """
    covered = frozenset(index for option in proposal.options for index in option.covers)
    uncovered = sum(
        index not in covered and fault.kind != "invalid" for index, fault in enumerate(case.faults)
    )
    edits = [edit for option in proposal.options for edit in option.edits]
    new_value = any(isinstance(edit, Add | Replace) for edit in edits)
    rival = max(others, default=0.0)
    return (
        log(own / (1 - own)),
        log(own / (own + rival)),
        float(min(uncovered, 3)),
        float(min(len(proposal.options) - 1, 3)),
        float(min(_strange(case, proposal), 3)),
        float(case.schema is None),
        float(case.view is None),
        float(case.writes and new_value),
    )


def _strange(case: Case, proposal: Proposal) -> int:
    """How many names the result has that no success had, or has not that all had."""
    view = case.view
    few = case.profile is None or case.profile.successes < _FEW
    if view is None or (view.source == "profile" and few):
        return 0
    return len(view.unknown(proposal.parameters)) + len(view.missing(proposal.parameters))
