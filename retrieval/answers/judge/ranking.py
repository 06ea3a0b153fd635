"""Ranking: the proposals for a case with the judge's probability of each, surest first.

A proposal must fit schema and error, and must not be known to fail. What was mended alike before is
judged by that record, everything else by the model (`judge.model`); both read the same
signals. Two things are no matter of degree: a value that no one states is never likelier than not,
and one that several places would take is shared among them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log, prod, sqrt

from aftercall.json_patch import same_json
from retrieval.answers.judge.acceptance import accepts, check_of, fits_schema
from retrieval.answers.judge.model import shipped_model
from retrieval.answers.judge.signals import SIGNALS, Weighed, signals_of
from retrieval.answers.proposers.case import Case, Option
from retrieval.answers.proposers.compose import Proposal, propose_as_siblings, propose_changes
from retrieval.answers.proposers.grounds import grounds_of
from retrieval.knowledge.calls.account import CallAccount
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.confidence import (
    MIN_CONFIDENCE,
    Calibration,
    Estimate,
    log_odds,
    lower_bound,
)
from retrieval.knowledge.rewrites.edits import Add, FromContext, Replace
from retrieval.knowledge.values.likeness import nearest_value
from retrieval.knowledge.values.parameters import value_at

_Z = 1.645
"""Of the two-sided 90 % interval."""
_LEAST = 0.005
_MOST_JUDGED = 6
"""Proposals of one case that are judged, those with the most evidence."""
_AFTER_A_FAILURE = 0.66
"""What is left of a confidence after a reported failure: below half after three of one agent."""
_EVEN = 0.5
_LIKELY = 1.0
"""Log-odds below which a learned repair loses confidence faster (the signal `unlikely`)."""
_SPREAD = 0.3
"""Log-odds of a probability for one of its evidence, as weights fitted on the benchmark have it."""
_FOUND = frozenset(("session", "context", "profile", "similar", "repairs"))


@dataclass(frozen=True, slots=True)
class RankedProposal:
    """A proposal that may be made, with its account, its signals and its confidence."""

    proposal: Proposal
    account: CallAccount
    signals: tuple[float, ...]
    estimate: Estimate


def judge(case: Case, calibration: Calibration) -> list[RankedProposal]:
    """Return the proposals that fit schema and error, each parameters once, surest first.

    Repairs of sibling tools are tried only where no own proposal reaches `MIN_CONFIDENCE`, so they
    never change how sure another one is. Callers see the order of `answer`, which sorts again.
    """
    ranked = _ranked(case, propose_changes(case), calibration)
    if case.siblings and not any(each.estimate.probability >= MIN_CONFIDENCE for each in ranked):
        return _ranked(case, propose_as_siblings(case), calibration)
    return ranked


def _ranked(
    case: Case, proposals: Iterable[Proposal], calibration: Calibration
) -> list[RankedProposal]:
    check = None if case.schema is None else check_of(case.schema)
    likeliest: dict[str, tuple[float, Proposal]] = {}
    stated: dict[str, Proposal] = {}
    for proposal in proposals:
        if accepts(case, proposal, check):
            own = likelihood(proposal)
            if all(option.is_stated for option in proposal.options):
                known = stated.get(proposal.key)
                if known is None or own > likelihood(known):
                    stated[proposal.key] = proposal
            if proposal.key not in likeliest or own > likeliest[proposal.key][0]:
                likeliest[proposal.key] = own, proposal
    by_evidence = sorted(likeliest.values(), key=lambda each: (-each[0], each[1].key))
    refused = -1.0
    if case.schema is not None and by_evidence:
        refused = float(check is not None and not fits_schema(check, case.parameters))
    grounds = grounds_of(case)
    ranked = []
    for place, (own, proposal) in enumerate(by_evidence[:_MOST_JUDGED]):
        rival = by_evidence[1 if place == 0 else 0][0] if len(by_evidence) > 1 else 0.0
        account = account_of(case.parameters, proposal.parameters, grounds)
        odds = log(own / (1 - own)), log(own / (own + rival))
        weighed = Weighed(proposal, account, *odds, bound(proposal), refused)
        judged = _judged(case, weighed, calibration)
        said = stated.get(proposal.key)
        if said is not None and said is not proposal:
            likely = likelihood(said)
            odds = log(likely / (1 - likely)), log(likely / (likely + rival))
            weighed = Weighed(said, account, *odds, bound(said), refused)
            judged = _stays_stated(_judged(case, weighed, calibration), judged)
        ranked.append(judged)
    ranked.sort(key=lambda each: (-each.estimate.shipped, each.proposal.key))
    return ranked


def _stays_stated(stated: RankedProposal, learned: RankedProposal) -> RankedProposal:
    """Return what error or schema states, with what others did as further evidence.

    The surer of both.
    """
    first, *rest = stated.proposal.options
    of = learned.proposal.options
    told = replace(
        first,
        repairs=max(option.repairs for option in of),
        successes=max(option.successes for option in of),
        failures=max(option.failures for option in of),
        failed=max(option.failed for option in of),
        share=next((option.share for option in of if option.share), None),
        execution_ids=tuple(dict.fromkeys(each for option in of for each in option.execution_ids)),
        sources=tuple(dict.fromkeys((*first.sources, "repairs"))),
        menders=frozenset.intersection(*(option.menders for option in of)),
        reporters=frozenset.intersection(*(option.reporters for option in of)),
    )
    doubt = max(stated.proposal.doubt, learned.proposal.doubt)
    proposal = replace(stated.proposal, options=(told, *rest), doubt=doubt)
    estimate = max(stated.estimate, learned.estimate, key=lambda each: each.probability)
    return replace(stated, proposal=proposal, estimate=estimate)


def _judged(case: Case, weighed: Weighed, calibration: Calibration) -> RankedProposal:
    proposal, account = weighed.proposal, weighed.account
    signals = signals_of(case, weighed)
    learned = is_learned(proposal)
    if learned:
        told = dict(zip(SIGNALS, signals, strict=True))
        told["unlikely"] = min(0.0, weighed.odds - _LIKELY)
        score = calibration.score_signals(told)
        score = min(score, log_odds(weighed.bound))
    else:
        score = shipped_model().log_odds(signals)
    estimate = calibration.estimate_probability(score, _Z * _SPREAD * _deviation(proposal))
    share = _AFTER_A_FAILURE**proposal.doubt * _share(account, learned=learned)
    if not learned and _is_beyond(case, proposal):
        share *= _EVEN
    return RankedProposal(proposal, account, signals, estimate.scale_down(share))


def _is_beyond(case: Case, proposal: Proposal) -> bool:
    """Return whether a value stays that the error states to be beyond a bound: it comes back."""
    return any(
        fault.kind == "out_of_range"
        and bool(fault.path)
        and not fault.from_schema
        and same_json(
            value_at(case.parameters, fault.path), value_at(proposal.parameters, fault.path)
        )
        for fault in case.faults
    )


def _share(account: CallAccount, *, learned: bool) -> float:
    """Return what of a probability is left for values and names that nothing explains."""
    share = 0.5 if account.unexplained else 1.0
    if learned:
        return share
    if any(value.key == "none" for value in account.values):
        share *= 0.5
    for value in account.questions:
        share /= 1 + len(value.rivals)
    return share


def is_learned(proposal: Proposal) -> bool:
    """Return whether several repaired such a call so, or all of it was repaired so before."""
    options = proposal.options
    return any(option.share for option in options) or all(option.repairs for option in options)


def likelihood(proposal: Proposal) -> float:
    """Return the probability, in (0, 1), that all options are right.

    The product of their Beta means.
    """
    return min(1 - _LEAST, max(_LEAST, prod(option.evidence.mean for option in proposal.options)))


def bound(proposal: Proposal) -> float:
    """Return what a confidence is at most, in (0, 1].

    A value that neither call nor tool says, but session, context or others' calls, is no surer than
    the low end of what the record of where it comes from states.
    """
    found = (
        option.evidence
        for option in proposal.options
        if _FOUND.issuperset(option.sources) and _puts_anew(option)
    )
    # Where the mean of the evidence is below one half, the mean itself is the bound.
    return min((max(lower_bound(each, _Z), min(each.mean, _EVEN)) for each in found), default=1.0)


def _puts_anew(option: Option) -> bool:
    """Return whether a value is put in that is neither nearly what was sent nor learned for it."""
    return any(isinstance(edit, Add | FromContext) for edit in option.edits) or (
        ((option.repairs == 1 and option.share is None) or "repairs" not in option.sources)
        and any(isinstance(edit, Replace) and not _is_like(edit) for edit in option.edits)
    )


def _is_like(edit: Replace) -> bool:
    texts = isinstance(edit.before, str) and isinstance(edit.value, str)
    near = nearest_value(str(edit.before), [str(edit.value)]) if texts else None
    # One that goes on or ends before is another one.
    return near is not None and near[1] in ("same", "slip")


def _deviation(proposal: Proposal) -> float:
    variance = 0.0
    for option in proposal.options:
        right, wrong = max(option.evidence.right, 0.1), max(option.evidence.wrong, 0.1)
        variance += (right + wrong) / (right * wrong * (right + wrong + 1))
    return sqrt(variance)
