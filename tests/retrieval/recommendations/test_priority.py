"""Priorities: laws that hold for any story of a tool."""

from collections.abc import Callable
from datetime import timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.retrieval.recommendations.health_samples import NOW, Story, about, priority

Event = Callable[[Story, float], Story]

EVENTS: dict[str, Event] = {
    "own failure": lambda story, days: story.own_failure(days_ago=days),
    "timeout": lambda story, days: story.own_failure("took too long", "timeout", days),
    "low utility": lambda story, days: story.low_utility(days),
    "weak success": lambda story, days: story.weak(days),
    "correction": lambda story, days: story.correction(days_ago=days),
    "refusal": lambda story, days: story.refuses(["transport", "extraction"], days),
}

ages = st.floats(0, 20)
stories = st.tuples(
    st.integers(0, 60), st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), ages), max_size=20)
)
"""Successes, and what else happened how many days ago."""


def story_of(told: tuple[int, list[tuple[str, float]]]) -> Story:
    story = Story().successes(told[0])
    for name, days in sorted(told[1], key=lambda each: -each[1]):
        EVENTS[name](story, days)
    return story


def by_kind(story: Story) -> dict[str, float]:
    return {kind: each.priority for kind, each in about(story).items()}


@given(stories, st.sampled_from(sorted(EVENTS)))
def test_more_evidence_never_lowers_a_priority(
    told: tuple[int, list[tuple[str, float]]], name: str
) -> None:
    """Neither of its own kind nor in all."""
    story = story_of(told)
    before = by_kind(story)
    after = by_kind(EVENTS[name](story, 0.0))
    mine = {"own failure": "repair", "timeout": "repair", "refusal": "split"}
    kind = mine.get(name, "tighten_contract")
    assert after.get(kind, 0) >= before.get(kind, 0) - 1e-3  # four digits are told


@given(stories)
def test_a_correction_weighs_as_much_as_three_words_of_the_tool(
    told: tuple[int, list[tuple[str, float]]],
) -> None:
    """At least: the tool's own word is a failure beside its successes, a corrected call was one."""
    story = story_of(told)
    own = story.copy().low_utility().low_utility().low_utility()
    users = story.copy().correction()
    assume("tighten_contract" in by_kind(users))  # a single one of all is no repetition
    assert by_kind(users)["tighten_contract"] >= by_kind(own).get("tighten_contract", 0) - 1e-3


@given(stories, st.floats(0, 60), st.floats(0.01, 60))
def test_evidence_fades(
    told: tuple[int, list[tuple[str, float]]], days: float, more: float
) -> None:
    """Without new events no priority rises, and in the end nothing is recommended."""
    story = story_of(told)
    soon, later = NOW + timedelta(days=days), NOW + timedelta(days=days + more)
    assert priority(story, now=later) <= priority(story, now=soon) + 1e-3
    assert "repair" not in about(story, now=NOW + timedelta(days=200))
    assert "tighten_contract" not in about(story, now=NOW + timedelta(days=200))
