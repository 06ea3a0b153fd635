"""Playing one session: calls, real refusals, questions, repairs. No I/O.

A session is a generator: it yields each failed call that its agent asks about, is sent the answer,
and returns what was played. All that is drawn comes from the seed and the session's number, so that
sessions can be played in any order, or at once, and the answers alone make a difference.
"""

from collections.abc import Generator
from datetime import datetime, timedelta
from random import Random
from typing import TypeAlias
from uuid import UUID

from aftercall.json_values import JsonObject
from aftercall.models import Change, FailedCall, SuggestResponse
from aftercall.reflection.retry_rules import (
    Failure,
    ReflectionPolicy,
    RetryRules,
    apply_changes,
)
from service.demo.history.catalogue import Catalogue
from service.demo.history.faults import HOPELESS, PASSING, ToolFault
from service.demo.history.records import Ending, PlayedSession, Remark, SimCall, SimTask
from service.demo.history.remarks import remark_on
from service.demo.history.rhythm import SessionPlan
from service.demo.history.tools import Moment, SimTool, Wish

Answer: TypeAlias = SuggestResponse | None
"""What the service said; None when it was not there to say anything."""

Session: TypeAlias = Generator[FailedCall, Answer, PlayedSession]

_ANOTHER_SLIP = 0.12
"""Share of mistaken calls with a second mistake in them."""

_TAKES_RIGHT, _TAKES_WRONG, _WAITS = 0.6, 0.12, 0.55
"""How often an agent takes what is left to it: a change that is right, one that is not, a wait."""

_OLD_HABIT, _WEARS_OFF = 0.6, 0.9
"""Share of calls in the form of the version before on its first day, and how it wears off a day."""

_PAUSE_S = 12.0
"""Mean seconds between two calls of a session; an agent's thinking."""


def play_session(plan: SessionPlan, catalogue: Catalogue, seed: int, now: datetime) -> Session:
    """Play a session up to its end or to `now`."""
    player = _Player(plan, catalogue, seed, now)
    for _ in range(plan.tasks):
        if player.at >= now:
            break
        yield from player.task()
    return PlayedSession(player.calls, player.tasks, player.remarks)


