"""`aftercall rebuild`: all is learned anew from the log beside what answers, then switched to."""

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ingest.nightly import REBUILD, take_lease
from mongo.sqlite.store import open_sqlite_store
from retrieval.index import edge_shard
from retrieval.index.protocol import VectorIndexError
from retrieval.knowledge.memory import DOCUMENT
from service.rebuild import rebuild_store
from tests.mongo.store_samples import closing
from tests.service.running_service import (
    ServeProcess,
    aftercall,
    eventually,
    execution,
    failure,
    finished,
    hashing_settings,
    on_loop,
    running,
    serving,
)

pytestmark = pytest.mark.real

QUESTION: dict[str, Any] = {
    "execution": {
        "agent": "newcomer",
        "serverName": "rag-server",
        "toolName": "rag_query",
        "parameters": {"query": "mine", "topK": 50},
        "error": {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"},
    }
}

LEASE: dict[str, str] = {"AFTERCALL_INDEXING_LEASE_S": "2"}
"""So that no test waits a quarter of a minute for one that was killed elsewhere."""


def history(sessions: int, first: int = 0) -> list[dict[str, Any]]:
    """Failures and their repairs."""
    return [
        record
        for n in range(first, first + sessions)
        for record in (
            failure(sessionId=f"s-{n}", sequence=0, agent=f"agent-{n}"),
            execution(sessionId=f"s-{n}", sequence=1, agent=f"agent-{n}"),
        )
    ]


def many_documents(count: int) -> list[dict[str, Any]]:
    """Successes of as many shapes, so that there is something to embed."""
    return [
        execution(toolName=f"tool_{n % 50}", parameters={f"name_{n}": "x"}) for n in range(count)
    ]


def record(service: ServeProcess, records: list[dict[str, Any]]) -> None:
    """Record and wait until all is indexed."""
    for start in range(0, len(records), 1000):
        answer = httpx2.post(
            f"{service.url}/executions", json=records[start : start + 1000], timeout=200
        )
        assert answer.status_code == 202
    eventually(lambda: service.get("/status")["pendingIndexing"] == 0)


def answer_of(service: ServeProcess) -> Any:
    """The answer to the question without what differs each time."""
    answer = httpx2.post(f"{service.url}/suggest", json=QUESTION, timeout=200).json()
    answer.pop("tookMs")
    for suggestion in answer["suggestions"]:
        suggestion.pop("suggestionId")
    return answer


def what_is_known(service: ServeProcess) -> tuple[dict[str, Any], Any]:
    """Counts, and the answer to the question."""
    status = service.get("/status")
    kept = ("executions", "documents", "tools", "seedPatterns", "vectors", "consistent", "problem")
    return {each: status[each] for each in kept}, answer_of(service)


def folders(data: Path) -> list[str]:
    """The vector indexes in a data folder."""
    return sorted(path.parent.name for path in data.glob("vectors*/index.json"))


@contextmanager
def steadily(work: Callable[[], None]) -> Iterator[None]:
    """Do it again and again in a thread until the block ends; what it raises fails the test."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.wait(0.02):
                work()
        except BaseException as error:  # noqa: BLE001  # raised again in the test's thread
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=200)
    if raised:
        raise raised[0]


def test_a_running_service_answers_and_records_while_it_is_rebuilt(tmp_path: Path) -> None:
    """No answer is missing or poorer, nothing recorded meanwhile is lost, and it follows."""
    with serving(tmp_path, environ=LEASE) as service:
        record(service, [*history(20), *many_documents(300)])
        before = answer_of(service)
        poorer: list[Any] = []
        arrived: list[str] = []

        def ask() -> None:
            answer = answer_of(service)
            if answer != before:
                poorer.append(answer)

        def arrive() -> None:
            new = execution(toolName="another_tool", parameters={f"late_{len(arrived)}": "x"})
            answer = httpx2.post(f"{service.url}/executions", json=new, timeout=200)
            assert answer.status_code == 202
            arrived.append(new["executionId"])

        with steadily(ask), steadily(arrive):
            status, out, err = finished("rebuild", "--data-dir", str(tmp_path), environ=LEASE)
        assert status == 0, err
        assert f"a service runs on {tmp_path}" in err
        assert "generation 2" in out
        assert poorer == []
        assert arrived
        eventually(lambda: service.get("/status")["generation"] == 2)
        eventually(lambda: service.get("/status")["pendingIndexing"] == 0)
        eventually(lambda: folders(tmp_path) == ["vectors-g2"])

        def all_embedded() -> dict[str, Any] | None:
            status = service.get("/status")  # its vectors may have been counted seconds ago
            agree = status["documents"] == status["vectors"]
            return status if agree else None

        after = eventually(all_embedded)
        assert after["executions"] == 340 + len(arrived)
        assert answer_of(service) == before
        # It learns again.
        record(service, [execution(toolName="afterwards")])
        assert service.get("/status")["documents"] == after["documents"] + 1
        assert service.stop() == 0
    with serving(tmp_path) as service:
        assert answer_of(service) == before


def test_a_rebuild_that_cannot_work_forgets_nothing(tmp_path: Path) -> None:
    """The model is opened before anything is made."""
    with serving(tmp_path) as service:
        record(service, history(2))
        before = what_is_known(service)
        service.stop()
    status, _, err = finished(
        "rebuild", "--data-dir", str(tmp_path), environ={"AFTERCALL_EMBEDDING_MODEL": "no-such"}
    )
    assert status == 1
    assert "no-such" in err
    with serving(tmp_path) as service:
        assert what_is_known(service) == before


def test_a_rebuild_without_room_changes_nothing_and_the_next_one_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before it learns, with the cure; what it had begun is gone with the next."""
    settings, said = hashing_settings(tmp_path), list[str]()
    with running(settings) as service:
        assert service.record(history(3)).status_code == 202
        service.learned()
    with monkeypatch.context() as patch:
        patch.setattr(edge_shard, "MIN_FREE_BYTES", 1 << 60)
        with pytest.raises(VectorIndexError, match="make space"):
            asyncio.run(rebuild_store(settings, said.append))
    assert said == []
    with running(settings) as service:
        assert service.client.get("/status").json()["generation"] == 1
    assert asyncio.run(rebuild_store(settings, said.append)).records == 6
    assert folders(settings.data.dir) == ["vectors-g2"]


def is_said(process: "subprocess.Popen[str]", words: str) -> bool:
    """Whether the next line that it says holds these words."""
    return words in (process.stderr.readline() if process.stderr else "")


def test_a_killed_rebuild_changes_nothing(tmp_path: Path) -> None:
    """The service goes on and learns again; the next rebuild starts anew and leaves nothing."""
    with serving(tmp_path, environ=LEASE) as service:
        record(service, [*history(20), *many_documents(1_500)])
        before, files = answer_of(service), set(tmp_path.iterdir())
        new_index = tmp_path / "vectors-g2" / "index.json"
        reached: list[Callable[[subprocess.Popen[str]], bool]] = [
            lambda _: bool(set(tmp_path.iterdir()) - files),
            lambda process: new_index.exists() and is_said(process, "learning from"),
            lambda process: is_said(process, "learning from"),
        ]
        for number, is_there in enumerate(reached, 1):
            process = aftercall("rebuild", "--data-dir", str(tmp_path), environ=LEASE)
            eventually(partial(is_there, process))
            process.kill()
            process.communicate(timeout=200)
            assert service.get("/status")["generation"] == 1
            assert answer_of(service) == before
            record(service, [execution(toolName="afterwards")])
            assert service.get("/status")["executions"] == 1_540 + number
            assert service.get("/status")["consistent"]
        assert finished("rebuild", "--data-dir", str(tmp_path), environ=LEASE)[0] == 0
        eventually(lambda: service.get("/status")["generation"] == 2)
        eventually(lambda: folders(tmp_path) == ["vectors-g2"])
        assert answer_of(service) == before
        assert service.get("/status")["executions"] == 1_543
        service.stop()
    made = {"vectors-g2", "generation-2.sqlite3"}
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= ({path.name for path in files} | made) - {"vectors", "generation-1.sqlite3"}


async def test_two_rebuilds_at_once_are_one(tmp_path: Path) -> None:
    """The second is refused while the first is at work, and waits for one that is gone."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        first = await take_lease(store, 3.0, REBUILD)
        words = ("rebuild", "--data-dir", str(tmp_path))
        status, _, err = await asyncio.to_thread(finished, *words, environ=LEASE)
        await first.close()
        assert status == 1
        assert "another rebuild is running" in err
        left = await store.leases.read(REBUILD)
        assert await store.leases.take_lease(REBUILD, "elsewhere/1/x", left) is not None
        status, _, err = await asyncio.to_thread(finished, *words, environ=LEASE)
        assert status == 0
        assert "the last rebuild job has not given its lease back: waiting some 2 s" in err


def test_the_model_is_changed_beside_a_service_that_goes_on_with_the_former(tmp_path: Path) -> None:
    """It answers from its former vectors and says that it is to be restarted; then it is new."""
    other = {"AFTERCALL_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    with serving(tmp_path, environ=LEASE) as service:
        record(service, history(20))
        before = answer_of(service)
        status, _, err = finished("rebuild", "--data-dir", str(tmp_path), environ=LEASE | other)
        assert status == 0, err
        assert "restart every service" in err
        said = eventually(lambda: service.get("/status")["problem"])
        assert "AFTERCALL_EMBEDDING_MODEL" in said
        assert answer_of(service) == before
        assert httpx2.get(f"{service.url}/readyz").status_code == 200
        assert folders(tmp_path) == ["vectors", "vectors-g2"]
        late = execution(toolName="late")
        assert httpx2.post(f"{service.url}/executions", json=late).status_code == 202
        assert "PROBLEM" in finished("status", "--service", service.url)[1]
        service.stop()
    with serving(tmp_path, environ=other) as service:
        eventually(lambda: service.get("/status")["pendingIndexing"] == 0)
        after = service.get("/status")
        assert (after["embedder"], after["problem"]) == ("all-MiniLM-L6-v2", None)
        assert after["executions"] == 41
        assert [each["changes"] for each in answer_of(service)["suggestions"]] == [
            each["changes"] for each in before["suggestions"]
        ]
        assert folders(tmp_path) == ["vectors-g2"]


def test_vectors_that_are_gone_are_seen_and_rebuilt(tmp_path: Path) -> None:
    """`aftercall status` says so and names the cure, which works while the service runs."""
    with running(hashing_settings(tmp_path)) as service:
        assert service.record(many_documents(50)).status_code == 202
        status: Callable[[], Any] = lambda: service.client.get("/status").json()  # noqa: E731  # short
        eventually(lambda: status()["pendingIndexing"] == 0)
        knowledge = service.context.store.knowledge
        rows = on_loop(service, knowledge.scan_rows("default", DOCUMENT.name, 20))
        on_loop(service, service.context.index.delete([row.key for row in rows]))
        eventually(lambda: not status()["consistent"])
        assert status()["vectors"] == status()["documents"] - 20
        assert "aftercall rebuild" in status()["problem"]
        out = finished("status", "--service", service.url)[1]
        assert "20 documents have no vector" in out
        assert "aftercall rebuild" in out
        code, _, err = finished("rebuild", "--data-dir", str(tmp_path / "data"))
        assert code == 0, err
        eventually(lambda: status()["consistent"] and status()["generation"] == 2)
        assert status()["problem"] is None
