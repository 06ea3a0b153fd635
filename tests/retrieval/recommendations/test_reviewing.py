"""Promotions that fail more than the originals did."""

from datetime import timedelta

from aftercall.models import PromotionStatus, VersionTrials
from mongo.contents import StoredRecommendation
from retrieval.answers.fitness.promotions import Counts, compare_failures, fails_more
from retrieval.answers.recommendations.kinds import review_of
from retrieval.answers.recommendations.queue import queue_of
from tests.retrieval.recommendations.health_samples import NOW, around


def status(
    evolved: tuple[int, int], original: tuple[int, int] = (57, 3), version: str = "1.1.0"
) -> PromotionStatus:
    """A promotion whose versions had these successes and failures."""
    new, old = Counts(*evolved), Counts(*original)
    return PromotionStatus(
        namespace="translator", evolved_version=version, original_version="1.0.0",
        inherited_quality=0.9, fails_more=fails_more(new, old),
        probability=compare_failures(new, old),
        evolved=VersionTrials(version=version, successes=new.successes, failures=new.failures,
                              quality=0.9),
        original=VersionTrials(version="1.0.0", successes=old.successes, failures=old.failures,
                               quality=0.9),
    )  # fmt: skip


def test_a_review_that_is_done_is_due_again_by_later_failures_or_another_version() -> None:
    """By failures since then; the record of before says nothing new."""
    found = review_of("w", status((28, 12)))
    data, at = found.model_dump_json().encode(), NOW - timedelta(days=1)
    stored = StoredRecommendation("w", found.recommendation_id, "done", at, data)
    done = around(reviews={found.recommendation_id: stored})

    def state(now: PromotionStatus) -> str:
        [each] = queue_of(done, [], [review for review in [review_of("w", now)] if review])
        return each.state

    assert state(status((28, 12))) == "done"
    assert state(status((60, 13))) == "done"
    assert state(status((28, 13))) == "done"  # one may be a stray
    assert state(status((30, 18))) == "open"
    assert state(status((28, 12), version="1.2.0")) == "open"
    assert state(status((28, 0))) == "done"  # it no longer fails more: from the snapshot
