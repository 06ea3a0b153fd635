"""`aftercall rebuild`: what was learned is learned again from the log, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.service.running_service import (
    ServeProcess,
    aftercall,
    eventually,
    execution,
    failure,
    finished,
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


def record_history(service: ServeProcess, sessions: int = 20) -> None:
    """Failures and their repairs, indexed."""
    records = [
        record
        for n in range(sessions)
        for record in (
            failure(sessionId=f"s-{n}", sequence=0, agent=f"agent-{n}"),
            execution(sessionId=f"s-{n}", sequence=1, agent=f"agent-{n}"),
        )
    ]
    assert httpx2.post(f"{service.url}/executions", json=records).status_code == 202
    eventually(lambda: service.get("/status")["pendingIndexing"] == 0)


def what_is_known(service: ServeProcess) -> tuple[dict[str, Any], Any]:
    """Counts, and the answer to the question without what differs each time."""
    status = service.get("/status")
    answer = httpx2.post(f"{service.url}/suggest", json=QUESTION).json()
    answer.pop("tookMs")
    for suggestion in answer["suggestions"]:
        suggestion.pop("suggestionId")
    return {k: status[k] for k in ("executions", "documents", "tools", "seedPatterns")}, answer


def test_after_a_rebuild_the_same_is_known(tmp_path: Path) -> None:
    """Counts, suggestions and evidence are the same as before."""
    with serving(tmp_path) as service:
        record_history(service)
        before = what_is_known(service)
        service.stop()
    status, out, err = finished("rebuild", "--data-dir", str(tmp_path))
    assert status == 0
    assert "from 40 records" in out
    assert "learning from 40 records with hashing" in err
    with serving(tmp_path) as service:
        assert what_is_known(service) == before


def test_a_running_service_is_not_rebuilt_under(tmp_path: Path) -> None:
    """The lock says who holds the folder, and the service notices nothing."""
    with serving(tmp_path) as service:
        record_history(service, sessions=2)
        before = what_is_known(service)
        status, _, err = finished("rebuild", "--data-dir", str(tmp_path))
        assert status == 1
        assert f"in use by process {service.process.pid}" in err
        assert what_is_known(service) == before


def test_a_rebuild_that_cannot_work_forgets_nothing(tmp_path: Path) -> None:
    """The model is opened before anything is thrown away."""
    with serving(tmp_path) as service:
        record_history(service, sessions=2)
        before = what_is_known(service)
        service.stop()
    status, _, err = finished(
        "rebuild", "--data-dir", str(tmp_path), environ={"AFTERCALL_EMBEDDING_MODEL": "no-such"}
    )
    assert status == 1
    assert "no-such" in err
    with serving(tmp_path) as service:
        assert what_is_known(service) == before


def test_a_rebuild_that_was_killed_can_be_run_again(tmp_path: Path) -> None:
    """Or the service be started, which goes on with what is left."""
    with serving(tmp_path) as service:
        record_history(service, sessions=500)
        before = what_is_known(service)
        service.stop()
    process = aftercall("rebuild", "--data-dir", str(tmp_path))
    assert process.stderr is not None
    eventually(lambda: "learning from" in (process.stderr.readline() if process.stderr else ""))
    process.kill()
    process.communicate(timeout=30)
    with serving(tmp_path) as service:
        eventually(lambda: service.get("/status")["pendingIndexing"] == 0, timeout_s=60)
        assert what_is_known(service) == before
        service.stop()
    assert finished("rebuild", "--data-dir", str(tmp_path))[0] == 0
    with serving(tmp_path) as service:
        assert what_is_known(service) == before


def test_an_index_of_another_model_is_replaced(tmp_path: Path) -> None:
    """This is how one changes the embedding model."""
    with serving(tmp_path) as service:
        record_history(service, sessions=2)
        before = what_is_known(service)
        service.stop()
    record = tmp_path / "vectors" / "index.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"fingerprint": "other@1"}))
    assert finished("rebuild", "--data-dir", str(tmp_path))[0] == 0
    with serving(tmp_path) as service:
        assert what_is_known(service) == before
