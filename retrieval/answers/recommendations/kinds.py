"""The kinds of recommendations, each made of the evidence about one tool or promotion. Pure.

- `repair`: the implementation fails, more often than is tolerated.
- `tighten_contract`: answers are of little use, and no constraint of the contract states so.
- `split` and `recompose`: a tool is asked to do several jobs.
- `review_promotion`: a promoted version fails more than the original did.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeVar, get_args

from aftercall import models as m
from mongo.records import ToolKey
from retrieval.answers.advice.other_tools import names_said
from retrieval.answers.fitness.score import PENALTIES
from retrieval.answers.health_report import WEAK_WEIGHT
from retrieval.answers.recommendations.evidence import (
    ScoredPart,
    Subject,
    count_things,
    id_of_matter,
    make_recommendation,
)
from retrieval.knowledge.beta import Beta
from retrieval.knowledge.patterns.cohesion import CohesionRules
from retrieval.knowledge.reading.signature import signature_of
from retrieval.knowledge.rows.health import (
    OWN_FAILURES,
    Corrected,
    Marked,
    OwnFailure,
    Referred,
    Tally,
    Weak,
    decayed_weight,
)
from retrieval.knowledge.rows.registry import Registry

EventT = TypeVar("EventT", bound=OwnFailure | Marked | Referred | Weak | Corrected)
MAX_SPLITS = 5
MAX_PARTS = 10
MAX_AXES_SHOWN = 10
MAX_OTHER_TOOLS = 5
TOLERATED_RATE = 0.05
"""Share of calls that may fail, or be of little use, with no word about it (seed 004)."""
PRIOR_CALLS = 10.0
"""Calls that the prior is worth; its mean is the tolerated rate. Few, for a tool that is called
once a day still has something to say."""
MIN_COMPLAINTS = 2
"""Events that speak of little use; one is no repetition."""
MIN_CONFIDENCE = 0.95
"""Probability from which on a matter is shown, as for promotions."""
MIN_FAILURES = 5
"""Failures of the implementation; as many as make a cohesion warning."""
MIN_POINTS = 3.0
"""What complaints must weigh together, as `health.report` weighs them and without their age: two
corrections, three referrals, six weak successes."""
_WHAT = {
    "execution": "execution failure",
    "contract_violation": "contract violation",
    "timeout": "timeout",
}
_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"the result is an empty list$"), "`min_items: 1`"),
    (re.compile(r"the result is an empty (?:text|object)$"), "`non_empty: true`"),
    (re.compile(r"there is nothing in .+$"),
     "`non_empty` with that key (or `min_items: 1` for a list)"),
    (re.compile(r"the tool calls it"),
     "a `json_schema` with an `enum` of the statuses that are a real success"),
)  # fmt: skip
"""In this order: what is empty is seen more surely than what a status means."""
_ANY = "`min_items`, `non_empty` or `required`"


def _named_in(parts: Sequence[str], registry: Registry, besides: ToolKey) -> list[str]:
    """Ids of tools that a split's parts name, by id, name or in words, in their order; a few."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for tool_id, each in sorted(registry.by_id.items()) if parts else ():
        for name in {tool_id.casefold(), each.tool.name.casefold()}:
            by_name[name] += [tool_id] if each.tool_key != besides else []
    said = (name for part in parts for name in (part.strip(), *names_said(part)))
    found = dict.fromkeys(each for name in said for each in by_name.get(name.casefold(), ()))
    return list(found)[:MAX_OTHER_TOOLS]


def repair_of(subject: Subject) -> m.Recommendation | None:
    """Return what to repair, when it is sure that the implementation fails more than is tolerated.

    A call counts as a trial of the implementation when it succeeded or failed by the tool's own
    fault; a refused parameter or a referral states nothing about it. Failures that were marked
    count too, those of calls that no one recorded: whole, a half or a tenth, by the severity as
    seed 002 weighs it. All are recency-weighted.
    """
    parts = [
        ScoredPart(_WHAT.get(category, category), tally)
        for category, tally in sorted(subject.known.categories.items())
        if category in OWN_FAILURES
    ]
    for severity in get_args(m.Severity):
        marks = [each.at for each in subject.known.marks if each.severity == severity]
        if marks:
            share = PENALTIES[severity] / PENALTIES["high"]
            parts.append(ScoredPart(f"{severity} mark", Tally.from_moments(marks), share))
    count = sum(part.tally.count for part in parts)
    weight = sum(part.weight_now(subject.now) for part in parts)
    good = subject.known.successes.weight_at(subject.now)
    if count < MIN_FAILURES or (confidence := _too_many(weight, good)) < MIN_CONFIDENCE:
        return None
    said = _one_of_each(subject)
    trials = count + subject.known.successes.count
    ranked = sorted(parts, key=lambda part: (-part.weight_now(subject.now), part.what))
    told = ", ".join(count_things(part.tally.count, part.what) for part in ranked)
    message = (
        f"repair {subject.name}: {count:,} of {count_things(trials, 'call')} failed by its own "
        f"fault ({told})"
    )
    if said:
        message += f"; it says {subject.words.quote_text(said[0].message, 160)}"
    return make_recommendation(
        subject,
        "repair",
        message,
        parts=parts,
        confidence=confidence,
        events=[(each.at, each.execution_id) for each in subject.known.own_failures],
        quotes=[each.message for each in said],
    )


