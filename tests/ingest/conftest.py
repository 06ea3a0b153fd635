"""A memory of one's own: the real store, index and learner on a temporary folder."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from aftercall.models import (
    Execution,
    FailedCall,
    SuggestRequest,
    SuggestResponse,
    Tool,
    ToolAnnotations,
)
from aftercall.redaction import Redactor
from embeddings.embedders import HashingEmbedder
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.rebuild import carry_over
from mongo.contents import tool_command
from mongo.protocol import Store
from mongo.records import ToolKey
from mongo.sqlite.store import open_sqlite_store
from retrieval.answers.suggest import Suggester
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.memory import KNOWLEDGE, Memory, tool_row
from retrieval.knowledge.rows.documents import CommonMistakes
from retrieval.knowledge.tool.rules import ToolKnowledge
from service.context import ANYBODY, Access
from service.metrics import ServiceMetrics

WORKSPACE = "default"


@dataclass(slots=True)
class Brain:
    """All rooms below the service, put together."""

    store: Store
    memory: Memory
    intake: Intake
    indexer: Indexer
    suggester: Suggester
    new_indexer: Callable[..., Indexer]
    embedder: Embedder
    index: VectorIndex
    caller: Access = ANYBODY
    metrics: ServiceMetrics = field(default_factory=lambda: ServiceMetrics(max_tools=10))

    async def learn(self, *executions: Execution) -> None:
        """Record executions and wait until they are learned from."""
        await self.intake.accept_executions(WORKSPACE, list(executions))
        await self.indexer.catch_up()

    async def rebuild(self) -> None:
        """Learn everything again from the log, as `aftercall rebuild`, and go on from that."""
        number = self.store.knowledge.generation + 1
        anew = await self.store.open_generation(number)
        indexer = Indexer(
            store=self.store, memory=Memory(self.store, knowledge=anew), index=self.index,
            embedder=self.embedder, knowledge=anew,
        )  # fmt: skip
        await indexer.catch_up()
        await indexer.close()
        await carry_over(self.store.knowledge, anew)
        await self.store.switch_generation(number, {})
        async with self.indexer.switch_current():
            self.memory.forget_all()

    async def put_tool(self, tool: Tool) -> None:
        """Register a tool."""
        event, state = tool_command(WORKSPACE, tool.tool_id, None, tool)
        await self.store.events.append(WORKSPACE, [event], [state])
        self.memory.forget_state(WORKSPACE)

    async def knowledge(self, tool: ToolKey) -> ToolKnowledge:
        """What is stored of a tool."""
        [row] = await self.store.knowledge.get(tool.workspace, KNOWLEDGE.name, [tool_row(tool)])
        return KNOWLEDGE.decode_row(row)

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
        log=store.events, memory=memory, index=index, embedder=embedder, redactor=Redactor(),
        seeds=CommonMistakes(),
    )  # fmt: skip
    brain = Brain(
        store, memory, Intake(store.events, Redactor(), indexer.wake_learner), indexer, suggester,
        new_indexer, embedder, index,
    )  # fmt: skip
    yield brain
    await suggester.close()
    await brain.indexer.close()
    await index.close()
    await embedder.close()
    await store.close()
