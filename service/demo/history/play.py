"""Playing a history against a service: in stages, so that later agents ask a memory that learned.

Agents of a stage play at once; what they did is recorded in batches; the next stage begins when the
service has learned it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from random import Random
from uuid import UUID

from aftercall import AsyncClient
from aftercall.errors import AftercallError, ApiError
from aftercall.models import FailedCall, Promotion
from service.demo.history.catalogue import PHASES, Catalogue
from service.demo.history.playing import Answer, play_session
from service.demo.history.records import PlayedSession, Remark
from service.demo.history.report import HistoryReport, StageReport, reported, staged
from service.demo.history.rhythm import SessionPlan, moment_of, plan_sessions

STAGES = 7
"""Stages of a history: the memory learns as often."""

AT_ONCE = 6
"""Sessions that are played at the same time."""

_BATCH = 500
_LEARNED_S = 120.0
"""Longest wait for the service to learn a stage; it goes on without."""
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """How far a history is.

    Args:
        done: calls so far.
        total: calls that are expected, about.
        words: what is being done, in a few words.
    """

    done: int
    total: int
    words: str


OnProgress = Callable[[HistoryProgress], None]


def _silent(progress: HistoryProgress) -> None:
    del progress


async def play_history(
    client: AsyncClient,
    *,
    seed: int = 7,
    days: int = 30,
    calls_per_day: int = 250,
    now: datetime | None = None,
    ask: bool = True,
    on_progress: OnProgress = _silent,
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

    Returns:
        What happened, by hidden truth.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, `now` has no zone, or there was no call.
        AftercallError: the service did not take what was told. A question that it does not answer
            is left without an answer.
    """
    moment = now or datetime.now(UTC)
    plans = plan_sessions(seed, days, calls_per_day, moment)
    history = _History(client, seed, moment, days, calls_per_day, ask, on_progress)
    return await history.play(plans)


class _History:
    """One history while it is played."""

    def __init__(
        self, client: AsyncClient, seed: int, now: datetime, days: int, calls_per_day: int,
        ask: bool, on_progress: OnProgress,  # noqa: FBT001  # as `play_history` was given it
    ) -> None:  # fmt: skip
        self._client = client
        self._seed = seed
        self._now = now
        self._days = days
        self._total = days * calls_per_day
        self._ask = ask
        self._on_progress = on_progress
        self._catalogue = Catalogue()
        self._played: list[PlayedSession] = []
        self._done = 0
        self._tools: set[str] = set()
        self._corrections = self._marks = self._promotions = 0

    async def play(self, plans: Sequence[SessionPlan]) -> HistoryReport:
        started = time.monotonic()
        stages: list[StageReport] = []
        reached, is_learned = -1, True
        for number in range(STAGES):
            day = PHASES * (number + 1) // STAGES - 1
            await self._register(reached, day)
            at_hand = [plan for plan in plans if reached < plan.day <= day]
            reached = day
            if not at_hand:
                continue
            self._say(f"stage {number + 1} of {STAGES}: agents at work")
            played = await self._sessions(at_hand)
            self._say(f"stage {number + 1} of {STAGES}: recording and learning")
            await self._record(played)
            is_learned = await self._learned()
            stages.append(staged(at_hand[0].starts, at_hand[-1].starts, played))
        return reported(
            self._played, seed=self._seed, tools=len(self._tools), corrections=self._corrections,
            marks=self._marks, promotions=self._promotions, stages=stages, is_learned=is_learned,
            seconds=time.monotonic() - started,
        )  # fmt: skip

    async def _register(self, after: int, day: int) -> None:
        """Register what is new up to a day, and promote what was evolved."""
        for tool in self._catalogue.new_between(after, day):
            await self._client.put_tool(tool.tool_id, tool.spec())
            self._tools.add(tool.tool_id)
            if tool.evolved_from is not None and tool.namespace is not None:
                before = self._catalogue.by_id(tool.evolved_from)
                await self._client.promote(
                    tool.namespace,
                    Promotion(
                        evolved_version=tool.version,
                        original_version=before.version,
                        reason=tool.reason,
                        promoted_at=moment_of(tool.since, self._days, self._now),
                    ),
                )
                self._promotions += 1

    async def _sessions(self, plans: Sequence[SessionPlan]) -> list[PlayedSession]:
        """Play sessions, some at once; in the order of their plans."""
        played: dict[int, PlayedSession] = {}
        waiting = iter(plans)

        async def work() -> None:
            for plan in waiting:
                session = await self._session(plan)
                played[plan.number] = session
                self._done += len(session.calls)
                self._say("agents at work")

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE if self._ask else 1):
                    group.create_task(work())
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None  # the others only followed
        return [played[plan.number] for plan in plans]

    async def _session(self, plan: SessionPlan) -> PlayedSession:
        session = play_session(plan, self._catalogue, self._seed, self._now)
        answer: Answer = None
        try:
            question = next(session)
            while True:
                answer = await self._answer(question) if self._ask else None
                question = session.send(answer)
        except StopIteration as end:
            done: PlayedSession = end.value
            return done

    async def _answer(self, question: FailedCall) -> Answer:
        try:
            return await self._client.suggest(question)
        except ApiError:
            return None  # as an agent fares whose service is away: it goes on alone

    async def _record(self, played: Sequence[PlayedSession]) -> None:
        self._played += played
        calls = sorted((c for each in played for c in each.calls), key=lambda call: call.at)
        remaining = iter(calls)
        while batch := [call.execution() for call in islice(remaining, _BATCH)]:
            receipt = await self._client.record(batch)
            if receipt.rejected:
                raise AftercallError(
                    f"a call was refused: {receipt.rejected[0].message}; if a history of seed "
                    f"{self._seed} was played there before, choose another --seed"
                )
        for remark in (r for each in played for r in each.remarks):
            await self._tell(remark)

    async def _tell(self, remark: Remark) -> None:
        call = remark.call
        made_up = Random(f"remark {call.execution_id}")  # noqa: S311  # repeatable, no secret
        own_id = str(UUID(int=made_up.getrandbits(128), version=4))
        if remark.severity is None:
            await self._client.correct(
                remark.words, execution_id=call.execution_id, agent=call.agent,
                correction_id=own_id,
            )  # fmt: skip
            self._corrections += 1
            return
        await self._client.mark_failure(
            call.tool.tool_id, call.context, remark.words, severity=remark.severity,
            version=call.tool.version, execution_id=call.execution_id, mark_id=own_id,
        )  # fmt: skip
        self._marks += 1

    async def _learned(self) -> bool:
        deadline = time.monotonic() + _LEARNED_S
        while time.monotonic() < deadline:
            if (await self._client.status()).pending_indexing == 0:
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    def _say(self, words: str) -> None:
        self._on_progress(HistoryProgress(self._done, max(self._total, self._done), words))
