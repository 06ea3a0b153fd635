"""The stage: a service and a gateway as real processes, on ports and folders of their own."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aftercall import AsyncClient
from aftercall.errors import AftercallError
from service.environment import PREFIX

_READY_S = 120.0
"""The first start exports the model; later ones take about two seconds."""
_STOP_S = 10.0
_KEPT = (f"{PREFIX}EMBEDDING_", f"{PREFIX}MODEL_")


class StageError(RuntimeError):
    """A process of the demo did not come up; the message carries the end of its log."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything is."""

    service_url: str
    gateway_url: str
    repository: Path
    data_dir: Path


def empty_folder(keep: Path | None) -> Path:
    """The folder `keep`, made and empty; a temporary one when None, which the caller removes.

    Raises:
        StageError: it cannot be made, or holds something.
    """
    try:
        if keep is None:
            return Path(tempfile.mkdtemp(prefix="aftercall-demo-"))
        keep.mkdir(parents=True, exist_ok=True)
        is_empty = not any(keep.iterdir())
    except OSError as error:
        what = keep or "the folder for temporary files"
        raise StageError(
            f"cannot use {what}: {error.strerror or error}; name another folder with --keep"
        ) from error
    if not is_empty:
        raise StageError(f"{keep} is not empty; name another folder with --keep")
    return keep


@asynccontextmanager
async def open_stage(folder: Path, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Start service and gateway; both are stopped at the end, whatever happened.

    Args:
        folder: an empty folder for data, repository and logs.
        say: told what is going on, in a few words.

    Raises:
        StageError: when one of the processes does not come up.
    """
    repository = make_repository(folder / "repository")
    service_port, gateway_port = free_port(), free_port()
    service_url = f"http://127.0.0.1:{service_port}"
    data_dir = folder / "data"
    say("starting the service (the first time, the model is exported once: about 15 s)")
    async with started(
        folder / "service.log",
        "serve", "--port", str(service_port), "--data-dir", str(data_dir),
    ) as service:  # fmt: skip
        async with AsyncClient(service_url) as client:
            await until_up(client.ready, service, folder / "service.log", "the service")
        say("starting the gateway with mcp-server-time and mcp-server-git behind it")
        config = folder / "mcp.json"
        config.write_text(json.dumps(_mcp_servers(repository)), encoding="utf-8")
        async with started(
            folder / "gateway.log",
            "gateway", "--config", str(config), "--service", service_url,
            "--transport", "http", "--port", str(gateway_port),
        ) as gateway:  # fmt: skip
            await until_up(
                lambda: _listens(gateway_port), gateway, folder / "gateway.log", "the gateway"
            )
            yield Stage(service_url, f"http://127.0.0.1:{gateway_port}/mcp", repository, data_dir)


def make_repository(folder: Path) -> Path:
    """A git repository with two branches, a tag and a changed file."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# A project\n", encoding="utf-8")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", ".")
    _commit(folder, "Begin")
    for number in range(1, 12):
        (folder / "CHANGES.md").write_text(f"Change {number}\n", encoding="utf-8")
        _git(folder, "add", ".")
        _commit(folder, f"Change {number}")
    _git(folder, "tag", "v1.0")
    _git(folder, "branch", "feature/login")
    (folder / "notes.txt").write_text("to be staged\n", encoding="utf-8")
    return folder


def _commit(folder: Path, message: str) -> None:
    _git(folder, "-c", "user.name=Demo", "-c", "user.email=demo@example.org", "commit",
         "--quiet", "-m", message)  # fmt: skip


def _git(folder: Path, *arguments: str) -> None:
    try:
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607 - fixed words, no shell
    except FileNotFoundError:
        raise StageError("the demo needs git; install it and run the demo again") from None


def _mcp_servers(repository: Path) -> dict[str, object]:
    return {
        "mcpServers": {
            "time": {
                "command": sys.executable,
                "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
            },
            "git": {
                "command": sys.executable,
                "args": ["-m", "mcp_server_git", "--repository", str(repository)],
            },
        }
    }


@asynccontextmanager
async def started(
    log: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """An `aftercall` command as a process, until the block ends; what it says goes into `log`.

    Args:
        log: a file that is written anew.
        arguments: of the command.
        environ: its environment; ours when None.
    """
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aftercall.cli", *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
            env=dict(os.environ if environ is None else environ),
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except TimeoutError:
                process.kill()
                await process.wait()


async def until_up(
    ready: Callable[[], object], process: asyncio.subprocess.Process, log: Path, what: str
) -> None:
    """Wait until a process is ready.

    Raises:
        StageError: it ended, or takes too long; with the end of its log.
    """
    deadline = asyncio.get_running_loop().time() + _READY_S
    while asyncio.get_running_loop().time() < deadline:
        if process.returncode is not None:
            break
        try:
            answer = ready()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
        except AftercallError:
            pass  # not up yet
        await asyncio.sleep(0.1)
    raise StageError(f"{what} did not come up. Its log ends with:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-1500:]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of loopback that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Hosted:
    """A running service of a history: where it is, and where it keeps things."""

    url: str
    folder: Path
    environ: Mapping[str, str]
    process: asyncio.subprocess.Process

    async def nightly(self) -> bool:
        """Run the nightly ingest once, as a process beside it; whether all of it was done."""
        arguments = ("nightly", "--data-dir", str(self.folder / "data"))
        log = self.folder / "nightly.log"
        async with started(log, *arguments, environ=self.environ) as process:
            return await process.wait() == 0


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Hosted]:
    """Start a service in an empty folder; it is stopped at the end, whatever happened.

    Raises:
        StageError: it does not come up.
    """
    port, log, environ = free_port(), folder / "service.log", environment(os.environ)
    arguments = ("serve", "--port", str(port), "--data-dir", str(folder / "data"))
    async with started(log, *arguments, environ=environ) as process:
        here = Hosted(f"http://127.0.0.1:{port}", folder, environ, process)
        async with AsyncClient(here.url) as client:
            await until_up(client.ready, process, log, "the service")
        yield here


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours without its servers, data and limits: a made-up history must not reach real data."""
    return {
        name: value
        for name, value in ours.items()
        if not name.startswith(PREFIX) or name.startswith(_KEPT)
    }
