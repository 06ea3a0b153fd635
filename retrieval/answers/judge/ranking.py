"""Ranking: the proposals for a case with the judge's probability of each, surest first.

A proposal must fit schema and error, and must not be known to fail. The model (`judge.model`)
judges each by its signals, whether error, schema, session or other callers' repairs state it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log, prod, sqrt

from retrieval.answers.judge.acceptance import accepts, check_of, fits_schema
from retrieval.answers.judge.model import shipped_model
from retrieval.answers.judge.signals import Weighed, signals_of
from retrieval.answers.proposers.case import Case, Option
from retrieval.answers.proposers.compose import Proposal, propose_as_siblings, propose_changes
from retrieval.answers.proposers.grounds import grounds_of
from retrieval.knowledge.calls.account import CallAccount
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.confidence import MIN_CONFIDENCE, Estimate, Scaling, lower_bound
from retrieval.knowledge.rewrites.edits import Add, FromContext, Replace
from retrieval.knowledge.values.likeness import nearest_value

_Z = 1.645
"""Of the two-sided 90 % interval."""
_LEAST = 0.005
_MOST_JUDGED = 6
"""Proposals of one case that are judged, those with the most evidence."""
_EVEN = 0.5
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


def judge(case: Case, scaling: Scaling) -> list[RankedProposal]:
    """Return the proposals that fit schema and error, each parameters once, surest first.

    Repairs of sibling tools are tried only where no own proposal reaches `MIN_CONFIDENCE`, so they
    never change how sure another one is. Callers see the order of `answer`, which sorts again.
    """
    ranked = _rank_proposals(case, propose_changes(case), scaling)
    if case.siblings and not any(each.estimate.probability >= MIN_CONFIDENCE for each in ranked):
        return _rank_proposals(case, propose_as_siblings(case), scaling)
    return ranked


def _rank_proposals(
    case: Case, proposals: Iterable[Proposal], scaling: Scaling
) -> list[RankedProposal]:
    check = None if case.schema is None else check_of(case.schema)
    accepted = [proposal for proposal in proposals if accepts(case, proposal, check)]
    if not accepted:
        return []
    by_evidence = _keep_likeliest(accepted)
    stated = {each.key: each for each in _keep_likeliest(filter(_is_stated, accepted))}
    refused = -1.0
    if case.schema is not None:
        refused = float(check is not None and not fits_schema(check, case.parameters))
    grounds = grounds_of(case)
    likeliest = likelihood(by_evidence[0])
    second = likelihood(by_evidence[1]) if len(by_evidence) > 1 else 0.0
    ranked = []
    for place, proposal in enumerate(by_evidence[:_MOST_JUDGED]):
        account = account_of(case.parameters, proposal.parameters, grounds)
        rival = likeliest if place else second
        weighed = _weigh(proposal, account, rival, refused)
        judged = _judge_weighed(case, weighed, scaling)
        as_stated = stated.get(proposal.key, proposal)
        if as_stated is not proposal:
            weighed = _weigh(as_stated, account, rival, refused)
            judged = _stays_stated(_judge_weighed(case, weighed, scaling), judged)
        ranked.append(judged)
    ranked.sort(key=lambda each: (-each.estimate.shipped, each.proposal.key))
    return ranked


def _keep_likeliest(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return the likeliest proposal of each parameters, the likeliest of all first."""
    by_likelihood = sorted(proposals, key=lambda each: (-likelihood(each), each.key))
    kept: dict[str, Proposal] = {}
    for proposal in by_likelihood:
        kept.setdefault(proposal.key, proposal)
    return list(kept.values())


def _is_stated(proposal: Proposal) -> bool:
    return all(option.is_stated for option in proposal.options)


def _weigh(proposal: Proposal, account: CallAccount, rival: float, refused: float) -> Weighed:
    """Return a proposal with its odds, alone and next to its likeliest rival (0: none)."""
    likely = likelihood(proposal)
    odds = log(likely / (1 - likely))
    lead = log(likely / (likely + rival))
    return Weighed(proposal, account, odds, lead, bound(proposal), refused)


