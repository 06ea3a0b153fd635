"""A flood of executions goes before learning, and never keeps it from going on."""

import asyncio
from itertools import count
from uuid import UUID

from ingest.indexer import _Loop
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution


async def test_what_floods_in_is_learned_while_it_goes_on(brain: Brain) -> None:
    """However long it lasts: nothing waits for an end of it."""
    numbers = count(1)
    brain.indexer.start()
    async with asyncio.timeout(60):
        while WORKSPACE not in await brain.store.knowledge.cursors():
            records = [
                an_execution(execution_id=str(UUID(int=next(numbers))), parameters={"n": at})
                for at in range(500)
            ]
            receipt = await brain.intake.accept(WORKSPACE, records)
            assert receipt.accepted == 500
    await brain.indexer.close()
    await brain.indexer.catch_up()
    cursor = (await brain.store.knowledge.cursors())[WORKSPACE]
    assert cursor.position == next(numbers) - 1


async def test_what_comes_together_is_learned_together() -> None:
    """A few events, each with a request of its own, cost one step."""
    stored: list[int] = []
    steps: list[int] = []
    has_looked, has_learned = asyncio.Event(), asyncio.Event()

    async def step() -> int:
        has_looked.set()
        if stored:
            steps.append(len(stored))
            stored.clear()
            has_learned.set()
        return 0

    loop = _Loop("learning", step, 60.0)
    loop.start()
    await has_looked.wait()
    for number in range(3):
        stored.append(number)
        loop.wake()
        for _ in range(10):  # turns of the event loop, enough for a step
            await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await has_learned.wait()
    await loop.close()
    assert steps == [3]
