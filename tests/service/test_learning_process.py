"""Learning in a process of its own: the same rows, under the lease of the service, and its end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path

import pytest

from aftercall.models import Execution
from aftercall.redaction import Redactor
from bench.history import executions
from ingest import pacing
from ingest.batches import (
    BatchLearner,
    CachedLearner,
    KnowledgePlace,
    LearnerByLoad,
    LearnerEndedError,
)
from ingest.intake import Intake
from mongo.errors import StoreFencedError
from mongo.protocol import Store
from mongo.records import Commit, Cursor, Lease, Row
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import CALIBRATION
from service import learning_process
from service.learning_process import LearningProcess, start_learning_process
from tests.ingest.histories import WORKSPACE, differences
from tests.service.running_service import hashing_settings

LEASE = Lease("learning", "this service", 1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A log of 600 calls."""
    opened = await open_sqlite_store(tmp_path / "data")
    intake = Intake(opened.events, Redactor(), lambda: None)
    calls = [Execution.model_validate(each) for each in islice(executions(600), 600)]
    await intake.accept_executions(WORKSPACE, calls)
    yield opened
    await opened.close()


@pytest.fixture
async def process(store: Store, tmp_path: Path) -> AsyncIterator[LearningProcess]:
    """A process that learns next to the store."""
    started = await start_learning_process(hashing_settings(tmp_path))
    yield started
    await started.close()


async def learn_once(store: Store, learner: BatchLearner, most: int = 100) -> int:
    """Let a learner learn a batch from the cursor on, and return how many events it had."""
    cursor = (await store.knowledge.read_cursors()).get(WORKSPACE, Cursor())
    learned = await learner.learn_batch(store.knowledge, WORKSPACE, cursor, most, LEASE)
    return learned.events if learned else 0


async def test_it_learns_what_would_be_learned_here(store: Store, process: LearningProcess) -> None:
    """Also when others commit in between, whether that changes what it has decoded or not."""
    assert await learn_once(store, process) == 100
    serial = await store.knowledge.commit(Commit(WORKSPACE))
    process.follow_commit(KnowledgePlace(1, WORKSPACE), serial)
    assert await learn_once(store, process) == 100
    await store.knowledge.commit(Commit(WORKSPACE, put=[Row(CALIBRATION, "", b"{}")]))
    assert await learn_once(store, process) == 100
    process.forget_rows()
    while await learn_once(store, process):
        pass
    assert await differences(store) == []


async def test_one_that_lost_its_lease_commits_nothing(
    store: Store, process: LearningProcess
) -> None:
    """The service hears it as if it had committed itself, and the process goes on."""
    await store.knowledge.commit(Commit(WORKSPACE, lease=Lease("learning", "another", 2)))
    with pytest.raises(StoreFencedError):
        await learn_once(store, process)
    assert (await store.knowledge.read_cursors())[WORKSPACE].position == 0
    learned = await process.learn_batch(
        store.knowledge, WORKSPACE, Cursor(0, 1), 100, Lease("learning", "this service", 3)
    )
    assert learned is not None
    assert learned.events == 100


async def test_a_killed_process_loses_nothing(store: Store, process: LearningProcess) -> None:
    """What it was asked for is learned here, and no other process is started."""

    async def start() -> LearningProcess:
        return process

    learner = LearnerByLoad(store.events, start)
    learner.tend_process(is_much=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert learner.is_elsewhere
    assert await learn_once(store, learner) == 100
    os.kill(process.pid, signal.SIGKILL)
    assert await learn_once(store, learner) == 100
    assert not learner.is_elsewhere
    learner.tend_process(is_much=True)
    assert not learner.is_elsewhere
    while await learn_once(store, learner):
        pass
    assert await differences(store) == []


async def test_a_process_that_hangs_is_killed(
    store: Store, process: LearningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service goes on without it."""
    monkeypatch.setattr(learning_process, "_ANSWER_S", 0.5)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(LearnerEndedError, match="did not answer"):
        await learn_once(store, process)
    assert await learn_once(store, CachedLearner(store.events)) == 100


async def test_it_lives_as_long_as_there_is_much_to_learn(store: Store, tmp_path: Path) -> None:
    """And what it had decoded is decoded here afterwards."""
    settings = hashing_settings(tmp_path)
    learner = LearnerByLoad(store.events, lambda: start_learning_process(settings))
    learner.tend_process(is_much=False)
    assert not learner.is_elsewhere
    await learn_once(store, learner)
    learner.tend_process(is_much=True)
    async with asyncio.timeout(60):
        while not learner.is_elsewhere:
            assert await learn_once(store, learner, 1) <= 1  # it is learned here until then
            await asyncio.sleep(0.01)
    await learn_once(store, learner)
    for _ in range(pacing.QUIET_LOOKS + 1):
        learner.tend_process(is_much=False)
    assert learner.is_elsewhere
    learner.tend_process(is_much=False)
    await learner.close()
    assert not learner.is_elsewhere
    while await learn_once(store, learner):
        pass
    assert await differences(store) == []


async def test_without_a_store_it_does_not_start(tmp_path: Path) -> None:
    """The service learns itself then."""
    with pytest.raises(LearnerEndedError, match="ended with status 1"):
        await start_learning_process(hashing_settings(tmp_path / "nothing"))


async def test_another_generation_is_taken_up(store: Store, process: LearningProcess) -> None:
    """After a rebuild has switched the store, which the process hears by the order."""
    await learn_once(store, process)
    await store.open_generation(2)
    await store.switch_generation(2, {})
    while await learn_once(store, process):
        pass
    assert (await store.knowledge.read_cursors())[WORKSPACE].position == 600
    other = CachedLearner(store.events)
    assert await learn_once(store, other) == 0
