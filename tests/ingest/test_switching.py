"""What is under way while another generation is put in the place of the present one."""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from embeddings.embedders import HashingEmbedder
from embeddings.protocol import Role, Vectors
from ingest.indexer import Indexer
from retrieval.knowledge.memory import DOCUMENT, Memory
from tests.ingest.conftest import WORKSPACE, Brain
from tests.retrieval.cases import an_execution


class Held(HashingEmbedder):
    """Embeds once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.asked.set()
        await self.go.wait()
        return await super().embed(texts, role)


async def test_what_was_being_embedded_is_no_vector_of_the_next_generation(brain: Brain) -> None:
    """A text that only batches of the former one had would be in the index for good."""
    held = Held()
    former = brain.new_indexer(embedder=held)
    await brain.intake.accept_executions(WORKSPACE, [an_execution()])
    await former.learn_step()
    embedding = asyncio.create_task(former.embed_step())
    await held.asked.wait()
    await brain.store.open_generation(2)
    await brain.store.switch_generation(2, {})
    async with former.switch_current():
        brain.memory.forget_all()
    held.go.set()
    assert await embedding == 0
    assert await brain.index.count_points() == 0
    await former.catch_up()
    assert (
        await brain.index.count_points()
        == await brain.store.knowledge.count_rows(DOCUMENT.name)
        > 0
    )
    await former.close()


async def test_what_the_former_generation_knew_is_new_to_the_next_one(brain: Brain) -> None:
    """Learned between the store's switch and the index's, with as many commits behind each."""
    await brain.intake.accept_executions(WORKSPACE, [an_execution()])
    await brain.indexer.learn_step()
    late = an_execution(execution_id=str(uuid4()), parameters={"late": 1})
    await brain.intake.accept_executions(WORKSPACE, [late])
    await brain.indexer.learn_step()
    anew = await brain.store.open_generation(2)
    beside = Indexer(
        store=brain.store, memory=Memory(brain.store, knowledge=anew), index=brain.index,
        embedder=brain.embedder, knowledge=anew, batch=1,
    )  # fmt: skip
    await beside.learn_step()
    await beside.embed_step()
    await beside.close()
    await brain.store.switch_generation(2, {})
    await brain.indexer.learn_step()
    async with brain.indexer.switch_current():
        brain.memory.forget_all()
    await brain.indexer.catch_up()
    assert (
        await brain.index.count_points()
        == await brain.store.knowledge.count_rows(DOCUMENT.name)
        == 2
    )
