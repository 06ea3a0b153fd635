"""Confidence: how likely a proposal is right, from the trials that speak for and against it.

Each option carries Beta counts: priors per kind of edit (pseudo-trials, see the modules of
`retrieval.proposals`) plus what was seen. The estimate is the Beta mean less one standard
deviation, about its 16th percentile: little evidence counts as little. Options of one proposal must
all be right, so their estimates multiply.
"""

from math import prod, sqrt

from retrieval.proposals import Case, Proposal, Trials

MIN_CONFIDENCE = 0.15
"""Below this nothing is proposed (4-rules.md, Suggesting)."""

_UNSOLVED = 0.3
"""A proposal that leaves a named fault as it is will most likely fail again."""
_UNVERIFIED = 0.95
"""Without a schema nothing but the error speaks for the names and types."""


def lower_bound(trials: Trials) -> float:
    """The Beta mean less one standard deviation, in [0, 1]; higher means more likely right."""
    right, wrong = trials.right, trials.wrong
    total = right + wrong
    mean = right / total
    return max(0.0, mean - sqrt(right * wrong / (total * total * (total + 1))))


def confidence_of(case: Case, proposal: Proposal) -> float:
    """The probability, in [0, 1], that the proposal does what the caller meant."""
    estimate = prod(lower_bound(option.trials) for option in proposal.options)
    covered = frozenset(index for option in proposal.options for index in option.covers)
    for index, fault in enumerate(case.faults):
        if index not in covered and fault.kind != "invalid":
            estimate *= _UNSOLVED
    return estimate if case.schema is not None else estimate * _UNVERIFIED
