"""`aftercall demo --history` from beginning to end."""

import asyncio
import shutil
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from aftercall import AsyncClient
from aftercall.errors import AftercallError
from service.demo.history.hosting import hosted
from service.demo.history.play import HistoryProgress, play_history
from service.demo.history.report import HistoryReport
from service.demo.history.showing import show_report
from service.demo.stage import StageError, empty_folder
from service.lifecycle import Stopping, done_or_stopped, stopped_by_signals

_PATIENCE_S = 30.0
"""For an answer of a service that learns at the same time."""


class HoldsDataError(AftercallError):
    """The service holds executions, with which made-up ones would mix."""


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What was asked for on the command line.

    Args:
        seed: of the history.
        days: how long it is.
        calls_per_day: as a mean over a week.
        url: of a running service; None for one of its own.
        may_mix: whether that service may hold executions already.
        keep: a folder to leave the data in; None for a temporary one.
        serves: whether its own service goes on until Ctrl-C.
    """

    seed: int = 7
    days: int = 30
    calls_per_day: int = 250
    url: str | None = None
    may_mix: bool = False
    keep: Path | None = None
    serves: bool = True


async def run_history(console: Console, options: HistoryOptions) -> int:
    """Play a history and show what came of it; the exit code, 0 unless a signal cut it short.

    Raises:
        StageError: the folder cannot be used, or its service does not come up.
        HoldsDataError: the service holds executions already.
        AftercallError: the service cannot be reached, or does not take the history.
    """
    with stopped_by_signals() as stopping:
        if options.url is None:
            return await _with_own(console, options, stopping)
        done = await done_or_stopped(stopping, _to_running(console, options, options.url))
    if done is None:
        console.print("Stopped; what was sent so far stays in that service.")
    return 0 if done else stopping.status


async def _to_running(console: Console, options: HistoryOptions, url: str) -> bool:
    async with AsyncClient(url, timeout_s=_PATIENCE_S) as client:
        held = (await client.status()).executions
        if held and not options.may_mix:
            raise HoldsDataError(
                f"the service at {url} holds {held:,} executions, and made-up calls would mix with "
                "them for good; leave --url away to play on a service of its own, or add --yes"
            )
        await _played(console, options, client)
    console.print("Failure patterns come with that service's next nightly ingest.")
    _plain(console, f"  {url.rstrip('/')}/dashboard")
    return True


async def _with_own(console: Console, options: HistoryOptions, stopping: Stopping) -> int:
    folder = empty_folder(options.keep)
    own = _Own(console, options, folder)
    try:
        await done_or_stopped(stopping, own.run())
    finally:
        if options.keep is None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if options.keep is None:
        console.print("The service is stopped, and its made-up data are removed.")
    else:
        console.print("The service is stopped. To see its data again:")
        _plain(console, f"  aftercall serve --data-dir {folder / 'data'}")
    return 0 if own.is_played else stopping.status


class _Own:
    """A history on a service of its own."""

    def __init__(self, console: Console, options: HistoryOptions, folder: Path) -> None:
        self.is_played = False
        self._console = console
        self._options = options
        self._folder = folder

    async def run(self) -> None:
        console = self._console
        began = time.monotonic()
        with console.status("starting a service (the first time, a model is exported: 15 s) ..."):
            stack = AsyncExitStack()
            here = await stack.enter_async_context(hosted(self._folder))
        async with stack:
            async with AsyncClient(here.url, timeout_s=_PATIENCE_S) as client:
                await _played(console, self._options, client)
            with console.status("running the nightly ingest ..."):
                is_done = await here.nightly()
            if not is_done:
                _plain(console, f"The nightly ingest failed; see {self._folder / 'nightly.log'}")
            console.print(f"[dim]{time.monotonic() - began:.0f} s in all[/]")
            self.is_played = True
            if self._options.serves:
                console.print("The dashboard is full. Ctrl-C ends it.")
                _plain(console, f"  {here.url}/dashboard")
                await here.process.wait()
                raise StageError("the service ended by itself; play the history again")


async def _played(console: Console, options: HistoryOptions, client: AsyncClient) -> HistoryReport:
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} calls"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("getting ready", total=None)

        def told(progress: HistoryProgress) -> None:
            bar.update(
                task, description=progress.words, completed=progress.done, total=progress.total
            )

        report = await play_history(
            client, seed=options.seed, days=options.days, calls_per_day=options.calls_per_day,
            on_progress=told,
        )  # fmt: skip
    show_report(console, report)
    return report


def _plain(console: Console, line: str) -> None:
    """A line that can be copied: paths and addresses are no markup, and are not broken."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)
