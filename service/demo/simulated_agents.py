"""Simulated agents: when they work, what they get wrong, whether they ask, and how they repair it.

No I/O. A session is a generator: it yields each failed call that its agent asks about, is sent the
answer, and returns what was played. All that is drawn comes from the seed and the session's number,
so that sessions can be played in any order, or at once, and the answers alone make a difference.
"""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from aftercall.json_values import JsonObject
from aftercall.models import Execution, ExecutionError, FailedCall, Severity, SuggestResponse
from aftercall.reflection.retry_rules import ReflectionPolicy, RetryRules
from service.demo import simulated_tools as tools

_HOURS = (
    0.10, 0.08, 0.06, 0.06, 0.08, 0.15, 0.35, 0.60, 0.90, 1.00, 1.00, 0.90,
    0.70, 0.90, 1.00, 0.95, 0.80, 0.60, 0.40, 0.30, 0.25, 0.20, 0.15, 0.12,
)  # fmt: skip
"""Load by hour of the day, UTC; 1 is the busiest."""
_WEEKEND = 0.45
"""Load of a Saturday or Sunday next to that of a working day."""
_CALLS_PER_TASK = 1.16
"""Attempts included; measured, and held to by a test."""
_TASKS = (2, 3, 4, 4, 5, 6, 7)
_SPARE = timedelta(minutes=2)
"""Before now no session begins, or it would hold no call."""
_PAUSE_S = 12.0
"""Mean seconds between two calls of a session; an agent's thinking."""
_ANOTHER_SLIP = 0.12
"""Share of mistaken calls with a second mistake in them."""
_OLD_HABIT, _WEARS_OFF = 0.6, 0.9
"""Share of calls in the form of the version before on its first day, and how it wears off a day."""
_NOTICED = 0.35
"""Share of the answers to something else than was meant that a user sees and states so."""
_MARKED = 0.3
"""Share of the breakdowns of tools with competitors that someone marks."""
_SEVERITIES: tuple[Severity, ...] = ("low", "medium", "medium", "high")
Ending = Literal["at once", "suggested", "by itself", "elsewhere", "not mended"]
"""How a task ended: right at once; repaired by a suggestion, as the rules of retries allow; by the
agent's own skill; done by another tool after a referral; or not at all."""
Answer: TypeAlias = SuggestResponse | None
"""The service's answer; None if the service was away."""


class SimAgent(tools.DemoTable):
    """One agent, as `data/agents.toml` describes it.

    Shares are of its calls: `slips` of those it gets wrong, `servers` of those on each. `prone` and
    `skill` are factors: on kinds of slips, and on how often it repairs a failure alone. From the
    day `asks_from` of the story on it asks the service (None: never), and follows suggestions above
    `min_confidence`, 0 to 1; on the day `joins` it begins to work.
    """

    name: str
    servers: dict[str, float]
    slips: float
    prone: dict[tools.SlipKind, float] = Field(default={})
    skill: float = 1.0
    asks_from: int | None = None
    min_confidence: float = 0.80
    may_write: bool = True
    says_repair_of: bool = False
    share: float = 1.0
    joins: int = 0


@cache
def all_agents() -> tuple[SimAgent, ...]:
    """Return sixteen agents; four never ask, the others begin to ask within the first half."""
    return tuple(
        SimAgent.model_validate(each) for each in tools.read_demo_table("agents")["agents"]
    )


@dataclass(frozen=True, slots=True)
class SimCall:
    """One call of one simulated tool: as it is recorded, and the truth about it."""

    tool: tools.SimTool
    execution: Execution
    fault: tools.FaultKind | None


@dataclass(slots=True)
class SimTask:
    """One thing that an agent wanted done: what would be right, and how it failed first."""

    agent: str
    tool: tools.SimTool
    wish: tools.Wish
    means: JsonObject
    kind: tools.FaultKind | None = None
    ending: Ending = "not mended"


@dataclass(frozen=True, slots=True)
class Remark:
    """A person's remark about a call; `severity` is set if a failure is marked."""

    call: SimCall
    words: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A session when it is over.

    `counts` are of answers (`asked`, `abstained`) and of suggestions that were `followed`: the call
    then succeeded and did what its caller meant (`right`), succeeded and did something else
    (`wrong`), or `failed` again.
    """

    calls: list[SimCall] = field(default_factory=list)
    tasks: list[SimTask] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


Session: TypeAlias = Generator[FailedCall, Answer, PlayedSession]


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session before it is played.

    When it starts (UTC), the day of the story (0 to 29), how busy the hour is (0 to 1), how many
    things get done, and its number from 0 in the order of time.
    """

    starts: datetime
    agent: SimAgent
    day: int
    load: float
    tasks: int
    number: int = 0


