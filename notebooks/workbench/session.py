"""A notebook's session: a client on a running service, or on one inside this process.

What is inside this process has a temporary folder, a history played into it, and no port.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from aftercall import AsyncClient
from aftercall.errors import AftercallError
from aftercall.models import Usage, UsageWindow

SEED, DAYS, CALLS_PER_DAY = 7, 30, 40
"""Of the history that is played: a month in a few seconds."""

_PAUSE_S = 0.01
"""Between two looks at whether the service has learned."""

_LEARNED_S = 60.0
_LOOKS = 100
"""At statistics that are still being counted, before what there is will do."""


class NothingToShowError(AftercallError):
    """The service has not what a cell is about; the message states what it needs."""


@dataclass(frozen=True, slots=True)
class Session:
    """A client, and where it leads."""

    client: AsyncClient
    is_server: bool
    """A running service: it is read and asked, and nothing is written to it."""
    about: str
    """What is there, in a sentence."""
    _end: Callable[[], None]
    _task: "asyncio.Task[None]"

    def need(self, found: object, what: str) -> None:
        """Go on only with something found.

        Raises:
            NothingToShowError: it is empty; `what` is shown to the reader.
        """
        if not found:
            raise NothingToShowError(f"this part needs {what}; there is none yet: {self.about}")

    async def learned(self) -> None:
        """Wait until the service has learned from all that was recorded."""
        await _learned(self.client)

    async def usage(self, window: UsageWindow = "30d", *, limit: int = 20) -> Usage:
        """Return how tools were called, once all is counted.

        Some seconds later as far as it is known.

        Args:
            window: up to now.
            limit: most tools and agents.
        """
        usage = await self.client.usage(window, limit=limit)
        for _ in range(_LOOKS):
            if usage.is_complete:
                break
            await asyncio.sleep(_PAUSE_S)
            usage = await self.client.usage(window, limit=limit)
        return usage

    async def close(self) -> None:
        """Close the client, and the service if it is inside this process."""
        self._end()
        await self._task


async def open_session(
    url: str | None,
    *,
    seed: int = SEED,
    days: int = DAYS,
    calls_per_day: int = CALLS_PER_DAY,
    ask: bool = True,
) -> Session:
    """Return a session with the service at `url`.

    Without one, with a played history in this process.

    Args:
        url: of a running service, such as `http://127.0.0.1:8799`.
        seed: of the history; the same seed gives the same one.
        days: how far back it goes.
        calls_per_day: how many calls a day has, on average.
        ask: whether the agents of the history ask the service about their failures.

    Raises:
        NothingToShowError: nothing answers at `url`.
    """
    if url is not None:
        return await _opened(_there(url), is_server=True, where=f"the service at {url}")
    played = _with_history(seed=seed, days=days, calls_per_day=calls_per_day, ask=ask)
    return await _opened(played, is_server=False, where="a service inside this process")


async def open_scratch() -> Session:
    """Return a session with an empty service inside this process, to write to as one likes."""
    return await _opened(_inside(), is_server=False, where="an empty service inside this process")


async def _opened(
    manager: AbstractAsyncContextManager[AsyncClient], *, is_server: bool, where: str
) -> Session:
    """Enter a context and leave it in one task of its own: cells are tasks that come and go."""
    opened: asyncio.Future[AsyncClient] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def hold() -> None:
        try:
            async with manager as client:
                opened.set_result(client)
                await ended.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    task = asyncio.create_task(hold(), name="notebook session")
    client = await opened
    status = await client.status()
    about = f"{where} with {status.executions:,} executions and {status.tools} registered tools"
    return Session(client, is_server, about, ended.set, task)


@asynccontextmanager
async def _there(url: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url) as client:
        if not await client.ready():
            raise NothingToShowError(
                f"nothing answers at {url}; start it with `aftercall serve` and fill it with "
                f"`aftercall demo --history --url {url}`, or unset AFTERCALL_URL"
            )
        yield client


@asynccontextmanager
async def _inside() -> AsyncIterator[AsyncClient]:
    from workbench.in_process import in_process  # noqa: PLC0415  # a server needs none of it

    async with in_process() as client:
        yield client


@asynccontextmanager
async def _with_history(
    *, seed: int, days: int, calls_per_day: int, ask: bool
) -> AsyncIterator[AsyncClient]:
    from service.demo.history import play_history  # noqa: PLC0415  # as above

    async with _inside() as client:
        await play_history(client, seed=seed, days=days, calls_per_day=calls_per_day, ask=ask)
        await _learned(client)
        yield client


async def _learned(client: AsyncClient) -> None:
    deadline = time.monotonic() + _LEARNED_S
    while (await client.status()).pending_indexing:
        if time.monotonic() > deadline:
            raise NothingToShowError(
                f"the service has not learned from all calls within {_LEARNED_S:.0f} s; "
                "restart the kernel, and take a smaller history if the machine is slow"
            )
        await asyncio.sleep(_PAUSE_S)
