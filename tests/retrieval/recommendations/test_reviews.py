"""What was done about a recommendation, and evidence that fades or returns."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from aftercall.models import Recommendation
from mongo.contents import StoredRecommendation
from retrieval.answers.recommendations.queue import Reviews
from tests.retrieval.recommendations.health_samples import NOW, TOOL, Story, around, queue

CHANGED = NOW - timedelta(days=1)


def review(found: Recommendation, state: Any, at: datetime = CHANGED) -> Reviews:
    """What somebody said of it a day ago, unless said otherwise."""
    data = found.model_dump_json().encode()
    key = found.recommendation_id
    return {key: StoredRecommendation("w", key, state, at, data, reason="because")}


def shown(story: Story, kind: str, times: int, days_ago: float = 0.0) -> Story:
    """What a recommendation of the kind rests on, so many times."""
    for _ in range(times):
        if kind == "repair":
            story.own_failure(days_ago=days_ago)
        elif kind == "split":
            story.refuses(["transport", "extraction"], days_ago=days_ago)
        else:
            story.correction(days_ago=days_ago)
    return story


def before(kind: str) -> Story:
    """Ample evidence of five days ago."""
    return shown(Story().successes(20, days_ago=5), kind, 8, days_ago=5)


KINDS = ["repair", "tighten_contract", "split"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_opens_again_when_its_evidence_returns(kind: str) -> None:
    """Not by what was known then, not by a single stray; by a few events after it."""
    story = before(kind)
    [found] = queue(around(), (TOOL, story))
    assert found.kind == kind
    done = around(reviews=review(found, "done"))
    states = []
    for times in range(5):
        [now] = queue(done, (TOOL, shown(story.copy(), kind, times)))
        states.append((now.state, now.reopened))
    assert states[:2] == [("done", False), ("done", False)]
    assert states[-1] == ("open", True)
    assert states == sorted(states)
    [back] = queue(done, (TOOL, shown(story.copy(), kind, 4)))
    assert back.recommendation_id == found.recommendation_id


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_that_is_ahead_opens_nothing_again(kind: str) -> None:
    """Evidence of tomorrow that was known when it was done; more of it is new."""
    story = shown(Story(now=NOW + timedelta(hours=23)).successes(20), kind, 8)
    [found] = queue(around(), (TOOL, story))
    done = around(reviews=review(found, "done", NOW))
    [now] = queue(done, (TOOL, story))
    assert (now.state, now.reopened) == ("done", False)
    later = Story(story.copy().known, story.events, NOW + timedelta(hours=23, minutes=1))
    [now] = queue(done, (TOOL, shown(later, kind, 4)))
    assert now.reopened


def test_a_few_failures_among_many_calls_do_not_open_a_repair_again() -> None:
    """It has to stand by its rate, as at first."""
    story = before("repair")
    [found] = queue(around(), (TOOL, story))
    done = around(reviews=review(found, "done"))
    [now] = queue(done, (TOOL, shown(story.successes(300), "repair", 3)))
    assert now.state == "done"


@pytest.mark.parametrize("state", ["taken", "dismissed"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_or_dismissed_stays_so(kind: str, state: str) -> None:
    """More of the same is no answer to the reason that was given."""
    story = before(kind)
    [found] = queue(around(), (TOOL, story))
    touched = around(reviews=review(found, state))
    [now] = queue(touched, (TOOL, shown(story, kind, 20)))
    assert (now.state, now.reopened, now.state_reason) == (state, False, "because")
    assert now.priority > found.priority


def test_a_snapshot_is_redacted_when_it_is_shown() -> None:
    """Rules of redaction may have grown since it was stored."""
    [found] = queue(around(), (TOOL, before("repair")))
    said = "my token is sk-live-abcdefghijklmnop1234"
    evidence = found.evidence.model_copy(update={"quotes": [said]})
    leaky = found.model_copy(update={"message": said, "evidence": evidence})
    [shown] = queue(around(reviews=review(leaky, "done")))
    assert "abcdefghijklmnop" not in shown.model_dump_json()
