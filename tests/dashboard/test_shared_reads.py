"""What several viewers ask for at about the same time is read once."""

import asyncio
from dataclasses import dataclass, field

import pytest

from service.dashboard.shared import SharedReads


@dataclass
class Source:
    """Counts how often it was read; holds readers until it is let go."""

    reads: int = 0
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False

    async def read(self) -> int:
        self.reads += 1
        await self.let_go.wait()
        if self.fails:
            raise ValueError("not now")
        return self.reads


async def test_readers_of_one_moment_share_one_read() -> None:
    """And of the next moment too."""
    shared, source = SharedReads(), Source()
    asking = [asyncio.create_task(shared.get("k", source.read, version=3)) for _ in range(20)]
    await asyncio.sleep(0)
    source.let_go.set()
    assert set(await asyncio.gather(*asking)) == {(1, 3)}
    assert await shared.get("k", source.read, version=4) == (1, 3)
    assert source.reads == 1


async def test_other_keys_are_read_for_themselves() -> None:
    shared, source = SharedReads(), Source()
    source.let_go.set()
    await shared.get("one", source.read, version=0)
    await shared.get("other", source.read, version=0)
    assert source.reads == 2


async def test_what_was_begun_before_the_news_is_read_again() -> None:
    shared, source = SharedReads(), Source()
    source.let_go.set()
    await shared.get("k", source.read, version=1)
    now = asyncio.get_running_loop().time()
    assert await shared.get("k", source.read, version=2, begun_after=now + 1e-9) == (2, 2)


async def test_a_failed_read_is_not_kept() -> None:
    """All who waited for it hear of it; whoever comes later reads anew."""
    shared, source = SharedReads(), Source(fails=True)
    source.let_go.set()
    with pytest.raises(ValueError, match="not now"):
        await shared.get("k", source.read, version=0)
    source.fails = False
    assert await shared.get("k", source.read, version=0) == (2, 0)


async def test_one_who_leaves_stops_nobody_else() -> None:
    shared, source = SharedReads(), Source()
    leaving = asyncio.create_task(shared.get("k", source.read, version=0))
    staying = asyncio.create_task(shared.get("k", source.read, version=0))
    await asyncio.sleep(0)
    leaving.cancel()
    source.let_go.set()
    assert await staying == (1, 0)
