"""Simulated agents: when they work, what they get wrong, whether they ask, and how they mend it.

No I/O. A session is a generator: it yields each failed call that its agent asks about, is sent the
answer, and returns what was played. All that is drawn comes from the seed and the session's number,
so that sessions can be played in any order, or at once, and the answers alone make a difference.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from aftercall.json_values import JsonObject
from aftercall.models import (
    Change,
    Execution,
    ExecutionError,
    FailedCall,
    Severity,
    Suggestion,
    SuggestResponse,
)
from aftercall.reflection.retry_rules import (
    FailedAttempt,
    ReflectionPolicy,
    RetryRules,
    apply_changes,
)
from service.demo.simulated_tools import (
    HOPELESS,
    PASSING,
    PHASES,
    DemoTable,
    FaultKind,
    Moment,
    SimTool,
    SlipKind,
    ToolFault,
    Wish,
    read_table,
    tools_on,
)

HOURS = (
    0.10, 0.08, 0.06, 0.06, 0.08, 0.15, 0.35, 0.60, 0.90, 1.00, 1.00, 0.90,
    0.70, 0.90, 1.00, 0.95, 0.80, 0.60, 0.40, 0.30, 0.25, 0.20, 0.15, 0.12,
)  # fmt: skip
"""Load by hour of the day, UTC; 1 is the busiest."""

WEEKEND = 0.45
"""Load of a Saturday or Sunday beside that of a working day."""

CALLS_PER_TASK = 1.16
"""Attempts included; measured, and held to by a test."""

_TASKS = (2, 3, 4, 4, 5, 6, 7)
_SPARE = timedelta(minutes=2)
"""Before now no session begins, or it would hold no call."""
_PAUSE_S = 12.0
"""Mean seconds between two calls of a session; an agent's thinking."""
_ANOTHER_SLIP = 0.12
"""Share of mistaken calls with a second mistake in them."""
_TAKES_RIGHT, _TAKES_WRONG, _WAITS = 0.6, 0.12, 0.55
"""How often an agent takes what is left to it: a change that is right, one that is not, a wait."""
_OLD_HABIT, _WEARS_OFF = 0.6, 0.9
"""Share of calls in the form of the version before on its first day, and how it wears off a day."""
_NOTICED = 0.35
"""Share of the answers to something else than was meant that a user sees and says so."""
_MARKED = 0.3
"""Share of the breakdowns of tools with competitors that somebody marks."""
_SEVERITIES: tuple[Severity, ...] = ("low", "medium", "medium", "high")

Ending = Literal["at once", "suggested", "by hand", "by itself", "elsewhere", "not mended"]
"""How a task ended: right at once; mended by a suggestion, as the rules of retries allow; by one
that these left to the agent, who took it; by the agent's own skill; done by another tool after a
referral; or not at all."""

Answer: TypeAlias = SuggestResponse | None
"""What the service said; None when it was not there to say anything."""


class SimAgent(DemoTable):
    """One agent, as `data/agents.toml` says it.

    Args:
        servers: how much of its work is on each server.
        slips: share of its calls that it gets wrong.
        prone: kinds of slips that it makes more often than others, as factors.
        skill: factor on how often it mends a failure by itself.
        asks_from: the day of the story from which on it asks the service; None for never.
        min_confidence: it follows suggestions above this, 0 to 1.
        joins: the first day of the story on which it works.
    """

    name: str
    servers: dict[str, float]
    slips: float
    prone: dict[SlipKind, float] = Field(default={})
    skill: float = 1.0
    asks_from: int | None = None
    min_confidence: float = 0.80
    may_write: bool = True
    says_repair_of: bool = False
    share: float = 1.0
    joins: int = 0

    def mends(self, kind: FaultKind) -> float:
        """How often it mends such a failure by itself, 0 to 1."""
        return min(0.95, float(read_table("agents")["mends"].get(kind, 0.0)) * self.skill)


@cache
def all_agents() -> tuple[SimAgent, ...]:
    """Sixteen agents; four never ask, the others begin to within the first half."""
    return tuple(SimAgent.model_validate(each) for each in read_table("agents")["agents"])


@dataclass(frozen=True, slots=True)
class SimCall:
    """One call of one simulated tool: as it is recorded, and the truth about it."""

    tool: SimTool
    execution: Execution
    fault: FaultKind | None

    @property
    def error(self) -> ExecutionError:
        """What the tool said; empty where it succeeded."""
        return self.execution.error or ExecutionError(message="")

    def question(self) -> FailedCall:
        """As the service is asked about a failed call."""
        fields = {name: getattr(self.execution, name) for name in FailedCall.model_fields}
        return FailedCall.model_validate(fields)


