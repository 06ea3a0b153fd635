"""What breaks below the routes: the contract's error, no internals, and the service goes on."""

import json
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from secrets import token_hex
from typing import Any

import pytest

from embeddings.protocol import EmbeddingError
from mongo.sqlite.store import FILE_NAME
from service.logs import JsonFormatter
from tests.service.running_service import (
    RunningService,
    connected,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)
from tests.service.test_holdup import answer

NO_WRITES = {
    "store_full": ("max_page_count = 1", "max_page_count = 1000000", "free space"),
    "store_read_only": ("query_only = ON", "query_only = OFF", "takes no writes"),
}
"""Codes, what makes SQLite itself refuse writes and take them again, and words of the message."""


def set_pragma(service: RunningService, pragma: str) -> None:
    # Past the writer: it begins each operation with what is refused.
    writer = service.context.store._writer  # type: ignore[attr-defined]  # the one place to reach it
    writer._connection.execute(f"PRAGMA {pragma}").close()


@pytest.mark.parametrize("code", NO_WRITES)
def test_a_store_that_takes_no_writes_is_503_and_recording_goes_on_when_it_does(
    service: RunningService, code: str
) -> None:
    """What was stored stays readable, what did not fit is not stored, and Retry-After says when."""
    refusing, taking, words = NO_WRITES[code]
    before, refused = execution(), execution(result=token_hex(500_000))
    service.record(before)
    set_pragma(service, refusing)
    response = service.record([refused])
    assert response.status_code == 503
    assert response.json()["error"]["code"] == code
    assert words in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) > 0
    assert service.is_stored(before)
    assert not service.is_stored(refused)
    assert service.client.get("/status").status_code == 200
    set_pragma(service, taking)
    assert service.record([refused]).json()["accepted"] == 1
    assert service.is_stored(refused)


def test_a_closed_store_is_503(own_service: RunningService) -> None:
    """Not a 500: the caller may come back."""
    on_loop(own_service, own_service.context.store.close())
    for response in (
        own_service.record(execution()),
        own_service.client.get("/status"),
        own_service.client.get("/tools"),
    ):
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "store_unavailable"
        assert "retry-after" in response.headers
        assert "/" not in response.json()["error"]["message"]  # no paths of this machine


def test_the_unexpected_is_a_500_whose_id_is_in_the_log_without_its_text(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller learns nothing of the internals, the log nothing of the call."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("topK of the secret query was 50")

    monkeypatch.setattr(type(service.context.suggester), "suggest", broken)
    with caplog.at_level(logging.INFO):
        response = service.client.post("/suggest", json={"execution": failure()})
    assert response.status_code == 500
    error = response.json()["error"]
    assert error["code"] == "internal_error"
    assert error["details"]["requestId"] in error["message"]
    assert error["details"]["requestId"] == response.headers["x-request-id"]
    for leak in ("secret", "RuntimeError", "Traceback", ".py"):
        assert leak not in response.text
    lines = [JsonFormatter().format(record) for record in caplog.records]
    [failed] = [line for line in lines if json.loads(line)["event"] == "request failed"]
    assert error["details"]["requestId"] in failed
    assert "builtins.RuntimeError" in failed
    assert "test_faults.py" in failed
    assert "secret" not in "".join(lines)


def test_an_embedder_that_fails_is_no_reason_not_to_answer(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suggestions come from what needs no vectors; similar calls are a 503."""

    async def broken(*_: object, **__: object) -> None:
        raise EmbeddingError("the model is gone: reinstall it")

    monkeypatch.setattr(type(service.context.embedder), "embed", broken)
    assert service.client.post("/suggest", json={"execution": failure()}).json()["suggestions"]
    response = service.client.post("/similar", json={"toolName": "rag_query"})
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "embedder_unavailable"


def test_many_large_bodies_at_once_are_told_to_wait(tmp_path: Any) -> None:
    """Memory is bounded over all requests, not per request alone."""
    settings = hashing_settings(tmp_path, limits={"buffered_bytes": 200_000})
    with running(settings) as service:
        response = service.record(execution(result="x" * 300_000))
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "busy"
        assert "retry-after" in response.headers
        # What was counted is given back.
        for _ in range(5):
            assert service.record(execution(result="x" * 150_000)).status_code == 202


HALF = (
    b"POST /executions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n[1"
)
"""Of a request."""


def test_a_body_that_never_arrives_is_408(tmp_path: Any) -> None:
    """A caller that stalls does not hold its request open for ever."""
    settings = hashing_settings(tmp_path, limits={"body_timeout_s": 0.2})
    with running(settings) as service, connected(service.url) as connection:
        connection.sendall(HALF)
        assert answer(connection) == (408, "request_timeout")
        assert service.record(execution()).status_code == 202


def test_a_caller_who_goes_away_disturbs_nobody(service: RunningService) -> None:
    """Half a body and a closed connection leave the service as it was."""
    with connected(service.url) as connection:
        connection.sendall(HALF)
    assert service.record(execution()).json()["accepted"] == 1


def test_while_another_process_switches_the_store_recording_waits_and_the_rest_goes_on(
    service: RunningService,
) -> None:
    """A rebuild that switches holds the embedded store for seconds: nobody is refused."""
    stored, late = execution(), execution()
    assert service.record(stored).status_code == 202
    path = service.context.settings.data.dir / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as switching:
        switching.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as caller:
            recording = caller.submit(service.record, late)
            for _ in range(20):
                assert service.is_stored(stored)
                asked = service.client.post("/suggest", json={"execution": failure()})
                assert asked.status_code == 200
                assert service.client.get("/readyz").status_code == 200
            assert not recording.done()
            switching.execute("COMMIT")
            assert recording.result(timeout=200).status_code == 202
    assert service.is_stored(late)
