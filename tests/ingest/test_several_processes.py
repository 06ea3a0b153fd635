"""Several processes learn one store: killed or asleep at a commit, they end as one alone."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingest.indexer import Indexer
from mongo.protocol import Store
from mongo.records import Commit
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.log import count_rows
from tests.ingest.histories import WORKSPACE, differences, history
from tests.ingest.shared_scenario import open_shared
from tests.mongo.mongo_server import SharedMongo
from tests.service.warm_starts import WarmStart

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def mongo() -> Iterator[SharedMongo]:
    server = SharedMongo()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "mongodb"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is that several processes open, as the scenario takes it."""
    if request.param == "sqlite":
        return str(tmp_path / "shared")
    mongo: SharedMongo = request.getfixturevalue("mongo")
    return f"{mongo.database(tmp_path)}@{mongo.uri()}"


@asynccontextmanager
async def recorded(where: str, count: int) -> AsyncIterator[Store]:
    """The store, with a history in its log."""
    if "@" not in where:
        await (await open_sqlite_store(Path(where))).close()
    store = await open_shared(where)
    try:
        await store.events.append(WORKSPACE, list(history(5, count, 1.0)))
        yield store
    finally:
        await store.close()


class Child:
    """A process that learns beside others."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def read_until(self, word: str) -> None:
        assert self.process.stdout is not None
        while (said := self.process.stdout.readline().strip()) != word:
            assert said, f"it has ended before it was {word}"

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.read_until("ended")


@contextmanager
def child(where: str, ttl: float, *falls: str) -> Iterator[Child]:
    """Start one, that falls by a signal at a commit; it is killed in the end if it still runs."""
    words = (where, str(ttl), *falls)
    with WarmStart(words, os.environ, main="tests.ingest.shared_scenario") as process:
        started = Child(process)
        try:
            started.read_until("ready")
            yield started
        finally:
            process.kill()


async def until_learned(store: Store) -> None:
    async with asyncio.timeout(120):
        while (await count_rows(store)).pending:  # noqa: ASYNC110  # other processes do not tell
            await asyncio.sleep(0.05)


async def test_a_process_that_is_killed_is_followed_at_once(where: str) -> None:
    """In the middle of a batch; the others need not wait for its lease, and nothing is doubled."""
    async with recorded(where, 150) as store:
        for _ in range(3):
            with child(where, 600, "SIGKILL", "2") as killed:
                killed.read_until("committed")
                assert await asyncio.to_thread(killed.process.wait, 60) == -signal.SIGKILL
        with child(where, 600) as last:
            await until_learned(store)
            await asyncio.to_thread(last.end)
        assert await differences(store) == []


async def test_a_process_that_slept_through_its_lease_harms_nothing(where: str) -> None:
    """Others went on, and what it still commits is refused; after that it goes on itself."""
    async with recorded(where, 150) as store:
        with child(where, 1.5, "SIGSTOP", "2") as sleeper:
            sleeper.read_until("committed")
            with child(where, 1.5) as other:
                await until_learned(store)
                sleeper.process.send_signal(signal.SIGCONT)
                sleeper.read_until("fenced")
                await asyncio.to_thread(other.end)
            await store.events.append(WORKSPACE, list(history(6, 20, 1.0)))
            await until_learned(store)
            await asyncio.to_thread(sleeper.end)
        assert await differences(store) == []


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_who_lost_the_lease_moves_no_cursor(where: str, *, is_forgotten: bool) -> None:
    """Though the new holder has learned nothing yet: neither behind events nor forgotten ones."""
    async with recorded(where, 20) as store:
        nothing: Any = None  # is embedded
        learner = Indexer(
            store=store,
            memory=Memory(store),
            index=nothing,
            embedder=nothing,
            lease_s=600,
            batch=10,
        )
        await learner.learn_step()
        [cursor] = (await store.knowledge.read_cursors()).values()
        assert cursor.position == 10
        [lease] = [each.lease for each in learner._leases._keepers.values()]
        newer = await store.leases.take_lease(
            lease.name, "another", await store.leases.read(lease.name)
        )
        await store.knowledge.commit(Commit(WORKSPACE, lease=newer))
        if is_forgotten:
            await store.events.forget_events(WORKSPACE, range(11, 100))
        await learner.learn_step()
        assert (await store.knowledge.read_cursors())[WORKSPACE].position == cursor.position
        await learner.close()


async def test_events_that_were_forgotten_last_are_not_waited_for(where: str) -> None:
    """Nothing is pending behind them, and what comes next is learned."""
    async with recorded(where, 20) as store:
        [*_, last] = await store.events.read_after(WORKSPACE, 0, 100)
        await store.events.forget_events(WORKSPACE, [last.position])
        for later in ([], list(history(7, 5, 1.0))):
            await store.events.append(WORKSPACE, later)
            with child(where, 600) as learner:
                await until_learned(store)
                await asyncio.to_thread(learner.end)
        assert await differences(store) == []
