"""A true service for the tests: real stores, the real app, a real Uvicorn on a free port."""

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import uvloop

from aftercall.models import Execution
from aftercall.process import bind_socket, http_server, url_of
from mongo.records import Commit, Row, ToolKey, encode_json
from retrieval.knowledge.memory import HEALTH, TROUBLE, USED, tool_row
from retrieval.knowledge.rows.health import KnownHealth
from service.context import Context, Lifecycle, open_context
from service.server import bounded_protocol, create_app
from service.settings import DataSettings, EmbeddingSettings, RetentionSettings, Settings
from tests.service.warm_starts import WarmStart

ROOT = Path(__file__).parents[2]

DAY = str((datetime.now(UTC) - timedelta(days=1)).date())
"""When calls were made whose time does not matter: what is older than the retention is refused."""

T = TypeVar("T")

Run = Callable[..., tuple[int, str, str]]


class Recorded:
    """A recorder that keeps what it gets."""

    def __init__(self) -> None:
        self.executions: list[Execution] = []

    def record(self, execution: Execution) -> None:
        """Keep it."""
        self.executions.append(execution)


def hashing_settings(folder: Path, **sections: Any) -> Settings:
    """Settings for a service on `folder` whose embedder needs no model, and that keeps all."""
    settings = Settings(
        data=DataSettings(dir=folder / "data"),
        embedding=EmbeddingSettings(model="hashing"),
        retention=RetentionSettings(days=0),
    )
    return settings.with_values(**sections)


def execution(**fields: Any) -> dict[str, Any]:
    """A valid success in the wire's form, with a new id."""
    return {
        "executionId": str(uuid4()), "timestamp": f"{DAY}T14:30:00Z", "agent": "librarian",
        "serverName": "rag-server", "toolName": "rag_query",
        "parameters": {"query": "reflection", "topK": 5}, "outcome": "success", **fields,
    }  # fmt: skip


