"""What a history came to, by the simulator's own count."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from service.demo.history.faults import FaultKind
from service.demo.history.records import Ending, PlayedSession


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage: what its agents did before the memory learned from it.

    Rates are shares of tasks, 0 to 1, higher is better: `first_rate` of those right at once,
    `final_rate` of those that ended well in the end; `mended_asking` and `mended_alone` are of the
    tasks whose first call failed, by agents that ask and by those that do not.
    """

    since: datetime
    until: datetime
    calls: int
    tasks: int
    first_rate: float
    final_rate: float
    mended_asking: float | None
    mended_alone: float | None


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What happened. Counts of followed suggestions are by hidden truth.

    Args:
        seed: of the history.
        since: the first call, UTC.
        until: the last call, UTC.
        calls: executions that were recorded, attempts included.
        sessions: sessions with at least one call.
        tools: registered tools; a version that replaced another under its id counts once.
        agents: agents that called.
        failures: failed calls, by what they were.
        tasks: things that agents wanted done.
        endings: tasks by how they ended.
        asked: questions that the service answered.
        abstained: answers without a suggestion.
        followed: calls made on a suggestion's word, as the rules of retries allow: above 0.80 for
            most agents, and where calling again is safe.
        by_hand: calls made on the word of one that these rules leave to the caller.
        right: of all these, those that succeeded and did what the caller meant.
        wrong: those that succeeded and did something else.
        failed: those that failed again.
        corrections: what users said of answers.
        marks: failures that somebody marked.
        promotions: versions that were promoted.
        stages: one by one.
        is_learned: whether everything was learned when it ended; the service goes on otherwise.
        seconds: that it took.
    """

    seed: int
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
    promotions: int
    stages: Sequence[StageReport] = field(default_factory=tuple)
    is_learned: bool = True
    seconds: float = 0.0

    @property
    def first_rate(self) -> float:
        """Share of tasks whose first call succeeded, 0 to 1."""
        return self.endings.get("at once", 0) / max(1, self.tasks)

    @property
    def final_rate(self) -> float:
        """Share of tasks that ended well, 0 to 1."""
        return 1 - self.endings.get("not mended", 0) / max(1, self.tasks)


def staged(since: datetime, until: datetime, played: Sequence[PlayedSession]) -> StageReport:
    """What one stage came to."""
    tasks = [task for session in played for task in session.tasks]
    failed = [task for task in tasks if task.ending != "at once"]

    def mended(*, asking: bool) -> float | None:
        of = [task for task in failed if task.is_asking == asking]
        return _share((task.ending != "not mended" for task in of), len(of)) if of else None

    return StageReport(
        since=since,
        until=until,
        calls=sum(len(session.calls) for session in played),
        tasks=len(tasks),
        first_rate=_share((task.ending == "at once" for task in tasks), len(tasks)),
        final_rate=_share((task.ending != "not mended" for task in tasks), len(tasks)),
        mended_asking=mended(asking=True),
        mended_alone=mended(asking=False),
    )


def reported(  # one argument per thing that the sessions themselves do not know
    played: Sequence[PlayedSession],
    *,
    seed: int,
    tools: int,
    corrections: int,
    marks: int,
    promotions: int,
    stages: Sequence[StageReport],
    is_learned: bool,
    seconds: float,
) -> HistoryReport:
    """The report of all sessions.

    Raises:
        ValueError: there was not a single call.
    """
    calls = [call for session in played for call in session.calls]
    tasks = [task for session in played for task in session.tasks]
    if not calls:
        raise ValueError("a history of no calls: take more days or more calls per day")
    return HistoryReport(
        seed=seed,
        since=min(call.at for call in calls),
        until=max(call.at for call in calls),
        calls=len(calls),
        sessions=sum(1 for session in played if session.calls),
        tools=tools,
        agents=len({call.agent for call in calls}),
        failures=Counter(call.fault.kind for call in calls if call.fault is not None),
        tasks=len(tasks),
        endings=Counter(task.ending for task in tasks),
        asked=sum(task.asked for task in tasks),
        abstained=sum(task.abstained for task in tasks),
        followed=sum(task.followed for task in tasks),
        by_hand=sum(task.by_hand for task in tasks),
        right=sum(task.right for task in tasks),
        wrong=sum(task.wrong for task in tasks),
        failed=sum(task.failed for task in tasks),
        corrections=corrections,
        marks=marks,
        promotions=promotions,
        stages=tuple(stages),
        is_learned=is_learned,
        seconds=seconds,
    )


def _share(hits: Iterable[bool], of: int) -> float:
    return sum(hits) / max(1, of)
