"""Several processes learn from one store: each execution teaches exactly once, whatever happens.

What one indexer learns from the same history is the truth that all are compared with.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from embeddings.hashing import HashingEmbedder
from ingest import indexer as indexer_module
from ingest.claims import Claims, learning_lease
from ingest.indexer import SHARED_POLL_S, Indexer
from mongo.errors import StoreFencedError
from mongo.protocol import LogStore
from mongo.records import IndexCommit
from mongo.sqlite import open_sqlite_store
from retrieval.memory import Memory
from tests.ingest.shared_history import WORKSPACES, NoIndex, document_counts, learned, record
from tests.ingest.shared_scenario import open_shared
from tests.mongo.mongo_server import SharedMongo

SCENARIO = Path(__file__).parents[1] / "ingest" / "shared_scenario.py"
ROOT = Path(__file__).parents[2]
CALLS = 300
"""In each workspace: three batches."""
WITHIN_S = 300.0


async def known_in(store: LogStore) -> dict[str, Any]:
    """All that is compared: what is known of tools, and what documents stand for."""
    return {
        "tools": await learned(store),
        "documents": {each: await document_counts(store, each) for each in WORKSPACES},
    }


async def one_learns(folder: Path, calls: int) -> dict[str, Any]:
    """The truth: one indexer, one process, the same history."""
    async with await open_sqlite_store(folder) as store:
        await record(store, 1, calls)
        indexer = an_indexer(store, None)
        await indexer.run_until_empty()
        await indexer.close()
        return await known_in(store)


def an_indexer(store: LogStore, claims: Claims | None) -> Indexer:
    return Indexer(
        store=store,
        memory=Memory(store),
        index=NoIndex(),
        embedder=HashingEmbedder(),
        claims=claims,
        poll=0.02 if claims is None else SHARED_POLL_S,
    )


async def until_learned(store: LogStore) -> None:
    """Wait until nothing is queued."""
    async with asyncio.timeout(WITHIN_S):
        while (await store.counts()).pending:  # noqa: ASYNC110  # other processes do not tell
            await asyncio.sleep(0.05)


@pytest.fixture(scope="session")
def mongo() -> Iterator[SharedMongo]:
    """A MongoDB for these tests; each has a database of its own."""
    server = SharedMongo()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "mongodb"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is that several processes may open, as the scenario takes it."""
    if request.param == "sqlite":
        return str(tmp_path / "shared")
    mongo: SharedMongo = request.getfixturevalue("mongo")
    return f"{mongo.database(tmp_path)}@{mongo.uri()}"


@asynccontextmanager
async def opened(where: str) -> AsyncIterator[LogStore]:
    """The store, made when it is not there yet."""
    if "@" not in where:
        await (await open_sqlite_store(Path(where))).close()
    store = await open_shared(where)
    try:
        yield store
    finally:
        await store.close()


class Child:
    """A process that learns beside others."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.committed: Counter[str] = Counter()
        self.fenced = 0

    def read(self) -> dict[str, Any]:
        """What it says next; empty when it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line else {}
        if "committed" in said:
            self.committed[said["committed"]] += said["records"]
        self.fenced += "fenced" in said
        return said

    def read_until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while said := self.read():
            if is_it(said):
                return said
        raise AssertionError("the process has ended before")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> dict[str, Any]:
        """Let it end by itself, and read what it still says; the last of it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        last: dict[str, Any] = {}
        while said := self.read():
            last = said
        return last


@contextmanager
def child(where: str, *, ttl: float = 30.0, pause: float = 0.0) -> Iterator[Child]:
    """Start one; it is killed in the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, SCENARIO, where, str(ttl), str(pause)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        started = Child(process)
        try:
            started.read_until(lambda said: "ready" in said)
            yield started
        finally:
            process.kill()


@pytest.mark.parametrize("steps_back", [False, True])
async def test_two_indexers_on_one_store_learn_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps_back: bool
) -> None:
    """In one process, in small batches of all workspaces at once; the wall clock may step back."""
    monkeypatch.setattr(indexer_module, "BATCH", 20)
    truth = await one_learns(tmp_path / "one", 300)
    async with await open_sqlite_store(tmp_path / "two") as store:
        claims = [Claims(store, ttl=15) for _ in range(2)]
        indexers = [an_indexer(store, each) for each in claims]
        for each in indexers:
            each.start()
        if steps_back:
            now = time.time
            monkeypatch.setattr(time, "time", lambda: now() - 86_400)
        await record(store, 1, 300)
        for each in indexers:
            each.wake()
        await until_learned(store)
        assert await known_in(store) == truth
        assert [each.problem for each in indexers] == [None, None]
        for indexer, claim in zip(indexers, claims, strict=True):
            await indexer.close()
            await claim.close()


