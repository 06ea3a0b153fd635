"""A process that is killed while it learns neither loses nor doubles a trial, nor a document."""

import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from embeddings.hashing import HashingEmbedder
from ingest.indexer import Indexer
from mongo.protocol import LogStore
from mongo.records import ToolKey
from mongo.sqlite import open_sqlite_store
from retrieval.fitness.registry import tool_document_id
from retrieval.fitness.statistics import ToolStatistics
from retrieval.index.edge import EdgeIndex
from retrieval.memory import Memory
from tests.ingest.fitness_samples import (
    WORKSPACE,
    documents_of,
    id_of,
    statistics_of,
    tool_of,
)
from tests.ingest.relearning import learn_anew

SCENARIO = Path(__file__).with_name("learning_scenario.py")
TOOLS = [tool_of(number) for number in range(3)]
ROUND = 100_000
"""Numbers of calls and marks that one process may use."""


def kill_while_learning(folder: Path, first: int, batches: int) -> None:
    with subprocess.Popen(
        [sys.executable, SCENARIO, folder, str(first)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(batches)]
        child.send_signal(signal.SIGKILL)
        child.stdout.read()
    assert all(lines)
    assert child.returncode == -signal.SIGKILL


async def calls_in_the_log(store: LogStore) -> dict[ToolKey, dict[str, bool]]:
    """Distinct calls by tool: those that were recorded, and marks of none; whether each worked."""
    calls: dict[ToolKey, dict[str, bool]] = defaultdict(dict)
    after = 0
    while page := await store.scan_executions(WORKSPACE, after, 1_000):
        after = page[-1].position
        for stored in page:
            execution = stored.execution
            calls[stored.tool_key][execution.execution_id] = execution.outcome == "success"
    for tool in TOOLS:
        for mark in await store.list_marks(tool, 1_000_000):
            calls[mark.tool][mark.execution_id or mark.mark_id] = False
    return calls


def counts_of(known: ToolStatistics) -> tuple[int, int]:
    [version] = known.versions.values()
    return version.successes, version.failures


@pytest.mark.real
async def test_every_trial_is_counted_once_whenever_it_is_killed(tmp_path: Path) -> None:
    """After kills in the middle, statistics equal the log's, and a rebuild gives the same."""
    for round_number in range(3):
        kill_while_learning(tmp_path, 10 + ROUND * round_number, batches=8)
    embedder = HashingEmbedder()
    store = await open_sqlite_store(tmp_path / "data")
    index = await EdgeIndex.open(
        tmp_path / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    try:
        indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder)
        await indexer.run_until_empty()
        await indexer.close()
        counts = await store.counts()
        assert counts.pending == 0
        assert await index.count() == counts.documents
        statistics = [await statistics_of(store, tool) for tool in TOOLS]
        registered = await store.list_tools(WORKSPACE)
        ids = [tool_document_id(each.tool_key, each.tool.tool_id) for each in registered]
        documents = await documents_of(store, ids)
        assert len(documents) == len(registered) > 0

        calls = await calls_in_the_log(store)
        assert sum(map(len, calls.values())) > 100
        for tool, known in zip(TOOLS, statistics, strict=True):
            successes = sum(calls[tool].values())
            assert counts_of(known) == (successes, len(calls[tool]) - successes)
        await learn_anew(store, index, embedder)
        again = [await statistics_of(store, tool) for tool in TOOLS]
        assert [each.versions for each in again] == [each.versions for each in statistics]
        assert await documents_of(store, ids) == documents
        assert (await store.counts()).documents == counts.documents
        assert id_of(10) in calls[tool_of(10)]
    finally:
        await index.close()
        await embedder.close()
        await store.close()
