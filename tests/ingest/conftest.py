"""A memory of one's own: the real store, index and learner on a temporary folder."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from aftercall.models import Execution, FailedCall, SuggestRequest, SuggestResponse, ToolAnnotations
from aftercall.redaction import Redactor
from embeddings.hashing import HashingEmbedder
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.documents import SeedBook
from retrieval.memory import Memory
from retrieval.suggest import Suggester
from tests.ingest.relearning import learn_anew

WORKSPACE = "default"


@dataclass(slots=True)
class Brain:
    """All rooms below the service, put together."""

    store: LogStore
    memory: Memory
    intake: Intake
    indexer: Indexer
    suggester: Suggester
    new_indexer: Callable[[], Indexer]
    embedder: Embedder
    index: VectorIndex

    async def learn(self, *executions: Execution) -> None:
        """Record executions and wait until they are learned from."""
        await self.intake.accept(WORKSPACE, list(executions))
        await self.indexer.run_until_empty()

    async def rebuild(self) -> None:
        """Forget all that was learned and learn it again from the log, as `aftercall rebuild`."""
        await self.restart()
        generation = await learn_anew(self.store, self.index, self.embedder)
        self.memory.forget_all()
        self.indexer.switched(generation)

    async def restart(self) -> None:
        """Another indexer goes on in the place of the present one."""
        await self.indexer.close()
        self.indexer = self.new_indexer()

    async def ask(self, execution: Execution, *, reads: bool = True) -> SuggestResponse:
        """What to do about a failed execution."""
        fields = execution.model_dump(exclude={"execution_id", "timestamp"})
        request = SuggestRequest(
            execution=FailedCall.model_validate(fields),
            annotations=ToolAnnotations(read_only_hint=reads),
        )
        return await self.suggester.suggest(WORKSPACE, request)


@pytest.fixture
async def brain(tmp_path: Path) -> AsyncIterator[Brain]:
    """An empty memory, without the shipped corpus."""
    embedder = HashingEmbedder()
    store = await open_sqlite_store(tmp_path / "data")
    index = await EdgeIndex.open(
        tmp_path / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    memory = Memory(store)
    new_indexer = partial(Indexer, store=store, memory=memory, index=index, embedder=embedder)
    indexer = new_indexer()
    suggester = Suggester(
        store=store, memory=memory, index=index, embedder=embedder, redactor=Redactor(),
        seeds=SeedBook(),
    )  # fmt: skip
    brain = Brain(
        store, memory, Intake(store, Redactor(), indexer.wake), indexer, suggester, new_indexer,
        embedder, index,
    )  # fmt: skip
    yield brain
    await suggester.close()
    await brain.indexer.close()
    await index.close()
    await embedder.close()
    await store.close()
