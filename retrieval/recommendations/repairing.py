"""`repair`: the implementation fails, more often than is tolerated."""

from collections import defaultdict

from aftercall.models import Recommendation
from retrieval.credibility import probability_above
from retrieval.health.record import OWN_FAILURES, OwnFailure, decay
from retrieval.reading.signature import signature_of
from retrieval.recommendations.rules import RecommendationRules
from retrieval.recommendations.subject import Part, Subject, latest_first, recommendation, times

_WHAT = {
    "execution": "execution failure",
    "contract_violation": "contract violation",
    "timeout": "timeout",
}
"""What the failures are called, in the singular."""


def repair_of(subject: Subject, rules: RecommendationRules) -> Recommendation | None:
    """What to mend, when it is sure that the implementation fails more than is tolerated.

    A call counts as a trial of the implementation when it succeeded or failed by the tool's own
    fault; a refused parameter or a referral says nothing about it. All are recency-weighted.
    """
    parts = [
        Part(_WHAT.get(category, category), tally)
        for category, tally in sorted(subject.known.categories.items())
        if category in OWN_FAILURES
    ]
    count = sum(part.tally.count for part in parts)
    if count < rules.min_failures:
        return None
    weight = sum(part.weight(subject.now) for part in parts)
    confidence = probability_above(
        rules.tolerated_rate,
        bad=weight,
        good=subject.known.successes.weight_at(subject.now),
        prior_trials=rules.prior_calls,
    )
    if confidence < rules.min_confidence:
        return None
    failures = subject.known.own_failures
    said = _one_of_each(subject)
    return recommendation(
        subject,
        "repair",
        _message(subject, parts, count, said),
        parts=parts,
        confidence=confidence,
        events=[(each.at, each.execution_id) for each in failures],
        quotes=[each.message for each in said],
    )


def _message(subject: Subject, parts: list[Part], count: int, said: list[OwnFailure]) -> str:
    trials = count + subject.known.successes.count
    ranked = sorted(parts, key=lambda part: (-part.weight(subject.now), part.what))
    main = ranked[0]
    told = ", ".join(times(part.tally.count, part.what) for part in ranked)
    words = [
        f"repair {subject.name}: {count:,} of {times(trials, 'call')} failed by its own fault "
        f"({told})"
    ]
    if main.what == _WHAT["contract_violation"] and (broken := _most_broken(subject)):
        words.append(broken)
    elif said:
        words.append(f"it says {subject.words.quoted(said[0].message, 160)}")
    return "; ".join(words)


def _one_of_each(subject: Subject) -> list[OwnFailure]:
    """The latest failure of each signature, the weightiest first; of those with words."""
    weights: dict[str, float] = defaultdict(float)
    latest: dict[str, OwnFailure] = {}
    signatures: dict[str, str] = {}  # of each message once, for most are the same
    for each in latest_first(subject.known.own_failures):
        if each.message:
            signature = signatures.get(each.message) or signature_of(each.message)
            signatures[each.message] = signature
            weights[signature] += decay(subject.now, each.at)
            latest.setdefault(signature, each)
    ranked = sorted(weights, key=lambda each: (-weights[each], each))
    return [latest[each] for each in ranked]


def _most_broken(subject: Subject) -> str | None:
    """The way in which results break the contract most."""
    violations = subject.known.violations
    if not violations:
        return None
    main = max(violations, key=lambda each: (each.tally.weight_at(subject.now), each.path))
    quoted = subject.words.quoted
    return (
        f"mostly at {quoted(main.path)}: {quoted(main.mismatch)}, expected {quoted(main.expected)}"
        f" ({times(main.tally.count, 'time')})"
    )
