"""A flood of executions goes before learning, and never keeps it from going on."""

import asyncio
from itertools import count
from uuid import UUID

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
