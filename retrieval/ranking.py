"""Ranking: the proposals that may be made for a case, surest first. Pure."""

from dataclasses import dataclass

from retrieval.confidence.calibration import Calibration, Estimate
from retrieval.confidence.consent import MOST_WITHOUT_CONSENT, needs_consent
from retrieval.confidence.features import features_of, likelihood
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal, propose
from retrieval.verify import Verifier


@dataclass(frozen=True, slots=True)
class Judged:
    """A proposal that may be made, with what its confidence comes from."""

    proposal: Proposal
    features: tuple[float, ...]
    estimate: Estimate


def judge(case: Case, calibration: Calibration) -> list[Judged]:
    """The proposals that fit schema and error, each parameters once, surest first."""
    verifier = Verifier(case)
    likeliest: dict[str, tuple[float, Proposal]] = {}
    for proposal in propose(case):
        if verifier.accepts(proposal):
            own = likelihood(proposal)
            if proposal.key not in likeliest or own > likeliest[proposal.key][0]:
                likeliest[proposal.key] = own, proposal
    found = []
    for key, (own, proposal) in likeliest.items():
        others = [other for each, (other, _) in likeliest.items() if each != key]
        features = features_of(case, proposal, own, others)
        estimate = calibration.estimate(features, proposal)
        if needs_consent(case, proposal):
            estimate = estimate.at_most(MOST_WITHOUT_CONSENT)
        found.append(Judged(proposal, features, estimate))
    return sorted(found, key=lambda each: (-each.estimate.probability, each.proposal.key))
