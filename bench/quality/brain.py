"""A memory of the benchmark's own: real store, learner, index and model on a temporary folder."""

import tempfile
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aftercall.models import Execution, FailedCall, SuggestRequest, SuggestResponse, ToolAnnotations
from aftercall.redaction import Redactor
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.seed import load_seed
from mongo.protocol import Store
from mongo.sqlite.store import open_sqlite_store
from retrieval.answers.fitness.search import ToolChooser
from retrieval.answers.suggest import Suggester
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.memory import Memory

Json = dict[str, Any]

WORKSPACE = "benchmark"
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Brain:
    """All rooms below the service, put together."""

    store: Store
    intake: Intake
    indexer: Indexer
    suggester: Suggester
    memory: Memory
    chooser: ToolChooser
    index: VectorIndex

    async def learn(self, executions: Sequence[Execution]) -> None:
        """Record executions and wait until they are learned from."""
        for start in range(0, len(executions), _BATCH):
            receipt = await self.intake.accept_executions(
                WORKSPACE, executions[start : start + _BATCH]
            )
            assert not receipt.rejected, receipt.rejected[:3]
        await self.indexer.catch_up()

    async def record(self, executions: Sequence[Execution]) -> None:
        """Record executions that are not learned from: what a question's session did before."""
        receipt = await self.intake.accept_executions(WORKSPACE, executions)
        assert not receipt.rejected, receipt.rejected[:3]

    async def ask(
        self, call: FailedCall, *, reads: bool | None = None, hints: ToolAnnotations | None = None
    ) -> SuggestResponse:
        """What to do about a failed call. `reads` is the tool's claim that it only reads."""
        annotations = hints if reads is None else ToolAnnotations(read_only_hint=reads)
        request = SuggestRequest(execution=call, annotations=annotations)
        return await self.suggester.suggest(WORKSPACE, request)


@asynccontextmanager
async def open_brain(embedder: Embedder) -> AsyncIterator[Brain]:
    """An empty memory with the shipped corpus; the model stays the caller's."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = await open_sqlite_store(folder / "data")
        stack.push_async_callback(store.close)
        index = await EdgeIndex.open(
            folder / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
        )
        stack.push_async_callback(index.close)
        seeds = load_seed()
        memory, redactor = Memory(store), Redactor()
        indexer = Indexer(store=store, memory=memory, index=index, embedder=embedder)
        stack.push_async_callback(indexer.close)
        suggester = Suggester(
            log=store.events, memory=memory, index=index, embedder=embedder, redactor=redactor,
            seeds=seeds,
        )  # fmt: skip
        stack.push_async_callback(suggester.close)
        intake = Intake(store.events, redactor, indexer.wake_learner)
        chooser = ToolChooser(memory=memory, index=index, embedder=embedder, redactor=redactor)
        yield Brain(store, intake, indexer, suggester, memory, chooser, index)


@dataclass(slots=True)
class Recording:
    """Executions in the order in which they happen, a few seconds apart."""

    executions: list[Execution]
    now: datetime = START
    count: int = 0

    def add(
        self, *, agent: str, session: str, tool: str, server: str, parameters: Json,
        context: str, schema: Json | None, error: Json | None = None, result: Any = None,
    ) -> None:  # fmt: skip
        """One more execution; a failure when there is an error."""
        self.now += timedelta(seconds=5)
        self.count += 1
        name = f"{session}/{self.count}"
        fields = {
            "execution_id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
            "timestamp": self.now, "agent": agent, "session_id": session, "sequence": self.count,
            "tool_name": tool, "server_name": server, "parameters": parameters,
            "context": context[:2000], "input_schema": schema,
            "outcome": "failure" if error else "success", "error": error,
            "result": None if error else result,
        }  # fmt: skip
        self.executions.append(Execution.model_validate(fields))
