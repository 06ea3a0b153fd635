"""`aftercall demo`: run from beginning to end, and shown to a person at a terminal."""

import asyncio
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from aftercall import AsyncClient
from aftercall.errors import AftercallError
from service.demo.history import HistoryReport, play_history
from service.demo.repairs import Ending, PlayedCall, play, sessions
from service.demo.scenes import (
    NAMESPACE,
    SCENARIO,
    BoundaryCall,
    BoundaryScene,
    SceneCall,
    play_boundaries,
    play_scene,
)
from service.demo.stage import StageError, empty_folder, hosted, open_stage
from service.lifecycle import Stopping, done_or_stopped, stopped_by_signals

_LEARNED_S = 30.0
_PATIENCE_S = 30.0
"""For an answer of a service that learns at the same time."""

_SHOWN: dict[Ending, str] = {
    "fine": "[green]ok[/]", "repaired": "[bold green]repaired[/]",
    "by itself": "[yellow]by itself[/]", "failed": "[red]failed[/]",
}  # fmt: skip

_NEXT = """
Nothing above was canned: errors came from the tools, corrections from /suggest.
Next:
  [bold]make serve[/]
      run the service and keep what it learns
  [bold].venv/bin/aftercall gateway --config mcp.json[/]
      put it in front of your own MCP servers
  README.md, "Use it from Python"
      the SDK in ten lines"""


@dataclass(frozen=True, slots=True)
class Played:
    """What happened: calls that were repaired, who was chosen, what tools said of themselves."""

    calls: list[PlayedCall]
    scene: list[SceneCall]
    boundaries: BoundaryScene


async def run_demo(console: Console, *, keep: Path | None = None) -> Played:
    """Play all sessions and the scenes after them, and show what happened.

    Args:
        console: where it is shown.
        keep: a folder to leave the data and logs in; a temporary one that is removed when None.

    Raises:
        StageError: `keep` cannot be made or holds something, a process does not come up, or what
            must happen does not.
    """
    folder = empty_folder(keep)
    started = time.monotonic()
    calls: list[PlayedCall] = []

    def line(agent: str, tool: str, mark: str) -> None:
        console.print(f"  {agent}  {tool}  {mark}")

    try:
        with console.status("getting ready") as status:
            async with open_stage(folder, lambda words: status.update(f"{words} ...")) as stage:
                async with AsyncClient(stage.service_url) as client:
                    for session in sessions(str(stage.repository)):
                        status.update(f"{session.agent}: {session.purpose} ...")
                        calls += await play(
                            session, stage.gateway_url,
                            lambda each: line(
                                each.session.name, each.call.tool, _SHOWN[each.ending]
                            ),
                        )  # fmt: skip
                        await _until_learned(client, calls)
                status.update("dee: what changed lately? ...")
                scene = await play_scene(
                    stage, lambda each: line(each.agent, each.called, _mark(each))
                )
                status.update("fay: which films are on tonight? ...")
                boundaries = await play_boundaries(
                    stage, lambda each: line("fay", each.tool, _said(each))
                )
                status.update("stopping ...")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    show_calls(console, calls)
    show_summary(console, calls)
    show_scene(console, scene)
    show_boundaries(console, boundaries)
    console.print(f"[dim]{time.monotonic() - started:.0f} s in all[/]")
    if keep:
        console.print(f"Data and logs are in {keep}")
    console.print(_NEXT)
    return Played(calls, scene, boundaries)


async def _until_learned(client: AsyncClient, played: Sequence[PlayedCall]) -> None:
    """Wait until all attempts so far are recorded and usable; the next session builds on them."""
    attempts = sum(1 if each.ending in ("fine", "failed") else 2 for each in played)
    deadline = time.monotonic() + _LEARNED_S
    while time.monotonic() < deadline:
        status = await client.status()
        if status.executions >= attempts and status.pending_indexing == 0:
            return
        await asyncio.sleep(0.1)


def _mark(each: SceneCall) -> str:
    return "[green]ok[/]" if each.succeeded else "[red]failed[/]"


def _said(each: BoundaryCall) -> str:
    return f"[{'green' if each.said == 'success' else 'yellow'}]{escape(each.said)}[/]"