class _Player:
    """One agent in one session."""

    def __init__(self, plan: SessionPlan, catalogue: Catalogue, seed: int, now: datetime) -> None:
        self.at = plan.starts
        self.calls: list[SimCall] = []
        self.tasks: list[SimTask] = []
        self.remarks: list[Remark] = []
        self._plan = plan
        self._agent = plan.agent
        self._dice = Random(f"session {seed} {plan.number}")  # noqa: S311  # repeatable, no secret
        self._now = now
        self._catalogue = catalogue
        self._name = f"{plan.agent.name}-{plan.number}"
        here = [tool for tool in catalogue.on(plan.day) if tool.server in plan.agent.servers]
        self._tools = here
        self._weights_of: dict[str, list[float]] = {}
        self._weights = [tool.popularity * plan.agent.servers[tool.server] for tool in here]

    def task(self) -> Generator[FailedCall, Answer, None]:
        """One thing to get done."""
        tool = self._dice.choices(self._tools, self._weights)[0]
        wish = tool.wish(self._dice)
        sends, means = self._slipped(tool, wish.parameters)
        asks = self._agent.asks(self._plan.day)
        task = SimTask(self.at, self._agent.name, tool, asks)
        self.tasks.append(task)
        first = self._call(tool, sends, wish.context)
        if first.fault is None:
            task.ending, task.is_as_meant = "at once", tool.same(sends, means)
            self._remark(task, first)
            return
        task.kind = first.fault.kind
        self._remark(task, first)
        is_mended = False
        if asks:
            is_mended = yield from self._reflect(task, first, wish, means)
        if not is_mended:
            self._mend_alone(task, first, wish, means)

    def _is_over(self) -> bool:
        return self.at >= self._now

    def _reflect(
        self, task: SimTask, first: SimCall, wish: Wish, means: JsonObject
    ) -> Generator[FailedCall, Answer, bool]:
        """Ask and follow, as the SDK does; whether the call succeeded in the end."""
        tool, failed = first.tool, first
        policy = ReflectionPolicy(min_confidence=self._agent.min_confidence)
        rules = RetryRules(policy, may_repeat=False, jitter=self._dice.random)
        changes: tuple[Change, ...] = ()
        for attempt in range(2, policy.max_attempts + 1):
            answer = yield failed.question()
            task.asked += answer is not None
            task.abstained += answer is not None and answer.abstained
            task.is_asking = answer is not None
            fault = failed.fault
            if fault is None:
                raise RuntimeError("only failed calls are reflected on")
            retry = rules.next_retry(Failure(failed.parameters, fault.error(), changes), answer)
            if retry is None or self._is_over():
                return not self._is_over() and self._by_hand(task, first, failed, rules, means)
            changes = retry.changes
            self.at += timedelta(seconds=retry.wait_s)
            task.followed += 1
            failed = self._call(
                tool, retry.parameters, wish.context, attempt=attempt,
                repair_of=first.execution_id, suggestion_id=retry.suggestion.suggestion_id,
            )  # fmt: skip
            if self._judged(task, failed, means, "suggested"):
                return True
        return False

    def _by_hand(
        self, task: SimTask, first: SimCall, failed: SimCall, rules: RetryRules, means: JsonObject
    ) -> bool:
        """Do what a suggestion says that the rules leave to the caller, if the agent sees it so."""
        offer = next(iter(rules.remaining), None)
        if offer is None or failed.fault is None:
            return False
        if offer.action == "retry_unchanged":
            parameters = failed.parameters
            chance = _WAITS if failed.fault.kind in PASSING else _TAKES_WRONG
        elif offer.action == "change_parameters":
            changed = apply_changes(failed.parameters, offer)
            if changed is None:
                return False
            parameters = changed
            chance = _TAKES_RIGHT if first.tool.same(changed, means) else _TAKES_WRONG
        else:
            return False
        if self._dice.random() >= chance:
            return False
        self.at += timedelta(milliseconds=offer.retry_after_ms or 0.0)
        call = self._call(
            first.tool, parameters, first.context, attempt=failed.attempt + 1,
            repair_of=first.execution_id, suggestion_id=offer.suggestion_id,
        )  # fmt: skip
        task.by_hand += 1
        return self._judged(task, call, means, "by hand")

    def _judged(self, task: SimTask, call: SimCall, means: JsonObject, ending: Ending) -> bool:
        """Whether a call that followed a suggestion succeeded; what it did goes into the task."""
        if call.fault is not None:
            task.failed += 1
            return False
        task.ending, task.is_as_meant = ending, call.tool.same(call.parameters, means)
        task.right += task.is_as_meant
        task.wrong += not task.is_as_meant
        self._remark(task, call)
        return True

    def _mend_alone(self, task: SimTask, first: SimCall, wish: Wish, means: JsonObject) -> None:
        """What the agent knows how to mend by itself, or lets be."""
        fault = first.fault
        if fault is None or self._dice.random() >= self._agent.mends(fault.kind):
            return
        self._think()
        if self._is_over():
            return
        if wish.instead is not None:
            other = self._catalogue.answering(wish.instead.tool, self._plan.day)
            if self._call(other, wish.instead.parameters, wish.context).fault is None:
                task.ending = "elsewhere"
            return
        if fault.kind in HOPELESS:
            return
        parameters = first.parameters if fault.kind in PASSING else means
        stated = first.execution_id if self._agent.says_repair_of else None
        again = self._call(
            first.tool, parameters, wish.context,
            attempt=self.calls[-1].attempt + 1 if stated else 1, repair_of=stated,
        )  # fmt: skip
        if again.fault is None:
            task.ending = "by itself"
            task.is_as_meant = first.tool.same(parameters, means)

    def _slipped(self, tool: SimTool, right: JsonObject) -> tuple[JsonObject, JsonObject]:
        """What is sent and what is meant."""
        sends, means = right, right
        chance, touched = self._agent.slips, set[str]()
        habit, age = tool.old_habit, self._plan.day - tool.since
        if habit is not None and self._dice.random() < _OLD_HABIT * _WEARS_OFF**age:
            made = habit.make(right, self._dice)
            return made or (sends, means)
        while tool.slips and self._dice.random() < chance:
            slip = self._dice.choices(tool.slips, self._proneness(tool))[0]
            made = slip.make(sends, self._dice) if slip.name not in touched else None
            if made is not None and not touched:
                sends, means = made
                touched.add(slip.name)
            elif made is not None and made[1] is sends:  # it leaves what is meant as it is
                sends = made[0]
                touched.add(slip.name)
            chance = _ANOTHER_SLIP
        return sends, means

    def _proneness(self, tool: SimTool) -> list[float]:
        known = self._weights_of.get(tool.tool_id)
        if known is None:
            prone = self._agent.prone
            known = [each.weight * prone.get(each.kind, 1.0) for each in tool.slips]
            self._weights_of[tool.tool_id] = known
        return known

    def _call(
        self, tool: SimTool, parameters: JsonObject, context: str, *, attempt: int = 1,
        repair_of: str | None = None, suggestion_id: str | None = None,
    ) -> SimCall:  # fmt: skip
        self.at = min(self.at, self._now)  # a wait may have ended later
        moment = Moment(self.at, self._plan.day, self._plan.load, self._agent.may_write, self._dice)
        fault, result = None, None
        try:
            result = tool.call(parameters, moment)
        except ToolFault as raised:
            fault = raised
        call = SimCall(
            execution_id=str(UUID(int=self._dice.getrandbits(128), version=4)),
            at=self.at,
            agent=self._agent.name,
            session=self._name,
            sequence=len(self.calls),
            tool=tool,
            parameters=parameters,
            context=context,
            duration_ms=tool.duration_ms(moment, fault),
            result=result,
            fault=fault,
            attempt=attempt,
            repair_of=repair_of,
            suggestion_id=suggestion_id,
        )
        self.calls.append(call)
        self.at += timedelta(milliseconds=call.duration_ms)
        self._think()
        return call

    def _think(self) -> None:
        self.at += timedelta(seconds=1 + self._dice.expovariate(1 / _PAUSE_S))

    def _remark(self, task: SimTask, call: SimCall) -> None:
        remark = remark_on(call, self._dice, is_as_meant=task.is_as_meant)
        if remark is not None:
            self.remarks.append(remark)