def failure(**fields: Any) -> dict[str, Any]:
    """A valid failure in the wire's form, with a new id."""
    error = {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"}
    return execution(
        **{"outcome": "failure", "error": error, "parameters": {"query": "x", "topK": 50}, **fields}
    )


def eventually(ask: Callable[[], T | None], timeout_s: float = 200) -> T:
    """The first answer that is not None or False; fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.02)  # between two questions, not for luck
    raise TimeoutError(f"not so within {timeout_s} s")


@dataclass(frozen=True)
class RunningService:
    """A service in a thread of this process."""

    url: str
    context: Context
    loop: asyncio.AbstractEventLoop
    client: httpx2.Client

    def record(self, body: object) -> httpx2.Response:
        """POST /executions."""
        return self.client.post("/executions", json=body)

    def record_text(self, body: str | bytes) -> httpx2.Response:
        """POST /executions with a body as it is."""
        content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        return self.client.post(
            "/executions", content=content, headers={"content-type": "application/json"}
        )

    def is_stored(self, record: dict[str, Any]) -> bool:
        """Whether an execution can be read back."""
        return self.client.get(f"/executions/{record['executionId']}").status_code == 200

    def learned(self, timeout_s: float = 200) -> None:
        """Wait until all that is durable is usable."""
        eventually(lambda: self.client.get("/status").json()["pendingIndexing"] == 0, timeout_s)


def on_loop(service: RunningService, work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of the service's own stores returns, run where they live."""
    return asyncio.run_coroutine_threadsafe(work, service.loop).result(timeout=200)


def put_rows(service: RunningService, *rows: Row) -> None:
    """Leave rows of knowledge, as the learner and nightly jobs do."""

    async def commit() -> None:
        serial = await service.context.store.knowledge.commit(Commit("default", list(rows)))
        service.context.memory.forget_rows("default", [(r.kind, r.key) for r in rows], serial)

    on_loop(service, commit())


def put_health(service: RunningService, known: Mapping[ToolKey, KnownHealth]) -> None:
    """Let this be what was counted of tools."""
    at = int(time.time() * 1000)
    rows = []
    for tool, health in known.items():
        key = tool_row(tool)
        data = encode_json(health, sparse=True)
        rows += [
            Row(HEALTH.name, key, data, tool),
            Row(USED.name, key, tool=tool, rank=at),
            Row(TROUBLE.name, key, tool=tool, rank=at),
        ]
    put_rows(service, *rows)


@contextmanager
def running(settings: Settings, port: int = 0) -> Iterator[RunningService]:
    """Open the services of `settings` and serve them until the block ends."""
    listener = bind_socket("127.0.0.1", port)
    lifecycle = Lifecycle()
    server = http_server(
        create_app(settings, lifecycle), http=bounded_protocol(settings.limits), ws="none",
        lifespan="off", access_log=False, log_config=None,
    )  # fmt: skip
    loops: list[asyncio.AbstractEventLoop] = []
    faults: list[BaseException] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with open_context(settings) as context:
            lifecycle.context = context
            await server.serve(sockets=[listener])

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:  # noqa: BLE001  # raised again in the test's thread
            faults.append(error)

    thread = threading.Thread(target=run, name="service under test")
    thread.start()
    try:
        eventually(lambda: server.started or faults)
        if faults:
            raise faults[0]
        if lifecycle.context is None:
            raise RuntimeError("the server started without its services")
        with httpx2.Client(base_url=url_of(listener), timeout=200) as client:
            yield RunningService(url_of(listener), lifecycle.context, loops[0], client)
    finally:
        server.should_exit = True
        thread.join(timeout=200)
        listener.close()
    if faults:
        raise faults[0]


def connected(url: str) -> socket.socket:
    """A connection to a service, to send it bytes as they are."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=200)


@dataclass(frozen=True)
class ServeProcess:
    """`aftercall serve` in a process of its own."""

    process: "subprocess.Popen[str]"
    url: str
    ready_line: str
    errors: list[str]
    """Lines of stderr so far; all of them once it has ended."""

    def get(self, path: str) -> dict[str, Any]:
        """The JSON of a GET."""
        answer: dict[str, Any] = httpx2.get(self.url + path, timeout=200).json()
        return answer

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=200)


def aftercall(
    *arguments: str, environ: dict[str, str] | None = None, files: int | None = None
) -> "subprocess.Popen[str]":
    """Start the `aftercall` command of this checkout with the hashing embedder.

    It may open `files` files, where that is given.
    """
    return WarmStart(
        arguments,
        {
            **{k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")},
            "AFTERCALL_EMBEDDING_MODEL": "hashing",
            "AFTERCALL_RETENTION_DAYS": "0",
            **(environ or {}),
        },
        files,
    )


def finished(
    *arguments: str, environ: dict[str, str] | None = None, stdin: str = ""
) -> tuple[int, str, str]:
    """Run the command to its end: exit status, stdout, stderr."""
    process = aftercall(*arguments, environ=environ)
    out, err = process.communicate(stdin, timeout=180)
    return process.returncode, out, err


@contextmanager
def drained(process: "subprocess.Popen[str]") -> Iterator[list[str]]:
    """What it says on stderr, read all the time; it is killed at the end if it still runs."""
    errors: list[str] = []
    drain = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    drain.start()
    try:
        yield errors
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=200)
        drain.join(timeout=5)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()


@contextmanager
def serving(
    data_dir: Path, *arguments: str, environ: dict[str, str] | None = None, files: int | None = None
) -> Iterator[ServeProcess]:
    """`aftercall serve` on a free port, ready; killed at the end if it still runs."""
    words = ("serve", "--port", "0", "--data-dir", str(data_dir), *arguments)
    process = aftercall(*words, environ=environ, files=files)
    with drained(process) as errors:
        line = process.stdout.readline() if process.stdout else ""
        if " ready at " in line:
            url = line.split(" ready at ")[1].split()[0]
            yield ServeProcess(process, url, line, errors)
            return
        process.wait(timeout=200)
    raise RuntimeError(f"serve ended with {process.returncode}: {''.join(errors)}")
