"""`tighten_contract`: answers are of little use, and no constraint of the contract says so."""

from aftercall.models import Recommendation
from retrieval.credibility import probability_above
from retrieval.health.record import Corrected, Referred, Tally
from retrieval.recommendations.constraints import constraint_for
from retrieval.recommendations.rules import RecommendationRules
from retrieval.recommendations.subject import (
    Part,
    Subject,
    latest_first,
    recommendation,
    tally_of,
    times,
)


def tighten_of(subject: Subject, rules: RecommendationRules) -> Recommendation | None:
    """What to demand of the results, when it is sure that too many are of little use.

    A user's correction, the tool's own `low_utility` and weak successes weigh as the rules say.
    Answers that nobody complained of are the trials that went well. Corrections count as far as
    they are remembered one by one.
    """
    known, now = subject.known, subject.now
    corrections = _corrections(subject)
    corrected = Part("user correction", tally_of(each.at for each in corrections), rules.correction)
    low_utility = known.categories.get("low_utility", Tally())
    referred = Part("low-utility answer", low_utility, rules.own_word)
    weak = Part("weak success", known.weak, rules.weak_success)
    parts = [corrected, referred, weak]
    if (
        sum(part.tally.count for part in parts) < rules.min_complaints
        or sum(part.tally.count * part.points for part in parts) < rules.min_points
    ):
        return None
    complaints = weak.tally.weight_at(now) + corrected.tally.weight_at(now)
    confidence = probability_above(
        rules.tolerated_rate,
        bad=sum(part.weight(now) for part in parts),
        good=max(0.0, known.successes.weight_at(now) - complaints),
        prior_trials=rules.prior_calls,
    )
    if confidence < rules.min_confidence:
        return None
    referrals = [each for each in known.referrals if each.kind == "low_utility"]
    said: list[Corrected | Referred] = [*corrections, *referrals]
    return recommendation(
        subject,
        "tighten_contract",
        _message(subject, parts, corrections),
        parts=parts,
        confidence=confidence,
        events=[(each.at, each.execution_id) for each in (*said, *known.recent_weak)],
        quotes=_quotes(subject, corrections, referrals),
    )


def _corrections(subject: Subject) -> list[Corrected]:
    """Those that say that an answer was of little use, of each call the latest; latest first."""
    latest: dict[str, Corrected] = {}
    for each in latest_first(subject.known.recent_corrections):
        if each.kind == "low_utility":
            latest.setdefault(each.execution_id, each)
    return list(latest.values())


def _message(subject: Subject, parts: list[Part], corrections: list[Corrected]) -> str:
    told = ", ".join(times(part.tally.count, part.what) for part in parts if part.tally.count)
    words = [
        f"tighten the contract of {subject.name}: its answers are of little use "
        f"({told} in {times(subject.calls, 'call')})",
        constraint_for(subject.known.recent_weak, subject.words),
    ]
    if corrections:
        words.append(f"a user said {subject.words.quoted(corrections[0].text, 160)}")
    return "; ".join(words)


def _quotes(subject: Subject, corrections: list[Corrected], referrals: list[Referred]) -> list[str]:
    """What users said, then what the tool said, then why successes are weak; each latest first."""
    return [
        *(each.text for each in corrections),
        *(each.evidence or each.message for each in latest_first(referrals)),
        *(each.why for each in latest_first(subject.known.recent_weak)),
    ]
