"""A made-up history: simulated agents, simulated tools, real refusals and real repairs.

    async with in_process() as client:
        report = await play_history(client, calls_per_day=50)

Agents of a stage play at once; what they did is recorded in batches; the next stage begins when the
service has learned it, so that later agents ask a memory that earlier ones taught.
docs/demo-history.md tells what is in it.
"""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from aftercall import AsyncClient
from aftercall.errors import AftercallError, ApiError
from aftercall.models import Promotion
from service.demo.simulated_agents import (
    Answer,
    Ending,
    PlayedSession,
    Remark,
    SessionPlan,
    executions_alone,
    moment_of,
    plan_sessions,
    play_session,
    sessions_alone,
)
from service.demo.simulated_tools import PHASES, FaultKind, all_tools
from service.demo.stage import StageError, empty_folder, hosted
from service.lifecycle import Stopping, done_or_stopped, stopped_by_signals

__all__ = [
    "HistoryProgress", "HistoryReport", "StageReport", "executions_alone", "play_history",
    "sessions_alone",
]  # fmt: skip

STAGES = 7
"""Stages of a history: the memory learns as often."""

AT_ONCE = 6
"""Sessions that are played at the same time."""

_BATCH = 500
_LEARNED_S = 120.0
"""Longest wait for the service to learn a stage; it goes on without."""
_LOOK_S = 0.05
_PATIENCE_S = 30.0
"""For an answer of a service that learns at the same time."""


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """How far a history is: calls so far, calls that are expected, and what is being done."""

    done: int
    total: int
    words: str


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage: what its agents did before the memory learned from it.

    Rates are shares of tasks, 0 to 1, higher is better: of those right at once, of those that ended
    well in the end, and of those whose first call failed that were mended, by agents that ask and
    by those that do not.
    """

    since: datetime
    calls: int
    first_rate: float
    final_rate: float
    mended_asking: float | None
    mended_alone: float | None


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What happened, by the simulator's own count; of followed suggestions by hidden truth.

    `calls` has attempts in it, `failures` what failed calls were, `endings` how tasks ended;
    `abstained` are answers without a suggestion. `followed` are calls made on a suggestion's word
    as the rules of retries allow, `by_hand` those that these leave to the caller. Of all these,
    `right` succeeded and did what the caller meant, `wrong` succeeded and did something else,
    `failed` failed again. `is_learned`: the service had learned everything when it ended.
    """

    since: datetime
    until: datetime
    calls: int
    sessions: int
    tools: int
    agents: int
    failures: Mapping[FaultKind, int]
    tasks: int
    endings: Mapping[Ending, int]
    asked: int
    abstained: int
    followed: int
    by_hand: int
    right: int
    wrong: int
    failed: int
    corrections: int
    marks: int
    stages: Sequence[StageReport]
    is_learned: bool

    @property
    def first_rate(self) -> float:
        """Share of tasks whose first call succeeded, 0 to 1."""
        return self.endings.get("at once", 0) / max(1, self.tasks)

    @property
    def final_rate(self) -> float:
        """Share of tasks that ended well, 0 to 1."""
        return 1 - self.endings.get("not mended", 0) / max(1, self.tasks)


async def play_history(
    client: AsyncClient,
    *,
    seed: int = 7,
    days: int = 30,
    calls_per_day: int = 250,
    now: datetime | None = None,
    ask: bool = True,
    on_progress: Callable[[HistoryProgress], None] = lambda _: None,
) -> HistoryReport:
    """Let simulated agents call simulated tools for some days, and record it all.

    Args:
        client: of the service that is told, and asked. It should be empty: the same calls twice
            count once, but made-up calls mix with real ones.
        seed: the same one gives the same history, given the same `now` and the same answers.
        days: UTC days, the last of which is that of `now`; at least 1.
        calls_per_day: a mean over a week, attempts included; at least 1. Today is not over.
        now: no call is later; the present when None.
        ask: whether the agents that ask may do so; without, all mend by themselves.
        on_progress: told how far it is.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, `now` has no zone, or there was no call.
        AftercallError: the service did not take what was told. A question that it does not answer
            is left without an answer.
    """
    moment = now or datetime.now(UTC)
    plans = plan_sessions(seed, days, calls_per_day, moment)
    history = _History(client, seed, days, calls_per_day, moment, ask=ask, on_progress=on_progress)
    played: list[PlayedSession] = []
    stages: list[StageReport] = []
    reached, is_learned = -1, True
    for number in range(STAGES):
        last = PHASES * (number + 1) // STAGES - 1
        await history.register(reached, last)
        present = [plan for plan in plans if reached < plan.day <= last]
        reached = last
        if present:
            stage = await history.sessions(present)
            played += stage
            await history.record(stage)
            is_learned = await history.learned()
            stages.append(_staged(present[0].starts, stage))
    calls = [call.execution for session in played for call in session.calls]
    faults = [call.fault for session in played for call in session.calls]
    tasks = [task for session in played for task in session.tasks]
    remarks = [remark for session in played for remark in session.remarks]
    if not calls:
        raise ValueError("a history of no calls: take more days or more calls per day")
    marks = sum(remark.severity is not None for remark in remarks)
    counted = ("asked", "abstained", "followed", "by_hand", "right", "wrong", "failed")
    return HistoryReport(
        since=min(call.timestamp for call in calls),
        until=max(call.timestamp for call in calls),
        calls=len(calls),
        sessions=sum(1 for session in played if session.calls),
        tools=len({tool.tool_id for tool in all_tools()}),
        agents=len({call.agent for call in calls}),
        failures=Counter(fault for fault in faults if fault is not None),
        tasks=len(tasks),
        endings=Counter(task.ending for task in tasks),
        **{name: sum(getattr(task, name) for task in tasks) for name in counted},
        corrections=len(remarks) - marks,
        marks=marks,
        stages=stages,
        is_learned=is_learned,
    )


