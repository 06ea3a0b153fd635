"""A database that is away when the service starts, or goes away in the middle."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.mongo.mongo_server import MongoServer, executable, free_port
from tests.service.running_service import ROOT, aftercall, drained, eventually, execution

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(executable() is None, reason="nx-27017 is not installed (the extra `dev`)"),
]

PATIENCE = {"AFTERCALL_MONGO_CONNECT_TIMEOUT_S": "1", "AFTERCALL_MONGO_TIMEOUT_S": "2"}
"""So that no test waits for the defaults."""


@dataclass
class Starting:
    """`aftercall serve` that may not be ready yet."""

    url: str
    errors: list[str]

    def ready(self) -> tuple[int, str]:
        """Status and message of `/readyz`."""
        answer = httpx2.get(f"{self.url}/readyz", timeout=200)
        return answer.status_code, answer.json().get("error", {}).get("message", "")


@contextmanager
def starting(data_dir: Path, uri: str) -> Iterator[Starting]:
    """The service on a log store at `uri`, listening; stopped at the end, with 0."""
    port = free_port()
    process = aftercall(
        "serve", "--port", str(port), "--data-dir", str(data_dir), "--log-format", "json",
        environ=PATIENCE | {"AFTERCALL_MONGO_URI": uri},
    )  # fmt: skip
    with drained(process) as errors:
        service = Starting(f"http://127.0.0.1:{port}", errors)

        def is_up() -> bool:
            try:
                return httpx2.get(f"{service.url}/healthz", timeout=5).status_code == 200
            except httpx2.TransportError:
                assert process.poll() is None, "".join(errors)
                return False

        eventually(is_up)
        yield service
        process.terminate()
        assert process.wait(timeout=200) == 0


@contextmanager
def mongo_at(folder: Path) -> Iterator[MongoServer]:
    """A server that does not run yet."""
    server = MongoServer(folder, free_port())
    folder.mkdir()
    try:
        yield server
    finally:
        server.stop()


def test_a_service_waits_for_its_database(tmp_path: Path) -> None:
    """It lives and says what it waits for; when the database comes, it is ready by itself."""
    with mongo_at(tmp_path / "mongo") as server, starting(tmp_path / "data", server.uri) as service:
        eventually(lambda: "waiting" in service.ready()[1])
        code, message = service.ready()
        assert code == 503
        assert f"waiting for the log store at 127.0.0.1:{server.port}" in message
        record = execution()
        answer = httpx2.post(f"{service.url}/executions", json=record)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert httpx2.get(f"{service.url}/healthz").status_code == 200
        server.run()
        eventually(lambda: service.ready()[0] == 200)
        assert httpx2.post(f"{service.url}/executions", json=record).status_code == 202
    told = [line for line in service.errors if "waiting for the log store at 127" in line]
    assert 1 <= len(told) <= 2  # the phase, and the reason


IMPATIENT = """
import sys
import service.lifecycle
from aftercall.cli import main

assert service.lifecycle.COMMAND_PATIENCE_S == 30
service.lifecycle.COMMAND_PATIENCE_S = 1.0
print([main([*words.split(), *sys.argv[1:]]) for words in ("rebuild", "nightly", "export -")])
"""
"""Three commands of `aftercall`, which wait for a second where they wait for half a minute."""


def test_a_command_waits_for_half_a_minute_and_then_says_so(tmp_path: Path) -> None:
    """In one line, for whoever schedules it; the half minute is a second here."""
    port = free_port()
    ended = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "--data-dir", str(tmp_path), "--log-level", "error"],
        env={
            **{name: value for name, value in os.environ.items() if "AFTERCALL" not in name},
            "AFTERCALL_MONGO_CONNECT_TIMEOUT_S": "0.2",
            "AFTERCALL_MONGO_TIMEOUT_S": "0.2",
            "AFTERCALL_EMBEDDING_MODEL": "hashing",
            "AFTERCALL_MONGO_URI": f"mongodb://ann:opensesame@127.0.0.1:{port}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
        },
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.stdout == "[1, 1, 1]\n"
    said = ended.stderr.splitlines()
    problems = [line for line in said if "waiting for the log store" not in line]
    assert len(problems) == 3
    for line in problems:
        assert line.startswith("aftercall: ")
        assert f"127.0.0.1:{port}" in line
        assert "does not answer" in line
    assert "opensesame" not in ended.stderr
