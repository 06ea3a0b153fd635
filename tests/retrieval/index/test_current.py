"""Replacing an index while it is used: every call ends with the index that it began with."""

import asyncio
from collections.abc import Sequence

import pytest

from retrieval.index.opening import CurrentIndex, Patience
from retrieval.index.protocol import (
    Hit,
    IndexPoint,
    IndexQuery,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from tests.retrieval.index.documents import point, question, uses


class SlowIndex:
    """Answers when it is let; knows whether it was asked after it was closed."""

    def __init__(self, name: str, *, held: bool = False, breaks: bool = False) -> None:
        self.name = name
        self.closed = 0
        self.asked = asyncio.Event()
        self._let = asyncio.Event()
        self._breaks = breaks
        if not held:
            self.let_go()

    def let_go(self) -> None:
        self._let.set()

    async def upsert_points(self, points: Sequence[IndexPoint]) -> None:  # noqa: ARG002
        await self._use()

    async def delete(self, document_ids: Sequence[str]) -> None:  # noqa: ARG002
        await self._use()

    async def search_points(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:  # noqa: ARG002
        await self._use()
        return [[Hit(self.name, 1.0, 1.0)]]

    async def count_points(self) -> int:
        await self._use()
        return 1

    async def close(self) -> None:
        self.closed += 1
        if self._breaks:
            raise VectorIndexError("cannot close")

    async def _use(self) -> None:
        self.asked.set()
        await self._let.wait()
        if self.closed:
            raise VectorIndexError(f"{self.name} is closed")


async def _asks(index: CurrentIndex) -> str:
    ((hit,),) = await index.search_points([question("a")])
    return hit.document_id


async def test_what_is_under_way_ends_with_the_former_index_before_it_is_closed():
    """And whoever asks meanwhile has the new one at once."""
    former, later = SlowIndex("former", held=True), SlowIndex("later")
    current = CurrentIndex(former)
    asking = [asyncio.create_task(_asks(current)) for _ in range(3)]
    writing = asyncio.create_task(current.upsert_points([point("a")]))
    await former.asked.wait()
    switching = asyncio.create_task(current.switch_index(later))
    await asyncio.sleep(0)
    assert await _asks(current) == "later"
    assert not switching.done()
    assert former.closed == 0
    former.let_go()
    await switching
    assert [await each for each in asking] == ["former"] * 3
    await writing
    assert (former.closed, later.closed) == (1, 0)
    await current.close()


async def test_a_cancelled_switch_has_switched_and_still_closes_the_former():
    """Nothing stays open for ever."""
    former, later = SlowIndex("former", held=True), SlowIndex("later")
    current = CurrentIndex(former)
    asking = asyncio.create_task(_asks(current))
    await former.asked.wait()
    switching = asyncio.create_task(current.switch_index(later))
    await asyncio.sleep(0)
    switching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await switching
    assert await _asks(current) == "later"
    former.let_go()
    assert await asking == "former"
    await current.close()
    assert (former.closed, later.closed) == (1, 1)


async def test_a_former_index_that_cannot_be_closed_harms_no_one(caplog):
    """The switch has taken place; the log says what is left."""
    current = CurrentIndex(SlowIndex("former", breaks=True))
    await current.switch_index(SlowIndex("later"))
    assert await _asks(current) == "later"
    assert "cannot close" in caplog.text
    await current.close()


async def test_a_closed_one_says_so_and_closes_what_it_is_given():
    """Use after close is a `VectorIndexError`; closing twice does nothing."""
    index, late = SlowIndex("index"), SlowIndex("late")
    current = CurrentIndex(index)
    await current.close()
    await current.close()
    assert index.closed == 1
    with pytest.raises(VectorIndexError, match="closed"):
        await current.switch_index(late)
    assert late.closed == 1
    for use in uses(current):
        with pytest.raises(VectorIndexError, match="closed"):
            await use()


async def test_an_index_that_hangs_costs_one_wait_and_then_none() -> None:
    """Only one call at a time looks whether it is over; when it is, all are let through."""
    now = 0.0
    hanging = SlowIndex("hangs", held=True)
    current = CurrentIndex(hanging, patience=Patience(0.01, clock=lambda: now))
    with pytest.raises(VectorIndexUnavailableError):
        await current.search_points([question("a")])
    hanging.asked.clear()
    for call in (lambda: current.search_points([question("a")]), current.count_points):
        with pytest.raises(VectorIndexUnavailableError):
            await call()
    assert not hanging.asked.is_set()
    now = 2.0
    looks = asyncio.gather(
        *(current.search_points([question("a")]) for _ in range(3)), return_exceptions=True
    )
    assert [type(each) for each in await looks] == [VectorIndexUnavailableError] * 3
    now = 4.0
    hanging.let_go()
    for _ in range(2):
        ((hit,),) = await current.search_points([question("a")])
        assert hit.document_id == "hangs"
