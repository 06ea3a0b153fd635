"""Kept values: made once for all who ask within some seconds."""

import asyncio

import pytest

from service.statistics.kept import Kept


class Maker:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.made = 0

    async def make(self) -> int:
        await asyncio.sleep(0)
        self.made += 1
        return self.made


async def test_a_value_is_made_once_for_all_who_ask() -> None:
    """Also at the same time."""
    kept: Kept[str, int] = Kept(5, clock=lambda: 0)
    maker = Maker()
    assert await asyncio.gather(*(kept.get("a", maker.make) for _ in range(10))) == [1] * 10
    assert await kept.get("b", maker.make) == 2


async def test_an_old_one_is_made_anew() -> None:
    """Its age counts from before it was made."""
    now = 0.0
    kept: Kept[str, int] = Kept(5, clock=lambda: now)
    maker = Maker()
    assert await kept.get("a", maker.make) == 1
    now = 4.9
    assert await kept.get("a", maker.make) == 1
    now = 5.0
    assert await kept.get("a", maker.make) == 2
    kept.forget()
    assert await kept.get("a", maker.make) == 3


async def test_a_failure_is_not_kept() -> None:
    """The next one who asks tries again."""
    kept: Kept[str, int] = Kept(5)

    async def fail() -> int:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011  # it is the one that was raised
        await kept.get("a", fail)
    assert await kept.get("a", Maker().make) == 1


async def test_of_very_many_the_latest_are_kept() -> None:
    """Memory is bounded."""
    kept: Kept[int, int] = Kept(5, clock=lambda: 0)
    maker = Maker()
    for key in range(100):
        await kept.get(key, maker.make)
    await kept.get(99, maker.make)
    assert maker.made == 100
    await kept.get(0, maker.make)
    assert maker.made == 101
