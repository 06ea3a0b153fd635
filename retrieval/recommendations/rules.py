"""What makes a recommendation: how much evidence, how sure, and what each kind of it weighs."""

from dataclasses import dataclass, field, replace

from retrieval.boundaries.cohesion import CohesionRules


@dataclass(frozen=True, slots=True)
class RecommendationRules:
    """The figures of all kinds but `review_promotion`, which has those of `fitness.promoted`.

    Args:
        tolerated_rate: share of calls, 0 to 1, that may fail, or be of little use, with no word
            about it. Seed 004 leaves tools that fail less than 5 % of the time alone.
        prior_calls: calls that the prior is worth; its mean is `tolerated_rate`. Few, for a tool
            that is called once a day still has something to say.
        min_confidence: probability from which on a matter is told, as for promotions.
        min_failures: failures of the implementation; as many as make a cohesion warning.
        min_complaints: events that speak of little use; one is no repetition.
        min_points: what these must weigh together, by the weights below and without their age:
            two corrections, three referrals, six weak successes.
        own_word: points of a tool's own `low_utility`.
        correction: points of a user's correction: 3 to 1 (4-rules.md).
        weak_success: points of a success that is empty or calls itself weak. Half of the tool's
            own word, for an empty answer is often the right one.
        cohesion: what makes a cohesion warning.
    """

    tolerated_rate: float = 0.05
    prior_calls: float = 10.0
    min_confidence: float = 0.95
    min_failures: int = 5
    min_complaints: int = 2
    min_points: float = 3.0
    own_word: float = 1.0
    correction: float = 3.0
    weak_success: float = 0.5
    cohesion: CohesionRules = field(default_factory=CohesionRules)


RULES = RecommendationRules()
"""For evidence that nobody has acted on."""


def rules_for(cohesion: CohesionRules) -> RecommendationRules:
    """The rules where a cohesion warning is made so, and a correction weighs as much there."""
    return replace(RULES, cohesion=cohesion, correction=cohesion.correction_weight)


def rules_of_return(rules: RecommendationRules) -> RecommendationRules:
    """The rules for evidence later than a matter was done.

    It was real once, so that less says that it is back; two events at least, for a single one may
    be a stray.
    """
    return replace(
        rules,
        min_confidence=0.8,
        min_failures=2,
        min_points=2.0,
        cohesion=replace(rules.cohesion, min_failures=2, min_confidence=0.5),
    )