@dataclass(slots=True)
class SimTask:
    """One thing that an agent wanted done, and what the simulator knows of it.

    `means` are the parameters that would be right, `kind` is that of the first failure; `is_asking`
    says whether its agent asks, and was answered when it did. `right`, `wrong` and `failed` count
    followed suggestions: the call then succeeded and did what its caller meant, succeeded and did
    something else, or failed.
    """

    agent: str
    tool: SimTool
    wish: Wish
    means: JsonObject
    is_asking: bool
    kind: FaultKind | None = None
    ending: Ending = "not mended"
    asked: int = 0
    abstained: int = 0
    followed: int = 0
    by_hand: int = 0
    right: int = 0
    wrong: int = 0
    failed: int = 0
    is_as_meant: bool = True

    def ended(self, ending: Ending, call: SimCall) -> None:
        """A call of it succeeded."""
        self.ending = ending
        self.is_as_meant = self.tool.same(call.execution.parameters, self.means)
        if ending in ("suggested", "by hand"):
            self.right += self.is_as_meant
            self.wrong += not self.is_as_meant


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person said of a call afterwards; `severity` is set where a failure is marked."""

    call: SimCall
    words: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A session when it is over."""

    calls: list[SimCall] = field(default_factory=list)
    tasks: list[SimTask] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)


