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
    ranked = []
    for proposal in by_evidence[:_MOST_JUDGED]:
        account = account_of(case.parameters, proposal.parameters, grounds)
        rival = next((likelihood(each) for each in by_evidence if each is not proposal), 0.0)
        weighed = _weigh(proposal, account, rival, refused)
        judged = _judge_weighed(case, weighed, scaling)
        said = stated.get(proposal.key, proposal)
        if said is not proposal:
            weighed = _weigh(said, account, rival, refused)
            judged = _stays_stated(_judge_weighed(case, weighed, scaling), judged)
        ranked.append(judged)
    ranked.sort(key=lambda each: (-each.estimate.shipped, each.proposal.key))
    return ranked


def _keep_likeliest(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return the likeliest proposal of each parameters, the likeliest of all first."""
    kept: dict[str, Proposal] = {}
    for proposal in proposals:
        known = kept.get(proposal.key)
        if known is None or likelihood(proposal) > likelihood(known):
            kept[proposal.key] = proposal
    return sorted(kept.values(), key=lambda each: (-likelihood(each), each.key))


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


def _judge_weighed(case: Case, weighed: Weighed, scaling: Scaling) -> RankedProposal:
    proposal, signals = weighed.proposal, signals_of(case, weighed)
    spread = _Z * _SPREAD * _deviation(proposal)
    estimate = scaling.estimate_probability(shipped_model().log_odds(signals), spread)
    return RankedProposal(proposal, weighed.account, signals, estimate)


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
