"""A made-up history: simulated agents, simulated tools, real refusals and real repairs.

    async with AsyncClient() as client:
        report = await play_history(client, calls_per_day=50)

Agents of a stage play at once; what they did is recorded in batches; the next stage begins when the
service has learned it, so that later agents ask a memory that earlier ones taught.
docs/demo-history.md shows what is in it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import cast
from uuid import UUID

from rich.console import Console
from rich.table import Column, Table

from aftercall import AsyncClient
from aftercall.errors import AftercallError, ApiError
from aftercall.models import Promotion
from service.demo import simulated_agents
from service.demo.simulated_tools import PHASES, FaultKind, all_tools
from service.demo.stage import (
    StageError,
    open_service,
    open_status,
    temporary_folder,
    wait_until_learned,
)
from service.lifecycle import done_or_stopped, stopped_by_signals

_STAGES = 7
"""The memory learns as often."""
_AT_ONCE = 6
"""Sessions that are played at the same time."""
_BATCH = 500
_LEARNED_S = 120.0
"""Longest wait for the service to learn a stage; it goes on without."""
_PATIENCE_S = 30.0
"""For an answer of a service that learns at the same time."""
OnProgress = Callable[[int, str], None]
"""Receives the number of calls so far, and the present step."""


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The events of a history, by the simulator's own count.

    `calls` includes further attempts, `failures` counts failed calls by kind, `endings` tasks by
    how they ended. `counts` has `corrections` and `marks`, and those of `PlayedSession`.
    """

    since: datetime
    until: datetime
    calls: int
    agents: int
    failures: Counter[FaultKind]
    endings: Counter[simulated_agents.Ending]
    counts: Counter[str]

    @property
    def first_rate(self) -> float:
        """Share of tasks whose first call succeeded, 0 to 1."""
        return self.endings["at once"] / max(1, self.endings.total())

    @property
    def final_rate(self) -> float:
        """Share of tasks that ended well, 0 to 1."""
        return 1 - self.endings["not mended"] / max(1, self.endings.total())


async def play_history(
    client: AsyncClient,
    *,
    seed: int = 7,
    days: int = 30,
    calls_per_day: int = 250,
    now: datetime | None = None,
    ask: bool = True,
    on_progress: OnProgress = lambda _done, _words: None,
) -> HistoryReport:
    """Let simulated agents call simulated tools for some UTC days up to `now`, and record it all.

    The service should be empty: the same calls twice count once, but made-up calls mix with real
    ones. The same seed gives the same history, given the same `now` and the same answers; with
    `ask=False` all agents repair by themselves. `calls_per_day` is a weekly mean of all attempts.

    Raises:
        ValueError: there was no call.
        AftercallError: the service did not take what was shown.
    """
    moment = now or datetime.now(UTC)
    plans = simulated_agents.plan_sessions(seed, days, calls_per_day, moment)
    played: dict[int, simulated_agents.PlayedSession] = {}

    async def play_plans(waiting: Sequence[simulated_agents.SessionPlan]) -> None:
        for plan in waiting:
            played[plan.number] = await _play_session(client if ask else None, plan, seed, moment)
            on_progress(sum(len(each.calls) for each in played.values()), "agents at work")

    reached = -1
    for number in range(_STAGES):
        last = PHASES * (number + 1) // _STAGES - 1
        await _register_tools(client, range(reached + 1, last + 1), days, moment)
        present = [plan for plan in plans if reached < plan.day <= last]
        reached = last
        try:
            async with asyncio.TaskGroup() as group:
                for start in range(_AT_ONCE):
                    group.create_task(play_plans(present[start::_AT_ONCE]))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        stage = [played[plan.number] for plan in present]
        if any(session.calls for session in stage):
            on_progress(sum(len(each.calls) for each in played.values()), "recording and learning")
            await _record_calls(client, seed, stage)
            await wait_until_learned(client, _LEARNED_S)
    sessions = [played[plan.number] for plan in plans]
    calls = [call for session in sessions for call in session.calls]
    remarks = [remark for session in sessions for remark in session.remarks]
    counts = Counter("corrections" if each.severity is None else "marks" for each in remarks)
    if not calls:
        raise ValueError("a history of no calls: take more days or more calls per day")
    return HistoryReport(
        since=min(call.execution.timestamp for call in calls),
        until=max(call.execution.timestamp for call in calls),
        calls=len(calls),
        agents=len({call.execution.agent for call in calls}),
        failures=Counter(call.fault for call in calls if call.fault is not None),
        endings=Counter(task.ending for session in sessions for task in session.tasks),
        counts=sum((session.counts for session in sessions), counts),
    )


async def _play_session(
    client: AsyncClient | None, plan: simulated_agents.SessionPlan, seed: int, now: datetime
) -> simulated_agents.PlayedSession:
    session = simulated_agents.play_session(plan, seed, now)
    try:
        question = next(session)
        while True:
            answer: simulated_agents.Answer = None
            with suppress(ApiError):  # an agent whose service is away continues alone
                answer = await client.suggest(question) if client else None
            question = session.send(answer)
    except StopIteration as end:
        return cast("simulated_agents.PlayedSession", end.value)