Session: TypeAlias = Generator[FailedCall, Answer, PlayedSession]


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session before it is played.

    Its number from 0 in the order of time, when it starts (UTC), the day of the story (0 to 29),
    how busy the hour is (0 to 1), how many things get done.
    """

    number: int
    agent: SimAgent
    starts: datetime
    day: int
    load: float
    tasks: int


def plan_sessions(seed: int, days: int, calls_per_day: float, now: datetime) -> list[SessionPlan]:
    """The sessions of `days` UTC days, the last of which is that of `now`; none begins later.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, or `now` has no zone.
    """
    if days < 1 or calls_per_day < 1:
        raise ValueError("days and calls_per_day must be 1 or more")
    if now.tzinfo is None:
        raise ValueError("now must have a zone, such as datetime.now(UTC)")
    dice = Random(f"plan {seed}")  # noqa: S311  # a repeatable history, no secret
    plans = []
    first = moment_of(0, days, now)
    for starts, load in _starts(dice, days, calls_per_day, now):
        day = int((starts - first) / timedelta(days=days) * PHASES)
        present = [agent for agent in all_agents() if agent.joins <= day]
        agent = dice.choices(present, [each.share for each in present])[0]
        plans.append((starts, agent, day, load, dice.choice(_TASKS)))
    plans.sort(key=lambda each: each[0])
    return [
        SessionPlan(number, agent, starts, day, load, tasks)
        for number, (starts, agent, day, load, tasks) in enumerate(plans)
    ]


def moment_of(day: int, days: int, now: datetime) -> datetime:
    """When a day of the story begins, 0 to 29, in a history of `days` days up to `now`; UTC."""
    return _midnight(now) - timedelta(days=days - 1) + timedelta(days=days) * day / PHASES


def _starts(
    dice: Random, days: int, calls_per_day: float, now: datetime
) -> Iterator[tuple[datetime, float]]:
    per_session = CALLS_PER_TASK * sum(_TASKS) / len(_TASKS)
    per_load = calls_per_day / (sum(HOURS) * (5 + 2 * WEEKEND) / 7) / per_session
    for day in range(days):
        midnight = _midnight(now) - timedelta(days=days - 1 - day)
        is_weekend = midnight.weekday() >= 5
        for hour, load in enumerate(HOURS):
            load_now = load * (WEEKEND if is_weekend else 1.0)
            for _ in range(int(load_now * per_load + dice.random())):
                starts = midnight + timedelta(hours=hour, seconds=dice.random() * 3600)
                if starts <= now - _SPARE:
                    yield starts, load_now


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def sessions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> Iterator[PlayedSession]:
    """The sessions of agents whom nobody helps, in the order in which they began; no service.

    It is what `play_history` with `ask=False` records.

    Args:
        now: with a zone; no call is later.
        seed: the same one gives the same sessions.
        days: UTC days, the last of which is that of `now`; at least 1.
        calls_per_day: a mean over a week.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, or `now` has no zone.
    """
    for plan in plan_sessions(seed, days, calls_per_day, now):
        session = play_session(plan, seed, now)
        try:
            next(session)
            while True:
                session.send(None)  # nobody answers
        except StopIteration as end:
            yield end.value


def executions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> list[Execution]:
    """The same as executions, oldest first; arguments and errors as of `sessions_alone`."""
    sessions = sessions_alone(now=now, seed=seed, days=days, calls_per_day=calls_per_day)
    made = (call.execution for each in sessions for call in each.calls)
    return sorted(made, key=lambda each: each.timestamp)


def play_session(plan: SessionPlan, seed: int, now: datetime) -> Session:
    """Play a session up to its end or to `now`."""
    player = _Player(plan, seed, now)
    for _ in range(plan.tasks):
        if player.at >= now:
            break
        yield from player.task()
    return player.played


class _Player:
    """One agent in one session."""

    def __init__(self, plan: SessionPlan, seed: int, now: datetime) -> None:
        self.at = plan.starts
        self.played = PlayedSession()
        self._plan = plan
        self._agent = plan.agent
        self._dice = Random(f"session {seed} {plan.number}")  # noqa: S311  # repeatable, no secret
        self._now = now
        servers = plan.agent.servers
        self._tools = [tool for tool in tools_on(plan.day) if tool.server in servers]
        self._weights = [each.popularity * servers[each.server] for each in self._tools]

    def task(self) -> Generator[FailedCall, Answer, None]:
        """One thing to get done."""
        tool = self._dice.choices(self._tools, self._weights)[0]
        wish = tool.wish(self._dice)
        sends, means = self._slipped(tool, wish.parameters)
        asks = self._agent.asks_from is not None and self._plan.day >= self._agent.asks_from
        task = SimTask(self._agent.name, tool, wish, means, asks)
        self.played.tasks.append(task)
        first = self._call(task, sends)
        task.kind = first.fault
        if first.fault is None:
            task.ended("at once", first)
        self._remark(task, first)
        if first.fault is not None and asks:
            yield from self._reflect(task, first)
        if task.ending == "not mended":
            self._mend_alone(task, first)

    def _slipped(self, tool: SimTool, right: JsonObject) -> tuple[JsonObject, JsonObject]:
        """What is sent and what is meant."""
        sends, means = right, right
        if tool.old_habit is not None:
            share = _OLD_HABIT * _WEARS_OFF ** (self._plan.day - tool.since)
            if self._dice.random() < share:
                return tool.old_habit.make(right, self._dice) or (sends, means)
        chance, touched = self._agent.slips, set[str]()
        weights = [each.weight * self._agent.prone.get(each.kind, 1.0) for each in tool.slips]
        while tool.slips and self._dice.random() < chance:
            slip = self._dice.choices(tool.slips, weights)[0]
            made = slip.make(sends, self._dice) if slip.name not in touched else None
            if made is not None and (not touched or made[1] is sends):
                # A second slip may not change what is meant.
                sends, means = made if not touched else (made[0], means)
                touched.add(slip.name)
            chance = _ANOTHER_SLIP
        return sends, means

    def _reflect(self, task: SimTask, first: SimCall) -> Generator[FailedCall, Answer, None]:
        """Ask and follow, as the SDK does; what its rules leave to the caller is done by hand."""
        policy = ReflectionPolicy(min_confidence=self._agent.min_confidence)
        rules = RetryRules(policy, may_repeat=False, jitter=self._dice.random)
        changes: tuple[Change, ...] = ()
        failed, retry = first, None
        while failed.execution.attempt < policy.max_attempts:
            answer = yield failed.question()
            task.asked += answer is not None
            task.abstained += answer is not None and answer.abstained
            task.is_asking = answer is not None
            failure = FailedAttempt(failed.execution.parameters, failed.error, changes)
            retry = rules.next_retry(failure, answer)
            if self.at >= self._now:
                return
            if retry is None:
                break
            changes = retry.changes
            task.followed += 1
            self.at += timedelta(seconds=retry.wait_s)
            failed = self._follow(task, failed, retry.parameters, retry.suggestion, "suggested")
            if failed.fault is None:
                return
        offer = next(iter(rules.remaining), None)
        if retry is None and offer is not None:
            parameters = self._taken(task, failed, offer)
            if parameters is not None:
                task.by_hand += 1
                self.at += timedelta(milliseconds=offer.retry_after_ms or 0.0)
                self._follow(task, failed, parameters, offer, "by hand")

    def _follow(
        self, task: SimTask, failed: SimCall, sends: JsonObject, word: Suggestion, ending: Ending
    ) -> SimCall:
        """Call again on the word of a suggestion; what came of it goes into the task."""
        before = failed.execution
        call = self._call(
            task, sends, attempt=before.attempt + 1,
            repair_of=before.repair_of or before.execution_id, suggestion_id=word.suggestion_id,
        )  # fmt: skip
        if call.fault is None:
            task.ended(ending, call)
            self._remark(task, call)
        else:
            task.failed += 1
        return call

    def _taken(self, task: SimTask, failed: SimCall, offer: Suggestion) -> JsonObject | None:
        """What the agent sends on its own account after a suggestion; None if it lets it be."""
        parameters: JsonObject | None = failed.execution.parameters
        if offer.action == "retry_unchanged":
            chance = _WAITS if failed.fault in PASSING else _TAKES_WRONG
        elif offer.action == "change_parameters":
            parameters = apply_changes(failed.execution.parameters, offer)
            is_right = parameters is not None and task.tool.same(parameters, task.means)
            chance = _TAKES_RIGHT if is_right else _TAKES_WRONG
        else:
            return None
        return parameters if self._dice.random() < chance else None

    def _mend_alone(self, task: SimTask, first: SimCall) -> None:
        """What the agent knows how to mend by itself, or lets be."""
        if task.kind is None or self._dice.random() >= self._agent.mends(task.kind):
            return
        self._think()
        if self.at >= self._now:
            return
        if task.wish.instead is not None:
            if self._call(task, task.wish.instead.parameters, task.wish.instead.tool).fault is None:
                task.ending = "elsewhere"
        elif task.kind not in HOPELESS:
            stated = first.execution.execution_id if self._agent.says_repair_of else None
            again = self._call(
                task, first.execution.parameters if task.kind in PASSING else task.means,
                attempt=self.played.calls[-1].execution.attempt + 1 if stated else 1,
                repair_of=stated,
            )  # fmt: skip
            if again.fault is None:
                task.ended("by itself", again)

    def _call(
        self, task: SimTask, parameters: JsonObject, place: str | None = None, **fields: Any
    ) -> SimCall:
        tools = (tool for tool in self._tools if tool.place == place)
        tool = next(tools, task.tool)
        self.at = min(self.at, self._now)  # a wait may have ended later
        moment = Moment(self.at, self._plan.day, self._plan.load, self._agent.may_write, self._dice)
        fault, result = None, None
        try:
            result = tool.call(parameters, moment)
        except ToolFault as raised:
            fault = raised
        agent, spec = self._agent.name, tool.spec
        execution = Execution(
            execution_id=str(UUID(int=self._dice.getrandbits(128), version=4)), timestamp=self.at,
            agent=agent, server_name=tool.server, tool_name=spec.name, tool_version=spec.version,
            parameters=parameters, context=task.wish.context, result=result,
            duration_ms=tool.duration_ms(moment, fault), error=fault and fault.error,
            outcome="success" if fault is None else "failure",
            session_id=f"{agent}-{self._plan.number}", sequence=len(self.played.calls), **fields,
        )  # fmt: skip
        call = SimCall(tool, execution, None if fault is None else fault.kind)
        self.played.calls.append(call)
        self.at += timedelta(milliseconds=execution.duration_ms or 0.0)
        self._think()
        return call

    def _think(self) -> None:
        self.at += timedelta(seconds=1 + self._dice.expovariate(1 / _PAUSE_S))

    def _remark(self, task: SimTask, call: SimCall) -> None:
        """What somebody says of the call, if anybody does."""
        draw, tool, error = self._dice.random(), call.tool, call.execution.error
        if error is not None:
            if tool.spec.namespace and call.fault in ("timeout", "unavailable") and draw < _MARKED:
                severity = self._dice.choice(_SEVERITIES)
                self.played.remarks.append(Remark(call, error.message, severity))
        elif not task.is_as_meant and draw < _NOTICED:
            self.played.remarks.append(Remark(call, "that is not what I asked for"))
        elif task.is_as_meant and draw < tool.corrected:
            self.played.remarks.append(Remark(call, self._dice.choice(tool.corrections)))