class _History:
    """One history while it is played against a service."""

    def __init__(
        self, client: AsyncClient, seed: int, days: int, calls_per_day: int, now: datetime,
        *, ask: bool, on_progress: Callable[[HistoryProgress], None],
    ) -> None:  # fmt: skip
        self._client = client
        self._seed = seed
        self._days = days
        self._total = days * calls_per_day
        self._now = now
        self._ask = ask
        self._on_progress = on_progress
        self._done = 0

    async def register(self, after: int, day: int) -> None:
        """Register the versions that came after a day up to another; promote what was evolved."""
        for tool in all_tools():
            if not after < tool.since <= day:
                continue
            await self._client.put_tool(tool.tool_id, tool.spec)
            spec, old = tool.spec, tool.spec.evolved_from
            if old is not None and spec.namespace is not None:
                [before] = [each.spec.version for each in all_tools() if each.tool_id == old]
                since = moment_of(tool.since, self._days, self._now)
                promotion = Promotion(
                    evolved_version=spec.version or "", original_version=before, promoted_at=since,
                    reason=tool.reason,
                )  # fmt: skip
                await self._client.promote(spec.namespace, promotion)

    async def sessions(self, plans: Sequence[SessionPlan]) -> list[PlayedSession]:
        """Play sessions, some at once; in the order of their plans."""
        played: dict[int, PlayedSession] = {}
        waiting = iter(plans)

        async def work() -> None:
            for plan in waiting:
                played[plan.number] = await self._session(plan)
                self._done += len(played[plan.number].calls)
                self._say("agents at work")

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE if self._ask else 1)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [played[plan.number] for plan in plans]

    async def _session(self, plan: SessionPlan) -> PlayedSession:
        session = play_session(plan, self._seed, self._now)
        try:
            question = next(session)
            while True:
                answer: Answer = None
                with suppress(ApiError):  # as for an agent whose service is away: it goes on alone
                    answer = await self._client.suggest(question) if self._ask else None
                question = session.send(answer)
        except StopIteration as end:
            done: PlayedSession = end.value
            return done

    async def record(self, played: Sequence[PlayedSession]) -> None:
        """Record the calls, oldest first, and what people said of them."""
        self._say("recording and learning")
        made = (call.execution for session in played for call in session.calls)
        calls = sorted(made, key=lambda each: each.timestamp)
        for start in range(0, len(calls), _BATCH):
            receipt = await self._client.record(calls[start : start + _BATCH])
            if receipt.rejected:
                raise AftercallError(
                    f"a call was refused: {receipt.rejected[0].message}; if a history of seed "
                    f"{self._seed} was played there before, choose another --seed"
                )
        for session in played:
            for remark in session.remarks:
                await self._tell(remark)

    async def _tell(self, remark: Remark) -> None:
        call, tool = remark.call.execution, remark.call.tool
        made_up = Random(f"remark {call.execution_id}")  # noqa: S311  # repeatable, no secret
        own_id = str(UUID(int=made_up.getrandbits(128), version=4))
        if remark.severity is None:
            await self._client.correct(
                remark.words, execution_id=call.execution_id, agent=call.agent,
                correction_id=own_id,
            )  # fmt: skip
        else:
            await self._client.mark_failure(
                tool.tool_id, call.context or "", remark.words, severity=remark.severity,
                version=tool.spec.version, execution_id=call.execution_id, mark_id=own_id,
            )  # fmt: skip

    async def learned(self) -> bool:
        """Wait until the service has learned everything; whether it has."""
        deadline = time.monotonic() + _LEARNED_S
        while (await self._client.status()).pending_indexing:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    def _say(self, words: str) -> None:
        self._on_progress(HistoryProgress(self._done, max(self._total, self._done), words))


def _staged(since: datetime, played: Sequence[PlayedSession]) -> StageReport:
    tasks = [task for session in played for task in session.tasks]
    failed = [task for task in tasks if task.ending != "at once"]
    asking = [task.ending != "not mended" for task in failed if task.is_asking]
    alone = [task.ending != "not mended" for task in failed if not task.is_asking]
    return StageReport(
        since=since,
        calls=sum(len(session.calls) for session in played),
        first_rate=1 - len(failed) / max(1, len(tasks)),
        final_rate=sum(task.ending != "not mended" for task in tasks) / max(1, len(tasks)),
        mended_asking=sum(asking) / len(asking) if asking else None,
        mended_alone=sum(alone) / len(alone) if alone else None,
    )


class HoldsDataError(AftercallError):
    """The service holds executions, with which made-up ones would mix."""


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What was asked for on the command line: a running service by its `url`, or one of its own.

    `may_mix`: that service may hold executions already. `keep`: a folder to leave the data in.
    `serves`: its own service goes on until Ctrl-C.
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
    table = Table(title="Tasks that ended well")
    for title in ("from", "calls", "at once", "in the end", "mended: asking", "mended: alone"):
        table.add_column(title, justify="left" if title == "from" else "right")
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
