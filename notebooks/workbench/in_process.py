"""A service inside this process, without a port: for notebooks, tests and benchmarks."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from aftercall import AsyncClient
from service.context import Context, Lifecycle, open_context
from service.environment import read_settings
from service.lifecycle import shorten_errors
from service.nightly import run_nightly
from service.server import create_app
from service.settings import DataSettings, NightlySettings, Settings

if TYPE_CHECKING:
    from ingest.nightly import NightlyReport

_TIMEOUT_S = 60.0
"""A notebook shares its processors with the service; no one is helped by a short patience."""


class InProcessClient(AsyncClient):
    """An `aftercall.AsyncClient` of a service in this process, which can also run the nightly.

    `context` is what it holds open, `transport` leads to its application.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        app = create_app(settings, Lifecycle(context=context))
        self.transport = httpx2.ASGITransport(app=app)
        super().__init__("http://127.0.0.1", timeout_s=_TIMEOUT_S, transport=self.transport)
        self.settings = settings
        self.context = context

    async def run_night(self) -> "NightlyReport":
        """Run the nightly ingest once, to its end."""
        return await run_nightly(self.settings, lambda _: None, lambda _step, _done: None)


@asynccontextmanager
async def in_process(
    data_dir: Path | None = None, *, embedder: str | None = None
) -> AsyncIterator[InProcessClient]:
    """Yield a service in this process, until the block ends; its data stay in `data_dir` alone.

    `embedder` is the environment's when None; `hashing` needs no model: it is for tests, and knows
    likeness of words alone.
    """
    folder = data_dir or Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="aftercall-"))
    try:
        settings = await asyncio.to_thread(_settings, folder, embedder)
        async with AsyncExitStack() as stack:
            with shorten_errors(folder):  # of opening alone: what the block raises is its own
                context = await stack.enter_async_context(open_context(settings))
            yield await stack.enter_async_context(InProcessClient(settings, context))
    finally:
        if data_dir is None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _settings(folder: Path, embedder: str | None) -> Settings:
    """Of the environment the model alone counts: neither its servers nor its data are for play."""
    settings = Settings(
        data=DataSettings(dir=folder),
        embedding=read_settings().embedding,
        nightly=NightlySettings(every_h=0),  # only when it is asked for
    )
    return settings.with_values(embedding={"model": embedder})
