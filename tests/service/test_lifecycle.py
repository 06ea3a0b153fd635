"""`aftercall serve` as a process: starting, refusing to start, stopping."""

import asyncio
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn

from aftercall.process import bind_socket, url_of
from mongo.sqlite import files
from service.context import Lifecycle
from service.lifecycle import CannotOpenError, keep_doing, shorten_errors
from service.server import create_app
from tests.service.running_service import (
    ROOT,
    ServeProcess,
    aftercall,
    connected,
    eventually,
    execution,
    failure,
    finished,
    hashing_settings,
    serving,
)

pytestmark = pytest.mark.real


def serve_refused(data_dir: Path, *arguments: str, environ: dict[str, str] | None = None) -> str:
    """The one line with which `aftercall serve` refuses to start."""
    status, out, err = finished(
        "serve", "--port", "0", "--data-dir", str(data_dir), "--log-level", "error", *arguments,
        environ=environ,
    )  # fmt: skip
    assert status == 1
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("aftercall: ")
    return lines[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_0_and_what_was_stored_is_there_again(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Graceful, for a supervisor and for Ctrl-C alike; the folder can be opened at once.

    One line says when calls are served, where, from what folder and stores, by which embedder.
    """
    record = execution()
    with serving(tmp_path) as service:
        for part in (str(tmp_path), "sqlite", "qdrant-edge", "hashing", "http://127.0.0.1:"):
            assert part in service.ready_line
        httpx2.post(f"{service.url}/executions", json=record)
        assert service.stop(number) == 0
    with serving(tmp_path) as again:
        assert again.get(f"/executions/{record['executionId']}")["toolName"] == "rag_query"
        assert again.stop() == 0


def test_requests_in_flight_are_answered_before_it_stops(tmp_path: Path) -> None:
    """A body that is still arriving when the signal comes is recorded."""
    record = execution()
    body = json.dumps(record).encode()
    with serving(tmp_path) as service:
        with connected(service.url) as connection:
            head = (
                "POST /executions HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(head.encode() + body[:20])
            service.get("/status")  # answered after the half request was begun
            service.process.send_signal(signal.SIGTERM)
            eventually(lambda: not listens(service.url))
            connection.sendall(body[20:])
            assert connection.recv(1000).startswith(b"HTTP/1.1 202")
        assert service.process.wait(timeout=200) == 0
    with serving(tmp_path) as again:
        assert again.get(f"/executions/{record['executionId']}")["agent"] == "librarian"


def listens(url: str) -> bool:
    try:
        connected(url).close()
    except OSError:
        return False
    return True


@contextmanager
def stalled(tmp_path: Path, shutdown_s: int) -> Iterator[ServeProcess]:
    """A service with half a request."""
    environ = {"AFTERCALL_SERVER_SHUTDOWN_S": str(shutdown_s)}
    with serving(tmp_path, environ=environ) as service, connected(service.url) as connection:
        connection.sendall(
            b"POST /executions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n["
        )
        service.get("/status")  # answered after the half request was begun
        yield service


def test_a_request_that_never_ends_does_not_hold_it_up(tmp_path: Path) -> None:
    """Running requests get a bounded time."""
    with stalled(tmp_path, shutdown_s=1) as service:
        assert service.stop() == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """Whoever does not want to wait need not."""
    with stalled(tmp_path, shutdown_s=60) as service:
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: not listens(service.url))
        assert service.stop(signal.SIGINT) == 128 + signal.SIGINT


def test_a_second_process_on_the_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    """The line names the folder, the holder and the cure."""
    with serving(tmp_path) as first:
        line = serve_refused(tmp_path)
        assert f"in use by process {first.process.pid}" in line
        assert "--data-dir" in line
        assert first.get("/readyz") == {"status": "ready"}


def test_a_taken_port_is_said_before_anything_is_opened(tmp_path: Path) -> None:
    """With the cure, and without touching the folder."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = serve_refused(tmp_path / "data", "--port", port)
    assert f"127.0.0.1:{port}" in line
    assert "--port" in line
    assert not (tmp_path / "data").exists()


def of_another_model(vectors: Path) -> None:
    index = vectors / "index.json"
    as_it_was = json.loads(index.read_text())
    index.write_text(json.dumps(as_it_was | {"fingerprint": "another-model@0123456789ab"}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(of_another_model, "another-model@0123456789ab"), (shutil.rmtree, "aftercall rebuild")],
)
def test_vectors_of_another_model_or_none_are_refused_and_rebuild_is_the_cure(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    """Else answers would be nonsense, or poorer, without a word; the cure that is named works."""
    with serving(tmp_path) as service:
        httpx2.post(f"{service.url}/executions", json=execution())
        eventually(lambda: service.get("/status")["pendingIndexing"] == 0)
        service.stop()
    spoil(tmp_path / "vectors")
    line = serve_refused(tmp_path)
    assert said in line
    assert "aftercall rebuild" in line
    status, out, _ = finished("rebuild", "--data-dir", str(tmp_path))
    assert status == 0
    assert "from 1 records" in out
    with serving(tmp_path) as again:
        assert again.get("/status")["documents"] == 1


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        (("--port", "99999"), {}, "--port: should be less than or equal to 65535"),
        (("--host", "no.such.host.invalid"), {}, "--host"),
        (("--host", "a" * 80), {}, "--host"),  # longer than a label of a host name may be
        ((), {"AFTERCALL_EMBEDDING_MODEL": "no-such-model"}, "all-MiniLM-L6-v2"),
    ],
)
def test_impossible_options_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], environ: dict[str, str], said: str
) -> None:
    """In one line too, with what would do."""
    assert said in serve_refused(tmp_path, *arguments, environ=environ)


