"""All recommendations about one tool. Pure: plain data in, plain data out."""

from collections.abc import Iterable

from aftercall.models import Recommendation
from retrieval.recommendations.other_tools import ToolNames
from retrieval.recommendations.repairing import repair_of
from retrieval.recommendations.rules import RULES, RecommendationRules
from retrieval.recommendations.splitting import Mixed, split_of
from retrieval.recommendations.subject import Subject
from retrieval.recommendations.tightening import tighten_of


def recommendations_about(
    subject: Subject,
    names: ToolNames,
    mixed: Iterable[Mixed] = (),
    *,
    rules: RecommendationRules = RULES,
) -> list[Recommendation]:
    """What the evidence suggests about a tool, greatest priority first; at most one of each matter.

    Args:
        subject: the tool and its health.
        names: all registered tools, of which some may do one of its jobs.
        mixed: tools of the workspace with a cohesion warning.
        rules: what makes a recommendation.
    """
    found = (
        repair_of(subject, rules),
        tighten_of(subject, rules),
        split_of(subject, names, mixed, rules),
    )
    return by_priority(each for each in found if each is not None)


def by_priority(recommendations: Iterable[Recommendation]) -> list[Recommendation]:
    """Greatest priority first, then by id, so that the order is always the same."""
    return sorted(recommendations, key=lambda each: (-each.priority, each.recommendation_id))
