"""The stage: a service and a gateway as real processes, on ports and folders of their own."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from aftercall import AsyncClient
from aftercall.errors import AftercallError
from aftercall.process import bind_socket
from service.environment import PREFIX
from service.lifecycle import end_process

_READY_S = 120.0
"""A start takes about two seconds."""
_KEPT = f"{PREFIX}EMBEDDING_"


class StageError(RuntimeError):
    """A process of the demo did not start; the message carries the end of its log."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A running service: its address, its folder, its environment and its process."""

    url: str
    folder: Path
    environ: Mapping[str, str]
    process: asyncio.subprocess.Process

    async def run_nightly(self) -> bool:
        """Run the nightly ingest once, as a process; return whether all of it was done."""
        arguments = ("nightly", "--data-dir", str(self.folder / "data"))
        async with _open_process(self.folder / "nightly.log", self.environ, *arguments) as process:
            return await process.wait() == 0


@dataclass(frozen=True, slots=True)
class DemoStage:
    """A service, a gateway in front of two MCP servers, and the repository of one of them."""

    service_url: str
    gateway_url: str
    repository: Path
    folder: Path


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder for data and logs, which is removed at the end."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="aftercall-demo-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StageError(f"cannot make a folder for temporary files: {error}") from error
    with folder as name:
        yield Path(name)


@contextmanager
def open_status(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the present step, in a moving line if the terminal has one."""
    with console.status("getting ready ...") as status:

        def show_status(words: str) -> None:
            status.update(f"{words} ...")
            if not console.is_terminal:
                console.print(f"[dim]{words} ...[/]")
                console.file.flush()

        yield show_status


@asynccontextmanager
async def open_service(folder: Path) -> AsyncIterator[Hosted]:
    """Start a service in an empty folder; stop it at the end, also after a failure."""
    port, log, environ = _free_port(), folder / "service.log", demo_environment(os.environ)
    # It and the gateways of this user must not find each other's state.
    environ |= {"XDG_STATE_HOME": str(folder / "state")}
    arguments = ("serve", "--port", str(port), "--data-dir", str(folder / "data"))
    async with _open_process(log, environ, *arguments) as process:
        here = Hosted(f"http://127.0.0.1:{port}", folder, environ, process)
        async with AsyncClient(here.url) as client:
            await _until_up(client.ready, process, log)
        yield here


@asynccontextmanager
async def open_stage(folder: Path, say: Callable[[str], None]) -> AsyncIterator[DemoStage]:
    """Start service and gateway; stop both at the end, also after a failure."""
    repository = make_repository(folder / "repository")
    say("starting the service")
    async with open_service(folder) as service:
        say("starting the gateway with mcp-server-time and mcp-server-git behind it")
        servers = {
            "time": ["mcp_server_time", "--local-timezone", "UTC"],
            "git": ["mcp_server_git", "--repository", str(repository)],
        }
        config = {
            name: {"command": sys.executable, "args": ["-m", *arguments]}
            for name, arguments in servers.items()
        }
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": config}), encoding="utf-8")
        port, log = _free_port(), folder / "gateway.log"
        arguments = (
            "gateway", "--config", str(folder / "mcp.json"), "--service", service.url,
            "--transport", "http", "--port", str(port),
        )  # fmt: skip
        async with _open_process(log, service.environ, *arguments) as gateway:
            await _until_up(lambda: _is_listening(port), gateway, log)
            yield DemoStage(service.url, f"http://127.0.0.1:{port}/mcp", repository, folder)


async def wait_until_learned(client: AsyncClient, most_s: float, executions: int = 0) -> bool:
    """Wait until a service has so many executions and has learned all; return whether it has."""
    deadline = time.monotonic() + most_s
    while time.monotonic() < deadline:
        status = await client.status()
        if status.executions >= executions and not status.pending_indexing:
            return True
        await asyncio.sleep(0.05)
    return False


def make_repository(folder: Path) -> Path:
    """Return a git repository with two branches, a tag and a changed file."""
    folder.mkdir(parents=True)
    _run_git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(12):
        (folder / "CHANGES.md").write_text(f"Change {number}\n", encoding="utf-8")
        _run_git(folder, "add", ".")
        _run_git(folder, "-c", "user.name=Demo", "-c", "user.email=demo@example.org", "commit",
             "--quiet", "-m", f"Change {number}" if number else "Begin")  # fmt: skip
    _run_git(folder, "tag", "v1.0")
    _run_git(folder, "branch", "feature/login")
    (folder / "notes.txt").write_text("to be staged\n", encoding="utf-8")
    return folder


def _run_git(folder: Path, *arguments: str) -> None:
    try:
        command = ["git", *arguments]  # fixed words, no shell
        subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603
    except FileNotFoundError:
        raise StageError("the demo needs git; install it and run the demo again") from None


def demo_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return our environment without servers, data and limits, to spare real data."""
    return {
        name: value
        for name, value in ours.items()
        if not name.startswith(PREFIX) or name.startswith(_KEPT)
    }


@asynccontextmanager
async def _open_process(
    log: Path, environ: Mapping[str, str], *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aftercall.cli", *arguments, env=environ,
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield process
    finally:
        await end_process(process, 10.0)


async def _until_up(
    is_up: Callable[[], Awaitable[bool]], process: asyncio.subprocess.Process, log: Path
) -> None:
    deadline = time.monotonic() + _READY_S
    while process.returncode is None and time.monotonic() < deadline:
        with suppress(AftercallError):  # not up yet
            if await is_up():
                return
        await asyncio.sleep(0.1)
    end = await asyncio.to_thread(log.read_text, "utf-8", "replace")
    raise StageError(f"the {log.stem} did not come up. Its log ends with:\n{end[-1500:]}")


async def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with bind_socket("127.0.0.1", 0) as probe:
        return int(probe.getsockname()[1])