def plan_sessions(seed: int, days: int, calls_per_day: float, now: datetime) -> list[SessionPlan]:
    """Return the sessions of `days` UTC days up to the day of `now`.

    No session begins after `now`.
    """
    dice = Random(f"plan {seed}")  # noqa: S311  # a repeatable history, no secret
    first = story_time(0, days, now)
    calls_per_session = _CALLS_PER_TASK * sum(_TASKS) / len(_TASKS)
    load_per_week = sum(_HOURS) * (5 + 2 * _WEEKEND)
    load_per_day = load_per_week / 7
    sessions_per_load = calls_per_day / load_per_day / calls_per_session
    starting: list[tuple[datetime, float]] = []
    for number in range(24 * days):
        hour = first + timedelta(hours=number)
        load = _HOURS[hour.hour]
        if hour.weekday() >= 5:
            load *= _WEEKEND
        count = int(load * sessions_per_load + dice.random())
        for _ in range(count):
            second = dice.random() * 3600
            starting.append((hour + timedelta(seconds=second), load))
    plans: list[SessionPlan] = []
    for starts, load in sorted(starting):
        if starts > now - _SPARE:
            break
        share = (starts - first) / timedelta(days=days)
        day = int(share * tools.PHASES)
        present = [agent for agent in all_agents() if agent.joins <= day]
        shares = [agent.share for agent in present]
        [agent] = dice.choices(present, shares)
        tasks = dice.choice(_TASKS)
        plans.append(SessionPlan(starts, agent, day, load, tasks, len(plans)))
    return plans