def show_calls(console: Console, played: Sequence[PlayedCall]) -> None:
    """Each call with its error, the suggestion and how the retry ended."""
    table = Table(title="What the agents did", show_lines=True, expand=True)
    table.add_column("call", ratio=3)
    table.add_column("the tool's own error", ratio=4)
    table.add_column("suggestion, confidence, evidence", ratio=5)
    table.add_column("ended", no_wrap=True)
    for each in played:
        mistake = f"\n[dim]{each.call.mistake}[/]" if each.call.mistake else ""
        table.add_row(
            f"[bold]{each.session.name}[/] {escape(each.call.tool.split('_', 1)[1])}{mistake}",
            escape(_essence(each.error)),
            _suggestion(each),
            _SHOWN[each.ending] + ("" if each.as_meant else "\n[red]not as meant[/]"),
        )
    console.print(table)


def _suggestion(each: PlayedCall) -> str:
    if each.error is None:
        return ""
    if each.suggestion is None:
        return "[dim]none: nothing known that would be more than a guess[/]"
    evidence = f" [dim]from {escape(each.evidence)}[/]" if each.evidence else ""
    return f"{escape(each.suggestion)}\n[bold]{each.confidence:.2f}[/]{evidence}"


def _essence(error: str | None) -> str:
    """The tool's own words without the frames that its server and validator put around them."""
    if error is None:
        return ""
    words = re.sub(r"^Error executing tool \w+: ", "", error)
    words = re.sub(r"^\d+ validation errors? for \w+\n", "", words)
    words = re.sub(r" \[type=[^\n]*|\n\s*For further information[^\n]*", "", words)
    text = "; ".join(" ".join(part.split()) for part in re.split(r"\n(?=\S)", words))
    return text if len(text) <= 160 else f"{text[:157]}..."


def show_summary(console: Console, played: Sequence[PlayedCall]) -> None:
    """Success before and after, over all and per session, and who profited from whom."""
    table = _table("Calls that succeeded", "session", "calls", "at the first try",
                   "with Aftercall", "as meant")  # fmt: skip
    for name in dict.fromkeys([*(each.session.name for each in played), "all"]):
        rows = [each for each in played if name in ("all", each.session.name)]
        fine = [each for each in rows if each.ending == "fine"]
        after = [each for each in rows if each.ending in ("fine", "repaired")]
        meant = [each for each in after if each.as_meant]
        table.add_row(
            name, str(len(rows)), _share(fine, rows), _share(after, rows), _share(meant, after)
        )
    console.print(table)
    for each in played:
        if each.ending == "repaired" and each.repairs_known:
            times = "once" if each.repairs_known == 1 else f"{each.repairs_known} times"
            console.print(
                f"  [bold]{each.session.agent}[/] made a mistake that others had mended {times} "
                f"before ({each.call.mistake}, {escape(each.call.tool)}): it was repaired at once."
            )


def _share(part: Sequence[PlayedCall], whole: Sequence[PlayedCall]) -> str:
    return f"{len(part)} ({len(part) / max(1, len(whole)):.0%})"


def _table(title: str, first: str, *numbers: str) -> Table:
    """A table of numbers beside names."""
    table = Table(title=title)
    table.add_column(first)
    for each in numbers:
        table.add_column(each, justify="right")
    return table