def _latest_first(events: Sequence[EventT]) -> list[EventT]:
    # Of the same moment the one that was remembered last.
    return sorted(events, key=lambda each: each.at)[::-1]


def _one_of_each(subject: Subject) -> list[OwnFailure | Marked]:
    """Return the latest failure of each signature, the weightiest first; of those with words."""
    weights: dict[str, float] = defaultdict(float)
    latest: dict[str, OwnFailure | Marked] = {}
    signatures: dict[str, str] = {}  # of each message once, for most are the same
    said: list[OwnFailure | Marked] = [*subject.known.own_failures, *subject.known.marks]
    for each in _latest_first(said):
        if each.message:
            signature = signatures.get(each.message) or signature_of(each.message)
            signatures[each.message] = signature
            weights[signature] += decayed_weight(subject.now, each.at)
            latest.setdefault(signature, each)
    return [latest[each] for each in sorted(weights, key=lambda each: (-weights[each], each))]


def tighten_of(subject: Subject, rules: CohesionRules) -> m.Recommendation | None:
    """Return what to demand of the results, when it is sure that too many are of little use.

    A user's correction, the tool's own `low_utility` and weak successes weigh as in `health`.
    Answers that no one complained of are the trials that went well. Corrections count as far as
    they are remembered one by one.
    """
    known = subject.known
    now = subject.now
    latest: dict[str, Corrected] = {}
    for each in _latest_first(known.recent_corrections):
        if each.kind == "low_utility":
            latest.setdefault(each.execution_id, each)  # of each call one
    corrections = list(latest.values())
    corrected = Tally.from_moments(each.at for each in corrections)
    parts = [
        ScoredPart("user correction", corrected, rules.correction_weight),
        ScoredPart("low-utility answer", known.categories.get("low_utility", Tally())),
        ScoredPart("weak success", known.weak, WEAK_WEIGHT),
    ]
    count = sum(part.tally.count for part in parts)
    points = sum(part.tally.count * part.points for part in parts)
    bad = sum(part.weight_now(now) for part in parts)
    complaints = known.weak.weight_at(now) + corrected.weight_at(now)
    good = max(0.0, known.successes.weight_at(now) - complaints)
    is_enough = count >= MIN_COMPLAINTS and points >= MIN_POINTS
    if not is_enough or (confidence := _too_many(bad, good)) < MIN_CONFIDENCE:
        return None
    referrals = [each for each in known.referrals if each.kind == "low_utility"]
    said: list[Corrected | Referred] = [*corrections, *referrals]
    told = ", ".join(
        count_things(part.tally.count, part.what) for part in parts if part.tally.count
    )
    demand = f"say in its deliverable what makes an answer useful, such as {_ANY}"
    if reasons := Counter(each.why for each in known.recent_weak):
        why = max(reasons, key=lambda each: (reasons[each], each))
        hint = next((hint for pattern, hint in _HINTS if pattern.search(why)), _ANY)
        demand = (
            f"mostly {subject.words.quote_text(why)}, which {hint} in its deliverable would catch"
        )
    words = [
        f"tighten the contract of {subject.name}: its answers are of little use "
        f"({told} in {count_things(subject.calls, 'call')})",
        demand,
    ]
    if corrections:
        words.append(f"a user said {subject.words.quote_text(corrections[0].text, 160)}")
    return make_recommendation(
        subject,
        "tighten_contract",
        "; ".join(words),
        parts=parts,
        confidence=confidence,
        events=[(each.at, each.execution_id) for each in (*said, *known.recent_weak)],
        quotes=[
            *(each.text for each in corrections),
            *(each.evidence or each.message for each in _latest_first(referrals)),
            *(each.why for each in _latest_first(known.recent_weak)),
        ],
    )