def story_time(day: int, days: int, now: datetime) -> datetime:
    """Return when a day of the story, 0 to 29, begins in `days` days up to `now`; UTC."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=days - 1)
    return first + timedelta(days=days) * day / tools.PHASES


def play_session(plan: SessionPlan, seed: int, now: datetime) -> Session:
    """Play a session up to its end or to `now`."""
    player = _Player(plan, seed, now)
    for _ in range(plan.tasks):
        if player.at < now:
            yield from player.play_task()
    return player.played


class _Player:
    def __init__(self, plan: SessionPlan, seed: int, now: datetime) -> None:
        self.at = plan.starts
        self.played = PlayedSession()
        self._plan = plan
        self._agent = plan.agent
        self._dice = Random(f"session {seed} {plan.number}")  # noqa: S311  # repeatable, no secret
        self._now = now
        servers = plan.agent.servers
        self._tools = [tool for tool in tools.tools_on(plan.day) if tool.server in servers]
        self._weights = [each.popularity * servers[each.server] for each in self._tools]

    def play_task(self) -> Generator[FailedCall, Answer, None]:
        tool = self._dice.choices(self._tools, self._weights)[0]
        wish = tool.draw_wish(self._dice)
        sends, means = self._draw_slips(tool, wish.parameters)
        asks = self._agent.asks_from is not None and self._plan.day >= self._agent.asks_from
        task = SimTask(self._agent.name, tool, wish, means)
        self.played.tasks.append(task)
        first = self._call_tool(task, sends, "at once")
        task.kind = first.fault
        if first.fault is not None and asks:
            yield from self._ask_service(task, first)
        if task.ending == "not mended":
            self._repair_alone(task, first)

    def _draw_slips(self, tool: tools.SimTool, right: JsonObject) -> tuple[JsonObject, JsonObject]:
        sends, means = right, right
        agent, dice = self._agent, self._dice
        if tool.old_habit is not None:
            days = self._plan.day - tool.since
            if dice.random() < _OLD_HABIT * _WEARS_OFF**days:
                return tool.old_habit.make_slip(right, dice) or (sends, means)
        chance = agent.slips
        touched: set[str] = set()
        weights = [each.weight * agent.prone.get(each.kind, 1.0) for each in tool.slips]
        while tool.slips and dice.random() < chance:
            chance = _ANOTHER_SLIP
            [slip] = dice.choices(tool.slips, weights)
            if slip.name in touched:
                continue
            made = slip.make_slip(sends, dice)
            if made is None:
                continue
            sent, meant = made
            if not touched:
                sends, means = sent, meant
            elif meant is sends:  # a second slip may not change what is meant
                sends = sent
            else:
                continue
            touched.add(slip.name)
        return sends, means

    def _ask_service(self, task: SimTask, failed: SimCall) -> Generator[FailedCall, Answer, None]:
        """Ask and follow, as the SDK does."""
        policy = ReflectionPolicy(min_confidence=self._agent.min_confidence)
        first = failed.execution.parameters
        rules = RetryRules(policy, first, may_repeat=False, jitter=self._dice.random)
        counts = self.played.counts
        while failed.fault is not None and failed.execution.attempt < policy.max_attempts:
            before = failed.execution
            fields = {name: getattr(before, name) for name in FailedCall.model_fields}
            answer = yield FailedCall.model_validate(fields)
            counts["asked"] += answer is not None
            counts["abstained"] += answer is not None and answer.abstained
            error = before.error or ExecutionError(message="")
            if (retry := rules.next_retry(error, answer)) is None or self.at >= self._now:
                return
            self.at += timedelta(seconds=retry.wait_s)
            failed = self._call_tool(
                task, retry.parameters, "suggested", attempt=before.attempt + 1,
                repair_of=before.repair_of or before.execution_id,
                suggestion_id=retry.suggestion.suggestion_id,
            )  # fmt: skip
            is_right = task.tool.is_same_call(retry.parameters, task.means)
            counts["followed"] += 1
            counts["failed" if failed.fault else "right" if is_right else "wrong"] += 1

    def _repair_alone(self, task: SimTask, first: SimCall) -> None:
        kind, sent = task.kind, first.execution
        mends = min(
            0.95, tools.read_demo_table("agents")["mends"].get(kind, 0.0) * self._agent.skill
        )
        if kind is None or self._dice.random() >= mends:
            return
        self._take_pause()
        if self.at >= self._now:
            return
        if task.wish.instead is not None:
            other = task.wish.instead
            self._call_tool(task, other.parameters, "elsewhere", other.tool)
        elif kind not in tools.HOPELESS:
            stated = sent.execution_id if self._agent.says_repair_of else None
            attempt = self.played.calls[-1].execution.attempt + 1 if stated else 1
            sends = sent.parameters if kind in tools.PASSING else task.means
            self._call_tool(task, sends, "by itself", attempt=attempt, repair_of=stated)

    def _call_tool(
        self, task: SimTask, sends: JsonObject, ending: Ending, place: str | None = None,
        **fields: Any,
    ) -> SimCall:  # fmt: skip
        tool = next((tool for tool in self._tools if tool.place == place), task.tool)
        self.at = min(self.at, self._now)  # a wait may have ended later
        moment = tools.CallMoment(
            self._plan.day, self._plan.load, self._agent.may_write, self._dice
        )
        fault, result = None, None
        try:
            result = tool.answer_call(sends, moment)
            task.ending = ending
        except tools.ToolFault as raised:
            fault = raised
        kind, spec = None if fault is None else fault.kind, tool.spec
        execution = Execution(
            execution_id=str(UUID(int=self._dice.getrandbits(128), version=4)),
            timestamp=self.at, agent=self._agent.name,
            server_name=tool.server, tool_name=spec.name, tool_version=spec.version,
            parameters=sends, context=task.wish.context, result=result,
            duration_ms=tool.duration_ms(moment, kind), error=fault and fault.error,
            outcome="success" if fault is None else "failure",
            session_id=f"{self._agent.name}-{self._plan.number}",
            sequence=len(self.played.calls), **fields,
        )  # fmt: skip
        call = SimCall(tool, execution, kind)
        self.played.calls.append(call)
        self.at += timedelta(milliseconds=execution.duration_ms or 0.0)
        self._take_pause()
        if tool is task.tool and ending != "by itself":
            self._draw_remark(call, is_as_meant=tool.is_same_call(sends, task.means))
        return call

    def _take_pause(self) -> None:
        self.at += timedelta(seconds=1 + self._dice.expovariate(1 / _PAUSE_S))

    def _draw_remark(self, call: SimCall, *, is_as_meant: bool) -> None:
        draw = self._dice.random()
        tool, error = call.tool, call.execution.error
        remarks = self.played.remarks
        if error is not None:
            is_breakdown = call.fault in ("timeout", "unavailable")
            if tool.spec.namespace and is_breakdown and draw < _MARKED:
                severity = self._dice.choice(_SEVERITIES)
                remarks.append(Remark(call, error.message, severity))
        elif not is_as_meant and draw < _NOTICED:
            remarks.append(Remark(call, "that is not what I asked for"))
        elif is_as_meant and draw < tool.corrected:
            words = self._dice.choice(tool.corrections)
            remarks.append(Remark(call, words))
