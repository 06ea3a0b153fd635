"""News: whoever waits is told at once what happens here, and soon what others did to the store."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mongo.errors import StoreError
from service.statistics.news import News

LONG_S = 30.0
"""Longer than any test may take: it ends by what it waits for."""


class Shelf:
    """Something that changes when others write."""

    def __init__(self) -> None:
        self.holds = 0
        self.looks = 0
        self.is_away = False
        self._looked = asyncio.Condition()

    async def look_at(self, workspace: str) -> object:
        async with self._looked:
            self.looks += 1
            self._looked.notify_all()
        if self.is_away:
            raise StoreError("away")
        return (workspace, self.holds)

    async def seen(self, more: int) -> None:
        """Until it was looked at some more times."""
        wanted = self.looks + more
        async with self._looked:
            await self._looked.wait_for(lambda: self.looks >= wanted)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def news(shelf: Shelf) -> AsyncIterator[News]:
    opened = News(shelf.look_at, every_s=0.001)
    yield opened
    await opened.close()


async def waiting(news: News, workspace: str = "w") -> "asyncio.Task[int]":
    """Somebody who waits by now."""
    task = asyncio.create_task(news.wait(workspace, news.version(workspace), LONG_S))
    await asyncio.sleep(0)
    return task


async def test_all_who_wait_are_told_once(news: News) -> None:
    """With the version that holds then."""
    several = [await waiting(news) for _ in range(20)]
    news.tell("w")
    assert await asyncio.gather(*several) == [1] * 20
    assert news.version("w") == 1


async def test_what_happened_before_one_waits_is_not_missed(news: News) -> None:
    """Another version than the known one is told without waiting."""
    news.tell("w")
    assert await news.wait("w", 0, LONG_S) == 1


async def test_other_workspaces_are_not_woken(news: News) -> None:
    """Unless nobody knows where it happened."""
    other = await waiting(news, "other")
    news.tell("w")
    assert news.version("other") == 0
    assert not other.done()
    news.tell_all()
    assert await other == 1
    assert news.version("of nobody yet") == 1


async def test_without_news_the_version_stays(news: News) -> None:
    """The wait ends when its time is over."""
    assert await news.wait("w", 0, 0.001) == 0


async def test_what_others_wrote_is_noticed(news: News, shelf: Shelf) -> None:
    """While somebody waits."""
    somebody = await waiting(news)
    await shelf.seen(2)
    assert not somebody.done()
    shelf.holds += 1
    assert await somebody == 1


async def test_nobody_looks_while_nobody_waits(news: News, shelf: Shelf) -> None:
    """It starts with the first who does, and ends behind the last."""
    news.tell("w")
    assert shelf.looks == 0
    somebody = await waiting(news)
    await shelf.seen(1)
    somebody.cancel()
    looking = {each for each in asyncio.all_tasks() if each.get_name() == "looking for news"}
    assert len(looking) == 1
    await asyncio.wait(looking)  # it ends by itself


async def test_a_store_that_is_away_is_waited_for(
    news: News, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so once."""
    somebody = await waiting(news)
    await shelf.seen(1)
    shelf.is_away = True
    await shelf.seen(3)
    assert [record.message for record in caplog.records] == ["no news from the store"]
    shelf.is_away, shelf.holds = False, 1
    assert await somebody == 1


async def test_at_the_end_nobody_waits_on(shelf: Shelf) -> None:
    """Pages that are open must not hold up the service."""
    news = News(shelf.look_at)
    somebody = await waiting(news)
    await news.close()
    assert await somebody == 1