def split_of(subject: Subject, registry: Registry, rules: CohesionRules) -> m.Recommendation | None:
    """To split the tool, or to recompose where a proposed split names others for its jobs."""
    if not subject.cohesion.warning:
        return None
    referrals = [each for each in subject.known.referrals if each.kind == "wrong_tool_boundary"]
    corrections = [
        each for each in subject.known.recent_corrections if each.kind == "wrong_tool_boundary"
    ]
    said: list[Corrected | Referred] = [*referrals, *corrections]
    splits = _proposed_splits(subject, referrals)
    others = _named_in([part for split in splits for part in split], registry, subject.tool)
    axes = [each for each in subject.cohesion.axes if each.share >= rules.min_share]
    points = rules.correction_weight
    quote_text = subject.words.quote_text
    jobs = " and ".join(f"{quote_text(each.name)} ({each.share:.0%})" for each in axes[:2])
    failures = count_things(subject.cohesion.failures, "boundary failure")
    words = [f"is asked to do several jobs: its {failures} name {jobs}"]
    if splits:
        words.append(f"it proposes {' + '.join(quote_text(part) for part in splits[0])}")
    if others:
        listed = " and ".join(quote_text(each) for each in others[:2])
        words.append(f"{listed} can do one of them already")
    kind: m.RecommendationKind = "recompose" if others else "split"
    found = make_recommendation(
        subject,
        kind,
        f"{kind} {subject.name}, which {'; '.join(words)}",
        parts=[
            ScoredPart(
                "boundary failure", subject.known.categories.get("wrong_tool_boundary", Tally())
            ),
            ScoredPart(
                "user correction", Tally.from_moments(each.at for each in corrections), points
            ),
        ],
        confidence=subject.cohesion.confidence,
        events=[(each.at, each.execution_id) for each in said],
        quotes=[
            *(each.text for each in _latest_first(corrections)),
            *(each.evidence or each.message for each in _latest_first(referrals)),
        ],
    )
    evidence = found.evidence.model_copy(
        update={
            "axes": list(subject.cohesion.axes)[:MAX_AXES_SHOWN],
            "suggested_splits": splits,
            "other_tools": others,
        }
    )
    return found.model_copy(update={"evidence": evidence})


def _proposed_splits(subject: Subject, referrals: Sequence[Referred]) -> list[list[str]]:
    """Return what the tool proposed, the weightiest proposal first.

    Case and spacing make no odds.
    """
    weights: dict[tuple[str, ...], float] = defaultdict(float)
    spelled: dict[tuple[str, ...], list[str]] = {}
    for each in referrals:
        parts = [part for part in each.split if part.strip()][:MAX_PARTS]
        if parts:
            key = tuple(" ".join(part.casefold().split()) for part in parts)
            weights[key] += decayed_weight(subject.now, each.at)
            spelled[key] = [subject.words.bound_text(part) for part in parts]
    ranked = sorted(weights, key=lambda key: (-weights[key], key))
    return [spelled[key] for key in ranked[:MAX_SPLITS]]


def review_of(workspace: str, status: m.PromotionStatus) -> m.Recommendation | None:
    """Return what to show the builder of the tool; None while the promotion does well enough.

    The priority is how many calls failed beyond what the original's rate would have made of them,
    times the probability. The record of a version does not fade while the version is in force.
    """
    if not status.fails_more:
        return None
    evolved = status.evolved
    original = status.original
    calls = evolved.successes + evolved.failures
    rate = original.failures / max(1, original.successes + original.failures)
    return m.Recommendation(
        recommendation_id=id_of_matter("review_promotion", workspace, status.namespace),
        kind="review_promotion",
        namespace=status.namespace,
        message=(
            f"version {status.evolved_version} of {status.namespace!r} fails more often than "
            f"{status.original_version} did: {_failure_rate(evolved)} against "
            f"{_failure_rate(original)}; look at its failures, evolve it, "
            "or roll the promotion back"
        ),
        confidence=status.probability,
        priority=round(max(0.0, evolved.failures - calls * rate) * status.probability, 4),
        evidence=m.RecommendationEvidence(
            counts=[
                m.EvidenceCount(
                    what="failures of the promoted version",
                    count=evolved.failures,
                    weight=float(evolved.failures),
                )
            ],
            calls=calls,
            promotion=status,
        ),
        first_seen=status.promoted_at,
    )


def _failure_rate(trials: m.VersionTrials) -> str:
    return f"{trials.failures} of {trials.successes + trials.failures} calls"


def _too_many(bad: float, good: float) -> float:
    """Return the probability, in [0, 1], of a true rate above `TOLERATED_RATE`.

    The prior is a Beta of that mean which is worth `PRIOR_CALLS` trials. Counts may be weighted.
    """
    prior = TOLERATED_RATE * PRIOR_CALLS
    return 1 - Beta(bad + prior, good + PRIOR_CALLS - prior).probability_below(TOLERATED_RATE)
