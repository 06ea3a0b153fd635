"""What the gateway's tests share: a service, a recorder, and gateways in front of real servers."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from aftercall import AsyncClient, Recorder
from aftercall.gateway import connection
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.listing import LastLists
from aftercall.gateway.server import build_gateway
from aftercall.reflection import CallObserver, ReflectionPolicy
from tests.gateway.contract_service import ContractService

BIN = Path(sys.executable).parent
TIME, TIME_ARGS = str(BIN / "mcp-server-time"), ["--local-timezone", "UTC"]
TIME_SERVER = {"command": TIME, "args": TIME_ARGS}

OpenGateway = Callable[..., AbstractAsyncContextManager[Client[Any]]]


@pytest.fixture(autouse=True)
def patient_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists wait for all servers: on a busy machine some take seconds to start."""
    monkeypatch.setattr(connection, "LIST_WAIT_S", 120.0)


@pytest.fixture
def service() -> Iterator[ContractService]:
    """A contract server with scripted suggestions."""
    with ContractService() as running:
        yield running


@pytest.fixture
def service_url(service: ContractService) -> str:
    """Where the service is; the tests that need no script take this alone."""
    return service.url


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit on `main`."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "README").write_text("hello\n")
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "First"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def git_server(repository: Path) -> dict[str, Any]:
    """`mcp-server-git` on the repository."""
    return {"command": str(BIN / "mcp-server-git"), "args": ["--repository", str(repository)]}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own for a process, so that nothing is spooled into the real one."""
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")} | home


@pytest.fixture
async def recorder(service_url: str, tmp_path: Path) -> AsyncIterator[Recorder]:
    """A real recorder on the service."""
    with Recorder(
        base_url=service_url, spool_dir=tmp_path / "spool", flush_interval_s=0.01
    ) as running:
        yield running


@pytest.fixture
def open_gateway(service_url: str, recorder: Recorder, tmp_path: Path) -> OpenGateway:
    """Opens a gateway in front of the given servers, and a client on it."""

    @asynccontextmanager
    async def opened(
        servers: dict[str, Any],
        policy: ReflectionPolicy | None = None,
        lists: LastLists | None = None,
        *,
        searches: bool = False,
        observers: Sequence[CallObserver] = (),
        **client_options: Any,
    ) -> AsyncIterator[Client[Any]]:
        with (tmp_path / "upstream.log").open("a") as errlog:
            async with AsyncClient(service_url, retries=0) as api:
                gateway = build_gateway(
                    GatewayConfig.from_dict({"mcpServers": servers}), client=api,
                    recorder=recorder, policy=policy or ReflectionPolicy(base_backoff_s=0),
                    errlog=errlog, lists=lists, searches=searches, observers=observers,
                )  # fmt: skip
                async with Client(gateway, **client_options) as client:
                    yield client

    return opened
