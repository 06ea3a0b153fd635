"""One command: a gateway uses the service that answers, or starts one, which ends after it."""

import asyncio
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from aftercall.gateway.local_service import LocalService
from aftercall.running import running_services
from tests.gateway.conftest import TIME_SERVER
from tests.gateway.speaking import HELLO, answers, started
from tests.gateway.waiting import until_answered
from tests.mongo.mongo_server import free_port

pytestmark = pytest.mark.real


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

    def gateway(self, linger_s: float) -> AbstractAsyncContextManager[Process]:
        words = ["gateway", "--config", str(self.config), "--linger", str(linger_s)]
        return started([sys.executable, "-P", "-m", "aftercall.cli", *words], self.environ)

    def status(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "aftercall.cli", "status"], env=self.environ,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    async def ready(self) -> bool:
        with suppress(httpx2.TransportError):
            async with httpx2.AsyncClient() as client:
                return (await client.get(f"{self.url}/readyz")).is_success
        return False


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = Home(tmp_path)
    yield made
    for process in made.services():
        process.kill()


async def opened(gateway: Process) -> str:
    """The instructions that a client gets."""
    [answer] = await answers(gateway, HELLO)
    return str(answer["result"]["instructions"])


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
                await third.stderr.readuntil(f"using the service at {home.url}".encode())
        _, left = await other.communicate(b"")
        assert (lost + left).count(b"starting a service") == 1
    await asyncio.to_thread(service.wait, 30)
    assert home.services() == []
    ended = home.status()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "`aftercall gateway` starts one by itself" in ended.stderr


async def test_a_service_that_was_killed_is_started_again(home: Home) -> None:
    """The gateway stays, notices, and says so; calls were never held up."""
    async with home.gateway(1) as gateway:
        await opened(gateway)
        async with asyncio.timeout(60):  # one that dies before it is in use is a failed start
            await gateway.stderr.readuntil(b"which this gateway started")
        [first] = home.services()
        os.kill(first.pid, signal.SIGKILL)
        await until_answered(home.ready, 60)
        [second] = home.services()
        assert second.pid != first.pid


async def test_a_gateway_without_an_address_joins_the_service_that_runs(home: Home) -> None:
    """As a client starts it, without `AFTERCALL_URL`; it starts none beside it."""
    del home.environ["AFTERCALL_URL"]
    words = ["serve", "--port", str(home.port), "--data-dir", str(home.folder / "own")]
    async with started([sys.executable, "-P", "-m", "aftercall.cli", *words], home.environ):
        await until_answered(home.ready, 60)
        async with home.gateway(2) as gateway:
            assert f"using the service at {home.url}" in await opened(gateway)
    assert running_services(home.environ) == []


async def in_use(home: Home, url: str) -> str:
    said: list[str] = []
    async with LocalService(url, say=said.append, environ=home.environ).use_service() as local:
        async with asyncio.timeout(60):
            sentence = await local.wait_looked()
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
    monkeypatch.setattr("aftercall.gateway.local_service.discover_commands", dict)
    assert "`pip install -c constraints.txt ./sdk .`" in await in_use(home, home.url)
    assert home.services() == []
