"""Counting answers: at once in memory, then in the store, never twice and never lost on the way."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import AnswerCounts, SuggestResponse
from aftercall.models.calls import Action, ErrorCategory
from mongo.errors import StoreError
from mongo.records import AnswerCount
from mongo.sqlite import open_sqlite_store
from mongo.sqlite.store import SqliteLogStore
from service.statistics.answer_kinds import kinds_of, told
from service.statistics.answers import AnswerCounter, counting_answers

NOON = datetime(2026, 3, 1, 12, 20, tzinfo=UTC)
MIDNIGHT = NOON.replace(hour=0, minute=0)
WEEKS_AGO = NOON - timedelta(days=20)


def response(
    action: Action | None = None, confidence: float = 0.5, category: ErrorCategory = "timeout"
) -> SuggestResponse:
    """An answer whose best suggestion is of an action; an abstention without one."""
    suggestion: dict[str, Any] = {
        "suggestionId": "5b8a1f7e-64a1-4f5c-8f0e-2d3c4b5a6f33", "action": action,
        "confidence": confidence, "evidence": {}, "lesson": "",
    }  # fmt: skip
    return SuggestResponse.model_validate(
        {
            "pattern": {"category": category, "signature": "s", "confidence": 1},
            "suggestions": [suggestion] if action else [],
            "retry": {"safe": True, "reason": "r"},
            "abstained": action is None,
            "tookMs": 1,
        }
    )


ANSWERS = st.one_of(
    st.builds(response, st.sampled_from(get_args(Action)), st.floats(0, 1)),
    st.builds(response, category=st.sampled_from(get_args(ErrorCategory))),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLogStore]:
    opened = await open_sqlite_store(tmp_path / "data")
    yield opened
    await opened.close()


class Refusing:
    """A store that refuses to count until it is told otherwise."""

    def __init__(self, store: SqliteLogStore) -> None:
        self.store = store
        self.refuses = True

    async def add_answers(self, workspace: str, counts: Sequence[AnswerCount]) -> None:
        if self.refuses:
            raise StoreError("away")
        await self.store.add_answers(workspace, counts)

    async def list_answers(self, workspace: str, since: date) -> list[AnswerCount]:
        return await self.store.list_answers(workspace, since)


# Kinds


@given(st.lists(st.tuples(ANSWERS, st.integers(0, 47))))
def test_what_is_counted_can_be_told(answers: list[tuple[SuggestResponse, int]]) -> None:
    """Each answer once, in the hour in which it was given; parts add up to the whole."""
    counts, within = [], []
    for answer, hours in answers:
        at = MIDNIGHT + timedelta(hours=hours, minutes=59)
        counts += [AnswerCount(at.date(), kind, 1) for kind in kinds_of(answer, at)]
        within += [answer] if hours >= 12 else []
    found = told(counts, MIDNIGHT + timedelta(hours=12))
    assert found.asked == len(within)
    assert found.abstained == sum(each.abstained for each in within)
    sure = sum(each.suggestions[0].confidence > 0.80 for each in within if each.suggestions)
    assert found.confident == sure
    assert sum(each.answers for each in found.by_action) == found.asked - found.abstained
    assert sum(each.answers for each in found.abstentions) == found.abstained
    assert [each.answers for each in found.by_action] == sorted(
        (each.answers for each in found.by_action), reverse=True
    )


@pytest.mark.parametrize(
    "kind", ["", "asked", "24 asked", "x asked", "-1 asked", "² asked", "12 liked", "12 action:x"]
)
def test_kinds_that_nobody_knows_count_nothing(kind: str) -> None:
    """A later version may count more; this one goes on."""
    assert told([AnswerCount(NOON.date(), kind, 3)], WEEKS_AGO) == AnswerCounts()


def test_exactly_four_fifths_is_not_sure() -> None:
    """Above 0.80, as it is said."""
    assert "12 confident" not in kinds_of(response("escalate", 0.80), NOON)
    assert "12 confident" in kinds_of(response("escalate", 0.81), NOON)


# The counter


async def test_an_answer_counts_at_once(store: SqliteLogStore) -> None:
    """Before anything is written, and by workspace."""
    counter = AnswerCounter(store, lambda: NOON)
    counter.answered("w", response("retry_unchanged", 0.9))
    counter.answered("w", response(category="unknown"))
    found = await counter.counts("w", WEEKS_AGO)
    assert (found.asked, found.abstained, found.confident) == (2, 1, 1)
    assert (await counter.counts("other", WEEKS_AGO)).asked == 0
    assert await store.list_answers("w", WEEKS_AGO.date()) == []


async def test_what_was_written_counts_once(store: SqliteLogStore) -> None:
    """For this counter and for the next one on the same store."""
    counter = AnswerCounter(store, lambda: NOON)
    for expected in (1, 2, 3):
        counter.answered("w", response("escalate"))
        assert (await counter.counts("w", WEEKS_AGO)).asked == expected
        assert await counter.flush()
        assert (await counter.counts("w", WEEKS_AGO)).asked == expected
    assert (await AnswerCounter(store).counts("w", WEEKS_AGO)).asked == 3


async def test_windows_begin_with_an_hour(store: SqliteLogStore) -> None:
    """An answer of the hour before is not in it, whether it is written or not."""
    times = [NOON - timedelta(hours=2), NOON - timedelta(hours=1), NOON]
    counter = AnswerCounter(store, times.pop)
    for _ in range(3):
        counter.answered("w", response("escalate"))
    since = (NOON - timedelta(hours=1)).replace(minute=0)
    assert (await counter.counts("w", since)).asked == 2
    await counter.flush()
    assert (await counter.counts("w", since)).asked == 2


async def test_what_the_store_refused_waits_for_the_next_time(
    store: SqliteLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It counts meanwhile, is written once, and the log says so once."""
    refusing = Refusing(store)
    counter = AnswerCounter(refusing, lambda: NOON)  # type: ignore[arg-type]
    counter.answered("w", response("escalate"))
    assert not await counter.flush()
    counter.answered("w", response("escalate"))
    assert not await counter.flush()
    assert (await counter.counts("w", WEEKS_AGO)).asked == 2
    assert [record.message for record in caplog.records] == ["answers are not counted"]
    refusing.refuses = False
    assert await counter.flush()
    assert await counter.flush()
    assert (await counter.counts("w", WEEKS_AGO)).asked == 2
    asked = [each for each in await store.list_answers("w", NOON.date()) if "asked" in each.kind]
    assert [each.count for each in asked] == [2]


async def test_what_is_left_is_written_at_the_end(store: SqliteLogStore) -> None:
    """Also when the block ends long before the next writing is due."""
    async with counting_answers(store, every_s=3600) as counter:
        counter.answered("w", response("escalate"))
    assert (await AnswerCounter(store).counts("w", WEEKS_AGO)).asked == 1


async def test_it_is_written_in_the_background(store: SqliteLogStore) -> None:
    """Nobody has to ask for it."""
    async with counting_answers(store, every_s=0.001) as counter:
        counter.answered("w", response("escalate"))
        while not await store.list_answers("w", WEEKS_AGO.date()):
            pass
