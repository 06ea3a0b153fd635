"""A service of its own for a history: a process on a free port of loopback."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aftercall import AsyncClient
from service.demo.stage import free_port, started, until_up
from service.environment import PREFIX

_KEPT = (f"{PREFIX}EMBEDDING_", f"{PREFIX}MODEL_")


@dataclass(frozen=True, slots=True)
class Hosted:
    """A running service: where it is, and where it keeps things."""

    url: str
    data_dir: Path
    folder: Path
    environ: Mapping[str, str]
    process: asyncio.subprocess.Process

    async def nightly(self) -> bool:
        """Run the nightly ingest once, as a process beside it; whether all of it was done."""
        log = self.folder / "nightly.log"
        arguments = ("nightly", "--data-dir", str(self.data_dir))
        async with started(log, *arguments, environ=self.environ) as process:
            return await process.wait() == 0


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Hosted]:
    """Start a service; it is stopped at the end, whatever happened.

    Args:
        folder: an empty folder for its data and its log.

    Raises:
        StageError: it does not come up.
    """
    port, log, data_dir = free_port(), folder / "service.log", folder / "data"
    environ = environment(os.environ)
    async with started(
        log, "serve", "--port", str(port), "--data-dir", str(data_dir),
        environ=environ,
    ) as process:  # fmt: skip
        here = Hosted(f"http://127.0.0.1:{port}", data_dir, folder, environ, process)
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