async def _register_tools(client: AsyncClient, present: range, days: int, now: datetime) -> None:
    for tool in all_tools():
        spec = tool.spec
        if tool.since not in present:
            continue
        await client.put_tool(tool.tool_id, spec)
        if spec.evolved_from is not None and spec.namespace is not None:
            [before] = [each.spec for each in all_tools() if each.tool_id == spec.evolved_from]
            promotion = Promotion(
                evolved_version=spec.version or "", original_version=before.version,
                promoted_at=simulated_agents.story_time(tool.since, days, now), reason=tool.reason,
            )  # fmt: skip
            await client.promote(spec.namespace, promotion)


async def _record_calls(
    client: AsyncClient, seed: int, played: Sequence[simulated_agents.PlayedSession]
) -> None:
    made = (call.execution for session in played for call in session.calls)
    calls = sorted(made, key=lambda each: each.timestamp)
    for start in range(0, len(calls), _BATCH):
        receipt = await client.record(calls[start : start + _BATCH])
        if receipt.rejected:
            raise AftercallError(
                f"a call was refused: {receipt.rejected[0].message}; if a history of seed "
                f"{seed} was played there before, choose another seed"
            )
    for session in played:
        for remark in session.remarks:
            await _report_remark(client, remark)


async def _report_remark(client: AsyncClient, remark: simulated_agents.Remark) -> None:
    call, tool = remark.call.execution, remark.call.tool
    made_up = Random(f"remark {call.execution_id}")  # noqa: S311  # repeatable, no secret
    own_id = str(UUID(int=made_up.getrandbits(128), version=4))
    if remark.severity is None:
        await client.correct(
            remark.words, execution_id=call.execution_id, agent=call.agent, correction_id=own_id
        )
    else:
        await client.mark_failure(
            tool.tool_id, call.context or "", remark.words, severity=remark.severity,
            version=tool.spec.version, execution_id=call.execution_id, mark_id=own_id,
        )  # fmt: skip


async def run_history(
    console: Console,
    *,
    seed: int = 7,
    days: int = 30,
    calls_per_day: int = 250,
    serves: bool = True,
) -> int:
    """Play a history on a service of its own, and show the result; return the exit code.

    With `serves` the service continues until Ctrl-C. The exit code is 0 unless a signal cut it
    short.
    """
    played = asyncio.Event()

    async def play_all(folder: Path) -> None:
        began, total = time.monotonic(), days * calls_per_day
        next_said = 0
        async with open_service(folder) as here:
            with open_status(console) as say:

                def show_progress(done: int, words: str) -> None:
                    nonlocal next_said
                    if done >= next_said:
                        next_said = done + total // 10
                        say(f"{words}: {done:,} calls, of about {total:,}")

                async with AsyncClient(here.url, timeout_s=_PATIENCE_S) as client:
                    report = await play_history(
                        client,
                        seed=seed,
                        days=days,
                        calls_per_day=calls_per_day,
                        on_progress=show_progress,
                    )
                say("the nightly ingest")
                is_done = await here.run_nightly()
            show_report(console, report)
            if not is_done:
                console.print(f"The nightly ingest failed; see {folder / 'nightly.log'}")
            console.print(f"[dim]{time.monotonic() - began:.0f} s in all[/]")
            played.set()
            if serves:
                console.print("The dashboard is full. Ctrl-C ends it.")
                line = f"  {here.url}/dashboard"  # to be copied: no markup, and not broken
                console.print(line, markup=False, highlight=False, soft_wrap=True)
                await here.process.wait()
                raise StageError("the service ended by itself; play the history again")

    with stopped_by_signals() as stopping, temporary_folder() as folder:
        await done_or_stopped(stopping, play_all(folder))
    console.print("The service is stopped, and its made-up data are removed.")
    return 0 if played.is_set() else stopping.status


def show_report(console: Console, report: HistoryReport) -> None:
    """Show the events of a history, in a short table."""
    counts = report.counts
    table = Table(
        "what", Column(justify="right"), Column(overflow="fold"),
        title=f"{report.since:%d %b} to {report.until:%d %b %Y}", show_header=False,
    )  # fmt: skip

    def add(what: str, count: int, words: str) -> None:
        table.add_row(what, f"{count:,}", words)

    names = {tool.tool_id for tool in all_tools()}
    kinds = [
        f"{number:,} {kind.replace('_', ' ')}" for kind, number in report.failures.most_common(5)
    ]
    rates = f"{report.first_rate:.1%} right at once, {report.final_rate:.1%} in the end"
    endings = (
        f"{counts['right']:,} did what was meant, {counts['wrong']:,} something else, "
        f"{counts['failed']:,} failed again"
    )
    corrections, marks = counts["corrections"], counts["marks"]
    add("calls", report.calls, f"{report.agents} agents, {len(names)} tools")
    add("failures", report.failures.total(), ", ".join(kinds))
    add("tasks", report.endings.total(), rates)
    add("questions", counts["asked"], f"{counts['abstained']:,} times it knew nothing better")
    add("followed", counts["followed"], endings)
    add(
        "people said",
        corrections + marks,
        f"{corrections:,} corrections, {marks:,} marked failures",
    )
    console.print(table)