def _stays_stated(stated: RankedProposal, learned: RankedProposal) -> RankedProposal:
    """Return what error or schema states, with what others did as further evidence.

    The surer of both.
    """
    first, *rest = stated.proposal.options
    sources = dict.fromkeys((*first.sources, "repairs"))
    repaired, *others = learned.proposal.options
    for other in others:
        repaired = _join_evidence(repaired, other)
    known = replace(
        first,
        repairs=repaired.repairs,
        successes=repaired.successes,
        failures=repaired.failures,
        failed=repaired.failed,
        share=repaired.share or None,
        execution_ids=tuple(dict.fromkeys(repaired.execution_ids)),
        sources=tuple(sources),
        menders=repaired.menders,
        reporters=repaired.reporters,
    )
    doubt = max(stated.proposal.doubt, learned.proposal.doubt)
    proposal = replace(stated.proposal, options=(known, *rest), doubt=doubt)
    estimate = max(stated.estimate, learned.estimate, key=lambda each: each.probability)
    return replace(stated, proposal=proposal, estimate=estimate)


def _join_evidence(one: Option, other: Option) -> Option:
    """Return an option with the evidence of both: what all of it is known to have done."""
    return replace(
        one,
        repairs=max(one.repairs, other.repairs),
        successes=max(one.successes, other.successes),
        failures=max(one.failures, other.failures),
        failed=max(one.failed, other.failed),
        share=one.share or other.share,
        execution_ids=(*one.execution_ids, *other.execution_ids),
        menders=one.menders & other.menders,
        reporters=one.reporters & other.reporters,
    )


def _judge_weighed(case: Case, weighed: Weighed, scaling: Scaling) -> RankedProposal:
    signals = signals_of(case, weighed)
    log_odds = shipped_model().log_odds(signals)
    spread = _Z * _SPREAD * _deviation(weighed.proposal)
    estimate = scaling.estimate_probability(log_odds, spread)
    return RankedProposal(weighed.proposal, weighed.account, signals, estimate)


def likelihood(proposal: Proposal) -> float:
    """Return the probability, in (0, 1), that all options are right.

    The product of their Beta means.
    """
    product = prod(option.evidence.mean for option in proposal.options)
    return min(1 - _LEAST, max(_LEAST, product))


def bound(proposal: Proposal) -> float:
    """Return what a confidence is at most, in (0, 1].

    A value that session, context or others' calls state, not call or tool, is no surer than
    the low end of what the record of where it comes from states.
    """
    least = 1.0
    for option in proposal.options:
        if _FOUND.issuperset(option.sources) and _puts_other_value(option):
            # Where the mean of the evidence is below one half, the mean itself is the bound.
            mean = min(option.evidence.mean, _EVEN)
            least = min(least, max(mean, lower_bound(option.evidence, _Z)))
    return least


def _puts_other_value(option: Option) -> bool:
    """Return whether a value is put in that is neither nearly what was sent nor learned for it."""
    if any(isinstance(edit, Add | FromContext) for edit in option.edits):
        return True
    is_learned = "repairs" in option.sources
    if is_learned and (option.repairs != 1 or option.share is not None):
        return False
    return any(isinstance(edit, Replace) and not _is_like(edit) for edit in option.edits)


def _is_like(edit: Replace) -> bool:
    if not isinstance(edit.before, str) or not isinstance(edit.value, str):
        return False
    near = nearest_value(edit.before, [edit.value])
    # One that goes on or ends before is another one.
    return near is not None and near[1] in ("same", "slip")


def _deviation(proposal: Proposal) -> float:
    variance = 0.0
    for option in proposal.options:
        right = max(option.evidence.right, 0.1)
        wrong = max(option.evidence.wrong, 0.1)
        total = right + wrong
        variance += total / (right * wrong * (total + 1))
    return sqrt(variance)
