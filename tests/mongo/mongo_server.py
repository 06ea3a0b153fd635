"""A MongoDB for tests: the one that `AFTERCALL_TEST_MONGO_URI` names, else `nx-27017`.

`nx-27017` speaks MongoDB's wire protocol over SQLite files. It is a process of its own, so that it
can be stopped, frozen and killed; a given server is left running, and its databases are dropped.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Self
from uuid import uuid4

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

GIVEN = "AFTERCALL_TEST_MONGO_URI"

_PATIENCE_S = 200.0

_RUN = uuid4().hex[:8]


def given_uri() -> str | None:
    """The address of a real server, when one is given."""
    return os.environ.get(GIVEN) or None


def left_behind() -> list[str]:
    """Databases of this process on a given server."""
    given = given_uri()
    if given is None:
        return []
    with MongoClient[dict[str, object]](given, serverSelectionTimeoutMS=10_000) as client:
        return [name for name in client.list_database_names() if f"_{_RUN}_" in name]


def executable() -> Path | None:
    """The test server's executable, beside this interpreter or on the path."""
    beside = Path(sys.executable).with_name("nx-27017")
    if beside.exists():
        return beside
    found = shutil.which("nx-27017")
    return None if found is None else Path(found)


def missing() -> str | None:
    """Why no MongoDB can be had here; None when one can."""
    if given_uri() is None and executable() is None:
        return f"no MongoDB: {GIVEN} is not set and nx-27017 is not installed (the extra `dev`)"
    return None


class SharedMongo:
    """The server of a whole test run, started when it is first asked for."""

    def __init__(self) -> None:
        self._server: MongoServer | None = None
        self._lock = Lock()
        self._databases: set[str] = set()

    def uri(self) -> str:
        """Its address; the test is skipped, with the reason, where there is none."""
        reason = missing()
        if reason is not None:
            pytest.skip(reason)
        given = given_uri()
        if given is not None:
            return given
        with self._lock:
            if self._server is None:
                self._server = MongoServer.start(Path(mkdtemp(prefix="aftercall-mongo-")))
            return self._server.uri

    def database(self, folder: Path) -> str:
        """The database that belongs to a folder; `close` drops it."""
        name = f"aftercall_test_{_RUN}_{sha256(str(folder).encode()).hexdigest()[:16]}"
        self._databases.add(name)
        return name

    def close(self) -> None:
        """Stop our own server, or drop what was made on the given one."""
        given = given_uri()
        if given is not None and self._databases:
            with MongoClient[dict[str, object]](given, serverSelectionTimeoutMS=10_000) as client:
                for database in self._databases:
                    client.drop_database(database)
        self._databases.clear()
        server, self._server = self._server, None
        if server is not None:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)


class MongoServer:
    """A running `nx-27017` of our own; `stop` ends it.

    Args:
        folder: where its data and its log are.
        port: on loopback.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Start one on a free port, and wait until it answers."""
        folder.mkdir(parents=True, exist_ok=True)
        server = cls(folder, free_port())
        server.run()
        return server

    @property
    def uri(self) -> str:
        """Its address."""
        return f"mongodb://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return self._port

    def run(self) -> None:
        """Start it (again) on its port and its data."""
        program = executable()
        if program is None:
            raise RuntimeError(missing() or "nx-27017 is not installed")
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    program, "--data-dir", data, "--host", "127.0.0.1", "-p", str(self._port),
                    "--log-file", self.folder / "server.log",
                    "--pid-file", self.folder / "server.pid",
                ],
                stdout=output, stderr=output, cwd=self.folder,
            )  # fmt: skip
        self._wait()

    def stop(self) -> None:
        """End it in order; one that is frozen or does not hear is killed."""
        process = self._process
        if process is None:
            return
        self._process = None
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()

    def kill(self) -> None:
        """End it as power loss of the process would; `run` starts it again."""
        process = self._process
        if process is not None:
            self._process = None
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Freeze it: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            process = self._process
            if process is None or process.poll() is not None or time.monotonic() > deadline:
                output = (self.folder / "output.txt").read_text(errors="replace")
                raise RuntimeError(f"nx-27017 does not come up: {output[-2000:]}")
            try:
                with MongoClient[dict[str, object]](
                    self.uri, serverSelectionTimeoutMS=500
                ) as client:
                    client.admin.command("ping")
            except PyMongoError:
                continue  # the wait is in the driver
            return


def free_port() -> int:
    """A port of loopback for who has to be told one before it listens.

    Below those that a connection to elsewhere is given, which would have it meanwhile.
    """
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", 20_000 + secrets.randbelow(12_000)))
            port: int = probe.getsockname()[1]
            return port
