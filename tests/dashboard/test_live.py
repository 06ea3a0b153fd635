"""Watchers: what is new is shown soon, to everybody, and by one watcher for all."""

import asyncio
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from service.dashboard import live
from service.dashboard.live import Viewer, Watchers
from service.statistics.news import News


@dataclass
class Reader:
    """A page; remembers when it was refreshed."""

    gone: bool = False
    fails: bool = False
    refreshed: asyncio.Event = field(default_factory=asyncio.Event)
    times: int = 0

    def viewer(self) -> Viewer:
        return Viewer(refresh=self.refresh, is_gone=lambda: self.gone)

    async def refresh(self, _: float) -> None:
        self.times += 1
        self.refreshed.set()
        if self.fails:
            raise ValueError("cannot be shown")

    async def again(self) -> None:
        """Wait for the next refresh."""
        async with asyncio.timeout(10):
            await self.refreshed.wait()
        self.refreshed.clear()


async def _same(_: str) -> object:
    return None


@pytest.fixture
async def news() -> AsyncIterator[News]:
    opened = News(_same)
    yield opened
    await opened.close()


@pytest.fixture
async def watchers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watchers]:
    monkeypatch.setattr(live, "_PAUSE_S", 0.01)
    opened = Watchers()
    yield opened
    await opened.close()


async def test_everybody_is_refreshed_when_something_came_in(
    news: News, watchers: Watchers
) -> None:
    readers = [Reader() for _ in range(11)]
    for each in readers:
        watchers.watch("default", news, each.viewer(), news.version("default"))
    news.tell("default")
    await asyncio.gather(*(each.again() for each in readers))
    assert {each.times for each in readers} == {1}


async def test_news_of_another_workspace_refreshes_nobody(news: News, watchers: Watchers) -> None:
    here, there = Reader(), Reader()
    watchers.watch("here", news, here.viewer(), 0)
    watchers.watch("there", news, there.viewer(), 0)
    news.tell("there")
    await there.again()
    assert here.times == 0


async def test_what_came_while_a_page_was_built_is_shown(news: News, watchers: Watchers) -> None:
    """Its figures were read at a version that is not the current one any more."""
    first = Reader()
    watchers.watch("default", news, first.viewer(), news.version("default"))
    news.tell("default")
    await first.again()
    late = Reader()
    watchers.watch("default", news, late.viewer(), news.version("default") - 1)
    await late.again()


async def test_a_page_that_fails_stops_nobody_else(news: News, watchers: Watchers) -> None:
    """And it is tried again with the next news."""
    failing, other = Reader(fails=True), Reader()
    for each in (failing, other):
        watchers.watch("default", news, each.viewer(), 0)
    for _ in range(2):
        news.tell("default")
        await asyncio.gather(failing.again(), other.again())
    assert (failing.times, other.times) == (2, 2)


async def test_who_is_gone_is_dropped(news: News, watchers: Watchers) -> None:
    gone, there = Reader(), Reader()
    for each in (gone, there):
        watchers.watch("default", news, each.viewer(), 0)
    gone.gone = True
    news.tell("default")
    await there.again()
    assert gone.times == 0


async def test_a_watcher_ends_with_its_last_viewer_and_begins_with_the_next(
    news: News, watchers: Watchers
) -> None:
    reader = Reader(gone=True)
    watchers.watch("default", news, reader.viewer(), 0)
    [ended] = watchers._watchers.values()
    news.tell("default")
    async with asyncio.timeout(10):
        await asyncio.wait({ended._task})
    following = Reader()
    watchers.watch("default", news, following.viewer(), news.version("default"))
    news.tell("default")
    await following.again()


async def test_a_burst_is_one_refresh_and_its_end_is_shown(news: News, watchers: Watchers) -> None:
    """Whatever came in while others were refreshed is shown by the next round."""
    reader = Reader()
    watchers.watch("default", news, reader.viewer(), 0)
    for _ in range(100):
        news.tell("default")
    await reader.again()
    assert reader.times == 1
    news.tell("default")
    await reader.again()
    assert reader.times == 2


async def test_who_left_is_not_held_while_news_are_waited_for(
    news: News, watchers: Watchers
) -> None:
    """A page is a mebibyte."""
    reader, other = Reader(), Reader()
    viewer = reader.viewer()
    watchers.watch("default", news, viewer, 0)
    watchers.watch("default", news, other.viewer(), 0)
    news.tell("default")
    await asyncio.gather(reader.again(), other.again())
    watchers.leave("default", viewer)
    freed = asyncio.Event()
    weakref.finalize(reader, freed.set)
    del viewer, reader
    async with asyncio.timeout(10):  # what refreshed it ends
        await freed.wait()
