"""SIGKILL under load: every acknowledged execution is there once, and learned from once."""

import asyncio
import threading
from pathlib import Path

import httpx2
import pytest

from mongo.records import ToolKey
from mongo.sqlite.store import open_sqlite_store
from retrieval.log import StoreCounts, counts, executions
from retrieval.memory import Memory
from tests.service.running_service import ServeProcess, eventually, execution, serving

pytestmark = pytest.mark.real

THREADS = 4
BATCH = 50
KILLS = 2
ENOUGH = 1500
"""Acknowledged executions after which the service is killed, while more are on their way."""


class Load:
    """Threads that send batches until the service is gone, and remember what was acknowledged."""

    def __init__(self, service: ServeProcess) -> None:
        self._service = service
        self._lock = threading.Lock()
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self._threads = [threading.Thread(target=self._send) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=30)

    def _send(self) -> None:
        with httpx2.Client(base_url=self._service.url, timeout=10) as client:
            while True:
                batch = [
                    execution(sessionId=f"s-{n}", parameters={"query": f"q {n}", "topK": n})
                    for n in range(BATCH)
                ]
                ids = {record["executionId"] for record in batch}
                with self._lock:
                    self.sent |= ids
                try:
                    accepted = client.post("/executions", json=batch).json()["accepted"]
                except httpx2.TransportError:
                    return
                if accepted == BATCH:
                    with self._lock:
                        self.acknowledged |= ids


async def what_is_stored(folder: Path, ids: list[str]) -> tuple[StoreCounts, list[str], int]:
    """The counts, those of the ids that are stored, and how many successes were learned from."""
    store = await open_sqlite_store(folder)
    try:
        found = await executions(store.events, "default", ids)
        knowledge = await Memory(store).knowledge(ToolKey("default", "rag-server", "rag_query"))
        profile = knowledge.profile(None) if knowledge else None
        return (
            await counts(store),
            [each.execution.execution_id for each in found],
            profile.successes if profile else 0,
        )
    finally:
        await store.close()


def test_kill_9_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Killed while four threads record and it indexes, again and again; then all is counted."""
    sent: set[str] = set()
    acknowledged: set[str] = set()
    for _ in range(KILLS):
        with serving(tmp_path) as service:
            load = Load(service)
            eventually(lambda load=load: len(load.acknowledged) >= ENOUGH, timeout_s=60)
            service.process.kill()
            load.join()
        sent |= load.sent
        acknowledged |= load.acknowledged

    with serving(tmp_path) as service:
        eventually(lambda: service.get("/status")["pendingIndexing"] == 0, timeout_s=120)
        status = service.get("/status")
        assert service.stop() == 0

    held, stored, learned = asyncio.run(what_is_stored(tmp_path, sorted(sent)))
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    assert held.executions == status["executions"] == len(stored)
    assert held.pending == 0
    assert learned == len(stored)


def test_killed_while_it_indexes_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """A backlog that was acknowledged before the kill is learned from after the restart."""
    with serving(tmp_path) as service:
        with httpx2.Client(base_url=service.url, timeout=30) as client:
            for _ in range(10):
                client.post("/executions", json=[execution() for _ in range(500)])
        service.process.kill()
    with serving(tmp_path) as again:
        eventually(lambda: again.get("/status")["pendingIndexing"] == 0, timeout_s=60)
        again.stop()
    held, _, learned = asyncio.run(what_is_stored(tmp_path, []))
    assert (held.executions, held.pending, learned) == (5000, 0, 5000)
