"""What the containers would run, run as processes: entrypoint, command, environment, health checks.

Only what an address names is another one: MongoDB is the tests', and the index is the client's own,
which one process may open at a time, so that the service comes before and after the worker.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.deploy.compose_file import ROOT, example_environment, read_compose
from tests.deploy.test_dockerfile import LAST, environment_of
from tests.mongo.mongo_server import MongoServer, free_port, given_uri, missing
from tests.service.running_service import eventually, execution

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        missing() is not None or given_uri() is not None,
        reason="needs a MongoDB of its own: nx-27017 (the extra `dev`)",
    ),
]

SERVICES = read_compose(example_environment())["services"]


class Stack:
    """The three processes on one pair of stores."""

    def __init__(self, folder: Path, mongo: MongoServer) -> None:
        self.port = free_port()
        self._folder = folder
        self._elsewhere = {
            "AFTERCALL_MONGO_URI": mongo.uri,
            "AFTERCALL_QDRANT_URL": f"local:{folder / 'qdrant'}",
            "AFTERCALL_QDRANT_API_KEY": "",  # a folder asks for none
            "AFTERCALL_EMBEDDING_MODEL": "hashing",
            "AFTERCALL_SERVER_HOST": "127.0.0.1",
            "AFTERCALL_SERVER_PORT": str(self.port),
        }

    def environment(self, name: str) -> dict[str, str]:
        """Of the image and of the compose file, each process with a folder of its own."""
        given = {**environment_of(LAST), **SERVICES[name]["environment"], **self._elsewhere}
        given["AFTERCALL_DATA_DIR"] = str(self._folder / name)
        bin_dir = Path(sys.executable).parent
        return given | {
            "PATH": f"{bin_dir}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
        }

    @contextmanager
    def up(self, name: str) -> Iterator["subprocess.Popen[str]"]:
        """The container's process, healthy by its own health check; ended as an engine would."""
        (self._folder / name).mkdir(mode=0o700, exist_ok=True)
        process = subprocess.Popen(
            [*json.loads(LAST.one("ENTRYPOINT")), *SERVICES[name]["command"]],
            env=self.environment(name), cwd=self._folder / name, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            eventually(lambda: process.poll() is not None or self.health(name) == 0, 120)
            assert process.poll() is None, process.communicate()[0]
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=float(SERVICES[name]["stop_grace_period"].removesuffix("s")))
        finally:
            process.kill()
            process.communicate()

    def health(self, name: str) -> int:
        """The exit status of the health check as it is written."""
        kind, *command = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return subprocess.run(
            command, env=self.environment(name), check=False, capture_output=True, timeout=60
        ).returncode

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = self.ask("GET", "/status").json()
        return told

    def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """With the operator's key of `.env`."""
        key = SERVICES["service"]["environment"]["AFTERCALL_KEYS_BOOTSTRAP"]
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"authorization": f"Bearer {key}"}
        return httpx2.request(method, url, json=body, headers=headers)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    mongo = MongoServer.start(tmp_path / "mongo")
    yield Stack(tmp_path, mongo)
    mongo.stop()


def test_service_worker_and_nightly_run_as_the_compose_file_says(stack: Stack) -> None:
    """What the service takes the worker learns, the night counts, and each ends when it is told."""
    with stack.up("service") as process:
        recorded = stack.ask("POST", "/executions", [execution() for _ in range(20)])
        assert recorded.status_code == 202
        status = stack.status()
        assert (status["executions"], status["indexing"]) == (20, "workers")
        assert status["pendingIndexing"] > 0
    assert process.returncode == 0
    assert stack.health("service") != 0
    with stack.up("worker") as process, stack.up("nightly") as night:
        worked = subprocess.run(
            [sys.executable, "-c", PENDING], env=stack.environment("nightly"), check=True,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert worked.stdout == "0\n"
    assert process.returncode == 0
    assert night.returncode == 0
    assert (stack.health("worker"), stack.health("nightly")) == (1, 1)  # their beats are gone
    with stack.up("service"):
        status = stack.status()
        assert (status["executions"], status["pendingIndexing"]) == (20, 0)
        assert status["documents"] > 0


PENDING = """
import asyncio
from service.environment import read_settings
from service.databases import opened_store
from retrieval.knowledge.rows.log import count_rows

async def main():
    async with opened_store(read_settings()) as store:
        for _ in range(600):
            if not (pending := (await count_rows(store)).pending):
                break
            await asyncio.sleep(0.1)
        print(pending)

asyncio.run(main())
"""