def show_scene(console: Console, played: Sequence[SceneCall]) -> None:
    """Who was called and how it went; the factors and the score are the script's."""
    table = Table(title=f"The fittest of the namespace {NAMESPACE}", expand=True)
    for title in ("the script's list", "caller", "called", "ended"):
        table.add_column(title, no_wrap=title == "called")
    for title in ("base", "quality", "demotion", "score"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("fittest", no_wrap=True)
    for each in played:
        factors = each.factors
        numbers = (factors.base, factors.quality, factors.failure_demotion, each.score)
        table.add_row(
            each.phase, each.agent, escape(each.called), _mark(each),
            *(f"{number:.2f}" for number in numbers), escape(each.chosen),
        )  # fmt: skip
    console.print(table)
    failed = sum(not each.succeeded for each in played)
    mended = sum(each.agent == "eve" for each in played)
    console.print(
        f'  For "{SCENARIO}" the script lost its place after {failed} '
        f"{'failure' if failed == 1 else 'failures'} and had it back after {mended} "
        f"{'success' if mended == 1 else 'successes'}, without anybody changing a caller."
    )


def show_boundaries(console: Console, scene: BoundaryScene) -> None:
    """What the tools said of themselves, and what a tool builder and the next agent are told."""
    table = Table(title="What tools say of themselves", expand=True)
    for title in ("tool", "asked for", "it said", "what became of it"):
        table.add_column(title, no_wrap=title == "tool")
    for each in scene.calls:
        table.add_row(escape(each.tool), escape(each.asked), _said(each), escape(each.lane))
    console.print(table)
    console.print("  What a tool builder is recommended:")
    for advice in scene.recommendations:
        console.print(f"  - {escape(advice.message)}")
    console.print("  What the next agent is told, in a prompt:")
    console.print(scene.known_tools, markup=False, highlight=False)


class HoldsDataError(AftercallError):
    """The service holds executions, with which made-up ones would mix."""


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What was asked for on the command line.

    Args:
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
    played = asyncio.Event()
    try:
        await done_or_stopped(stopping, _own(console, options, folder, played))
    finally:
        if options.keep is None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if options.keep is None:
        console.print("The service is stopped, and its made-up data are removed.")
    else:
        console.print("The service is stopped. To see its data again:")
        _plain(console, f"  aftercall serve --data-dir {folder / 'data'}")
    return 0 if played.is_set() else stopping.status


async def _own(
    console: Console, options: HistoryOptions, folder: Path, played: asyncio.Event
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        with console.status("starting a service (the first time, a model is exported: 15 s) ..."):
            here = await stack.enter_async_context(hosted(folder))
        async with AsyncClient(here.url, timeout_s=_PATIENCE_S) as client:
            await _played(console, options, client)
        with console.status("running the nightly ingest ..."):
            is_done = await here.nightly()
        if not is_done:
            _plain(console, f"The nightly ingest failed; see {folder / 'nightly.log'}")
        console.print(f"[dim]{time.monotonic() - began:.0f} s in all[/]")
        played.set()
        if options.serves:
            console.print("The dashboard is full. Ctrl-C ends it.")
            _plain(console, f"  {here.url}/dashboard")
            await here.process.wait()
            raise StageError("the service ended by itself; play the history again")


async def _played(console: Console, options: HistoryOptions, client: AsyncClient) -> None:
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} calls"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("getting ready", total=None)
        report = await play_history(
            client, seed=options.seed, days=options.days, calls_per_day=options.calls_per_day,
            on_progress=lambda now: bar.update(
                task, description=now.words, completed=now.done, total=now.total
            ),
        )  # fmt: skip
    show_report(console, report)


def show_report(console: Console, report: HistoryReport) -> None:
    """Two short tables: what happened, and how it went from stage to stage."""
    most = sorted(report.failures.items(), key=lambda each: -each[1])[:5]
    table = Table(title=f"{report.since:%d %b} to {report.until:%d %b %Y}", show_header=False)
    table.add_column("what")
    table.add_column("how many", justify="right")
    table.add_column("of them", overflow="fold")
    for what, count, words in (
        ("calls", report.calls,
         f"{report.sessions:,} sessions, {report.agents} agents, {report.tools} tools"),
        ("failures", sum(report.failures.values()),
         ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in most)),
        ("tasks", report.tasks,
         f"{report.first_rate:.1%} right at once, {report.final_rate:.1%} in the end"),
        ("questions", report.asked, f"{report.abstained:,} times it knew nothing better"),
        ("followed", report.followed + report.by_hand,
         f"{report.right:,} did what was meant, {report.wrong:,} something else, "
         f"{report.failed:,} failed again"),
        ("people said", report.corrections + report.marks,
         f"{report.corrections:,} corrections, {report.marks:,} marked failures"),
    ):  # fmt: skip
        table.add_row(what, f"{count:,}", words)
    console.print(table)
    table = _table("Tasks that ended well", "from", "calls", "at once", "in the end",
                   "mended: asking", "mended: alone")  # fmt: skip
    for stage in report.stages:
        rates = (stage.first_rate, stage.final_rate, stage.mended_asking, stage.mended_alone)
        shown = ("" if rate is None else f"{rate:.1%}" for rate in rates)
        table.add_row(f"{stage.since:%d %b}", f"{stage.calls:,}", *shown)
    console.print(table)
    if not report.is_learned:
        console.print("The service is still learning; its answers get better for a while.")


def _plain(console: Console, line: str) -> None:
    """A line that can be copied: paths and addresses are no markup, and are not broken."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)
