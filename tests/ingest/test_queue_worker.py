"""Every workspace has its turn, whatever happens in another one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ingest.queue_worker import QueueWorker
from mongo.errors import StoreUnavailableError


class Queues:
    """Items by workspace; some workspaces are broken."""

    def __init__(self, **items: int) -> None:
        self.items = items
        self.broken: set[str] = set()
        self.is_away = False
        self.turns: list[str] = []
        self.rounds: list[Sequence[str]] = []

    async def queued(self) -> list[str]:
        if self.is_away:
            raise StoreUnavailableError("away")
        return sorted(each for each, left in self.items.items() if left)

    async def step(self, workspace: str) -> int:
        self.turns.append(workspace)
        if workspace in self.broken:
            raise StoreUnavailableError(f"{workspace} is broken")
        done = min(self.items[workspace], 1)
        self.items[workspace] -= done
        return done

    async def after(self, queued: Sequence[str]) -> None:
        self.rounds.append(queued)


def worker(queues: Queues, poll: float | None = None, **fields: Any) -> QueueWorker:
    return QueueWorker(
        "work", queued=queues.queued, step=queues.step, after=queues.after, poll=poll, **fields
    )


async def until(is_so: Callable[[], object]) -> None:
    """Wait until something holds; a test that waits in vain fails by its claim."""
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  # whoever makes it so does not tell
            await asyncio.sleep(0.01)


async def test_a_round_gives_each_workspace_one_step() -> None:
    """None waits for the backlog of another."""
    queues = Queues(a=3, b=1, c=2)
    work = worker(queues)
    assert await work.round() == 3
    assert queues.turns == ["a", "b", "c"]
    assert await work.round() == 2
    assert queues.rounds == [["a", "b", "c"], ["a", "c"]]


async def test_one_that_fails_does_not_stop_the_others() -> None:
    """All have their step; then what went wrong is told."""
    queues = Queues(a=1, b=1, c=1)
    queues.broken = {"a"}
    with pytest.raises(StoreUnavailableError, match="a is broken"):
        await worker(queues).round()
    assert queues.items == {"a": 1, "b": 0, "c": 0}


async def test_the_background_works_on_beside_one_that_fails() -> None:
    """Its problem is known until it is mended; it is mended without being woken."""
    queues = Queues(a=1, b=5)
    queues.broken = {"a"}
    work = worker(queues)
    work.start()
    await until(lambda: not queues.items["b"])
    assert work.problem == "a is broken"
    assert queues.turns.count("a") == 1
    queues.broken = set()
    await until(lambda: not queues.items["a"])
    await until(lambda: work.problem is None)
    await work.close()


async def test_a_store_that_is_away_is_a_problem_until_it_is_back() -> None:
    """And then the work goes on by itself."""
    queues = Queues(a=2)
    queues.is_away = True
    work = worker(queues)
    work.start()
    await until(lambda: work.problem == "away")
    queues.is_away = False
    await until(lambda: not queues.items["a"])
    assert work.problem is None
    await work.close()


async def test_what_others_queue_is_found_by_looking_again() -> None:
    """Without being woken; and what one queues oneself at once."""
    queues = Queues(a=0)
    work = worker(queues, poll=0.05)
    work.start()
    await until(lambda: len(queues.rounds) > 2)
    queues.items["a"] = 1
    await until(lambda: not queues.items["a"])
    await work.close()
    alone = worker(queues)
    alone.start()
    await until(lambda: len(queues.rounds) > 0)
    queues.items["a"] = 1
    alone.wake()
    await until(lambda: not queues.items["a"])
    await alone.close()


async def test_a_glance_is_enough_while_nothing_is_there() -> None:
    """The queues are looked at when it says so, or when somebody wakes it, and now and then."""
    queues = Queues(a=0)
    glances = 0

    async def glance() -> bool:
        nonlocal glances
        glances += 1
        return bool(queues.items["a"])

    work = worker(queues, poll=0.01, glance=glance, look=1e9)
    work.start()
    await until(lambda: glances > 5)
    assert len(queues.rounds) == 1
    queues.items["a"] = 1
    await until(lambda: not queues.items["a"])
    queues.items["b"] = 1
    work.wake()
    await until(lambda: not queues.items["b"])
    await work.close()
    slow = worker(queues, poll=0.01, glance=glance, look=0.05)
    slow.start()
    queues.items["b"] = 1
    await until(lambda: not queues.items["b"])
    await slow.close()


async def test_a_glance_that_fails_is_followed_by_a_look() -> None:
    """That tells what is wrong, and the worker lives."""
    queues = Queues(a=0)

    async def glance() -> bool:
        raise StoreUnavailableError("away")

    work = worker(queues, poll=0.01, glance=glance, look=1e9)
    work.start()
    await until(lambda: len(queues.rounds) > 2)
    queues.is_away = True
    await until(lambda: work.problem)
    assert work.problem == "away"
    await work.close()
