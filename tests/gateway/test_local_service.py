"""One command: a gateway uses the service that answers, or starts one, which ends after it."""

import asyncio
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from aftercall.gateway.local_service import LocalService
from tests.gateway.conftest import TIME_SERVER
from tests.gateway.waiting import until, until_answered
from tests.mongo.mongo_server import free_port

pytestmark = pytest.mark.real

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "tester", "version": "1"},
}


class Home:
    """A user's home with a configuration, and a port where a service may be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = folder / "mcp.json"
        self.config.write_text(json.dumps({"mcpServers": {"time": TIME_SERVER}}))
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")}
        self.environ = kept | {
            "HOME": str(folder),
            "AFTERCALL_URL": self.url,
            "AFTERCALL_EMBEDDING_MODEL": "hashing",
        }

    def services(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                alive = process.status() != psutil.STATUS_ZOMBIE
            except psutil.NoSuchProcess:
                continue
            if alive and "serve" in words and str(self.port) in words:
                found.append(process)
        return found

    @asynccontextmanager
    async def gateway(self, linger_s: float) -> AsyncIterator[asyncio.subprocess.Process]:
        words = ["gateway", "--config", str(self.config), "--linger", str(linger_s)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "aftercall.cli", *words),
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    def status(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "aftercall.cli", "status"], env=self.environ,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    async def ready(self) -> bool:
        return (await asyncio.to_thread(self.status)).returncode == 0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = Home(tmp_path)
    yield made
    for process in made.services():
        process.kill()


async def opened(gateway: asyncio.subprocess.Process) -> str:
    """The instructions that a client gets."""
    if gateway.stdin is None or gateway.stdout is None:
        raise AssertionError("the process was started without pipes")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    gateway.stdin.write(json.dumps(hello).encode() + b"\n")
    async with asyncio.timeout(30):
        answer = json.loads(await gateway.stdout.readline())
    return str(answer["result"]["instructions"])


async def said_next(gateway: asyncio.subprocess.Process) -> str:
    if gateway.stderr is None or not (line := await gateway.stderr.readline()):
        raise AssertionError("the gateway has ended")
    return line.decode()


async def test_gateways_share_the_service_that_one_of_them_starts(home: Home) -> None:
    """Two start at once; one is killed; the service ends by itself after the other has left."""
    home.environ["GITHUB_TOKEN"] = "of a server behind the gateway"  # noqa: S105  # it is none
    async with home.gateway(2) as one, home.gateway(2) as other:
        said = await asyncio.gather(opened(one), opened(other))
        await until_answered(home.ready, 60)
        [service] = home.services()
        assert "GITHUB_TOKEN" not in service.environ()
        assert all(home.url in each for each in said)
        assert "by a gateway; it ends 2 s after the last one left" in home.status().stdout
        one.kill()
        _, lost = await one.communicate()
        async with home.gateway(2) as third:
            await opened(third)
            async with asyncio.timeout(60):
                while f"using the service at {home.url}" not in await said_next(third):
                    pass
        _, left = await other.communicate(b"")
        assert (lost + left).count(b"starting a service") == 1
    await until(lambda: not home.services(), 30)
    ended = home.status()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "`aftercall gateway` starts one by itself" in ended.stderr


async def test_a_service_that_was_killed_is_started_again(home: Home) -> None:
    """The gateway stays, notices, and says so; calls were never held up."""
    async with home.gateway(1) as gateway:
        await opened(gateway)
        await until_answered(home.ready, 60)
        [first] = home.services()
        os.kill(first.pid, signal.SIGKILL)
        await until(lambda: any(each.pid != first.pid for each in home.services()), 60)
        await until_answered(home.ready, 60)


async def in_use(home: Home, url: str) -> str:
    said: list[str] = []
    async with LocalService(url, say=said.append, environ=home.environ).used() as local:
        async with asyncio.timeout(60):
            sentence = await local.looked()
            while sentence.startswith("starting"):
                await asyncio.sleep(0.02)
                sentence = local.in_use
    assert said[-1] == sentence
    return sentence


async def test_a_service_that_cannot_be_used_is_said_with_its_reason(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere, another program's, one that does not start, one that is not installed."""
    far = home.url.replace("127.0.0.1", "127.0.0.2")
    assert "it is not on this machine" in await in_use(home, far)
    with http.server.HTTPServer(
        ("127.0.0.1", home.port), http.server.SimpleHTTPRequestHandler
    ) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        assert "another program answers there" in await in_use(home, home.url)
        other.shutdown()
    home.environ["AFTERCALL_EMBEDDING_MODEL"] = "no such model"
    broken = await in_use(home, home.url)
    assert "the one that was started has ended: aftercall: " in broken
    monkeypatch.setattr("aftercall.gateway.local_service.discover", dict)
    assert "`pip install -c constraints.txt ./sdk .`" in await in_use(home, home.url)
    assert home.services() == []