async def test_who_lost_the_lease_in_the_middle_drops_what_it_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one learned the same and more before the commit: it is refused, nothing is undone."""
    truth = await one_learns(tmp_path / "one", 150)
    async with await open_sqlite_store(tmp_path / "two") as store:
        first, second = Claims(store, ttl=15), Claims(store, ttl=15)
        one, other = an_indexer(store, first), an_indexer(store, second)
        await record(store, 1, 50)
        await one.learn_step()  # it has things at hand from now on
        await record(store, 51, 50)
        commit_index, refused = store.commit_index, list[str]()

        async def stolen(commit: IndexCommit) -> None:
            monkeypatch.setattr(store, "commit_index", commit_index)
            seen = await store.read_lease(learning_lease(commit.workspace))
            assert seen is not None
            stolen_lease = await store.take_lease(seen.name, "elsewhere/1/x", seen)
            assert stolen_lease is not None
            await store.give_back_lease(stolen_lease)
            await record(store, 101, 50)
            await other.run_until_empty()
            with pytest.raises(StoreFencedError):
                await commit_index(commit)
            refused.append(commit.workspace)
            await commit_index(commit)

        monkeypatch.setattr(store, "commit_index", stolen)
        await one.learn_step()
        assert len(refused) == 1
        await one.run_until_empty()
        await other.run_until_empty()
        assert await known_in(store) == truth
        for each in (one, other):
            await each.close()
        for claims in (first, second):
            await claims.close()


@pytest.mark.real
async def test_processes_share_the_work_and_learn_everything_once(
    where: str, tmp_path: Path
) -> None:
    """Each has its part; together they learned what one alone learns."""
    truth = await one_learns(tmp_path / "one", CALLS)
    async with opened(where) as store:
        with child(where, pause=0.5) as one, child(where, pause=0.5) as other:
            await record(store, 1, CALLS)
            await until_learned(store)
            for each in (one, other):
                assert await asyncio.to_thread(each.end) == {"problem": None}
        assert one.committed
        assert other.committed
        assert sum((one.committed + other.committed).values()) == CALLS * len(WORKSPACES)
        assert await known_in(store) == truth


@pytest.mark.real
async def test_a_process_that_is_killed_is_followed_at_once(where: str, tmp_path: Path) -> None:
    """In the middle of a batch; the others need not wait for its lease, and nothing is doubled."""
    truth = await one_learns(tmp_path / "one", CALLS)
    async with opened(where) as store:
        await record(store, 1, CALLS)
        for _ in range(3):
            with child(where, ttl=600, pause=0.2) as killed:
                killed.read_until(lambda said: "committed" in said)
                killed.read_until(lambda said: "committing" in said)
                killed.send(signal.SIGKILL)
        with child(where, ttl=600) as last:
            await until_learned(store)
            assert await asyncio.to_thread(last.end) == {"problem": None}
        assert await known_in(store) == truth


@pytest.mark.real
async def test_a_process_that_was_stopped_wakes_up_and_harms_nothing(
    where: str, tmp_path: Path
) -> None:
    """Stopped right before a commit for longer than the ttl: others went on, its commit is refused.

    After that it goes on itself.
    """
    truth = await one_learns(tmp_path / "one", CALLS + 100)
    async with opened(where) as store:
        await record(store, 1, CALLS)
        with child(where, ttl=1.5, pause=0.3) as sleeper, child(where, ttl=1.5) as other:
            sleeper.read_until(lambda said: "committing" in said)
            sleeper.send(signal.SIGSTOP)
            await until_learned(store)
            sleeper.send(signal.SIGCONT)
            sleeper.read_until(lambda said: "fenced" in said)
            assert await asyncio.to_thread(other.end) == {"problem": None}
            await record(store, CALLS + 1, 100)
            await until_learned(store)
            assert await asyncio.to_thread(sleeper.end) == {"problem": None}
        assert sleeper.fenced
        assert await known_in(store) == truth