def test_no_space_at_the_start_is_told_as_such(tmp_path: Path) -> None:
    """Not in the words for a call that was not stored: nobody has one to send again."""
    with pytest.raises(CannotOpenError, match="Free space") as told, shorten_errors(tmp_path):
        raise files.full_error(tmp_path)
    assert str(tmp_path) in str(told.value)
    assert "this call" not in str(told.value)
    assert "--data-dir" in str(told.value)


def test_status_tells_what_a_service_that_is_not_ready_does(tmp_path: Path) -> None:
    """Which service it is, what it is doing, and that asking again will help; exit code 1."""
    lifecycle = Lifecycle(phase="loading its embedding model")
    config = uvicorn.Config(
        create_app(hashing_settings(tmp_path), lifecycle), lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    with bind_socket("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            eventually(lambda: server.started)
            url = url_of(listener)
            status, out, err = finished("status", "--service", url)
        finally:
            server.should_exit = True
            thread.join(timeout=200)
    assert (status, out) == (1, "")
    [line] = err.splitlines()
    assert line.startswith(f"aftercall: the service at {url} ")
    assert "loading its embedding model; try again shortly" in line


def test_a_service_that_starts_all_the_same_warns(tmp_path: Path) -> None:
    """Of an address that strangers reach, which somebody asked for, and of unknown variables."""
    environ = {"AFTERCALL_SERVER_ALLOW_STRANGERS": "1", "AFTERCALL_SERVER_PROT": "1"}
    with serving(tmp_path, "--host", "0.0.0.0", environ=environ) as service:  # noqa: S104  # the very case
        assert service.stop() == 0
    said = "".join(service.errors)
    assert "anybody there may read and write" in said
    assert "AFTERCALL_SERVER_PROT is not a setting; did you mean AFTERCALL_SERVER_PORT?" in said


def test_a_signal_while_it_starts_stops_it(tmp_path: Path) -> None:
    """Also before it was ready, and the lock is free afterwards."""
    process = aftercall("serve", "--port", "0", "--data-dir", str(tmp_path), "--log-format", "json")
    assert process.stderr is not None
    process.stderr.readline()  # its first event: it is opening something
    process.terminate()
    process.communicate(timeout=200)
    assert process.returncode == 0
    with serving(tmp_path) as again:
        assert again.stop() == 0


def test_logs_are_json_lines_without_what_was_in_the_calls(tmp_path: Path) -> None:
    """Event, route, status and duration; never parameters, contexts, results, messages."""
    record = failure(
        parameters={"zebra": "zebra"}, context="giraffe", result="walrus",
        error={"message": "ocelot"},
    )  # fmt: skip
    options = ("--log-format", "json", "--log-level", "debug")
    with serving(tmp_path, *options) as service, httpx2.Client(base_url=service.url) as client:
        client.post("/executions", json=[record, {"walrus": "ocelot"}])
        malformed = {"content-type": "application/json"}
        client.post("/executions", content=b"{zebra", headers=malformed)
        client.post("/suggest", json={"execution": record}).raise_for_status()
        client.get("/zebra/giraffe?walrus=ocelot")
        client.get(f"/executions/{record['executionId']}")
        service.stop()
    events = [json.loads(line) for line in service.errors]
    [recorded] = [e for e in events if e["event"] == "request" and e["status"] == 202]
    assert recorded["route"] == "/executions"
    assert recorded["method"] == "POST"
    assert recorded["duration_ms"] > 0
    assert recorded["request_id"]
    text = "".join(service.errors)
    assert not [word for word in ("zebra", "giraffe", "walrus", "ocelot") if word in text]


COMMANDS = """
import service.cli.serve, service.cli.rebuild, service.cli.settings, service.cli.import_file
"""
SERVING = """
import tempfile
from pathlib import Path
from tests.service.running_service import failure, hashing_settings, running
with tempfile.TemporaryDirectory() as folder, running(hashing_settings(Path(folder))) as service:
    service.client.post("/suggest", json={"execution": failure()}).raise_for_status()
    service.record(failure()).raise_for_status()
    for path in ("/status", "/known-tools", "/mcp"):
        service.client.get(path)
"""


@pytest.mark.parametrize(
    ("script", "heavy"),
    [
        (COMMANDS, ("fastapi", "uvicorn", "pydantic_settings", "numpy", "onnxruntime", "qdrant")),
        (SERVING, ("torch", "transformers", "sentence_transformers", "sklearn", "mcp", "requests",
                   "opentelemetry.sdk", "opentelemetry.exporter", "aftercall.tracing", "jinja2",
                   "google.protobuf", "pydantic.v1", "service.hooks.handling")),
    ],
    ids=["commands", "service"],
)  # fmt: skip
def test_nothing_heavy_is_imported_before_it_is_needed(script: str, heavy: tuple[str]) -> None:
    """`aftercall --help` is instant; a service does without what nobody has asked it for."""
    script += f"import sys\nprint([name for name in sys.modules if name.startswith({heavy!r})])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


async def test_what_goes_on_beside_takes_nothing_from_the_programs_own_dice() -> None:
    """A notebook that seeds them gets the same numbers with a service in its process."""
    steps = asyncio.Queue[None]()

    async def step() -> float:
        await steps.put(None)
        return 0.0

    before = random.getstate()
    async with keep_doing(step, "stepping", 0.0, retry_s=0.0):
        for _ in range(3):
            await steps.get()
    assert random.getstate() == before
