"""Recovery times: how long after a transient failure the same call worked again.

A summary that is bounded and mergeable, whatever the order: each session counts with its latest
recovery only, each agent with its latest few sessions, so that no flood of one moves the rest.
"""

from datetime import datetime
from math import ceil

from pydantic import BaseModel, Field

from aftercall.models import ErrorCategory
from mongo.records import ToolKey

MAX_RECOVERIES = 32
"""Sessions remembered per category: the 75th percentile of so many is within a few ranks."""
MAX_PER_AGENT = 8
"""A quarter of these: what a single agent waits is not how long an outage takes."""
MIN_SESSIONS = 2
"""Fewer say nothing yet: from two sessions on, something is common knowledge (4-rules.md)."""

TRANSIENT: frozenset[ErrorCategory] = frozenset({"timeout", "rate_limited", "unavailable"})
"""Failures of the moment: the same call may work later."""


def workspace_wide(workspace: str) -> ToolKey:
    """Where the recoveries of all tools of a workspace are kept; no client can name a tool so."""
    return ToolKey(workspace, None, "")


class Recovery(BaseModel):
    """The latest recovery that one session saw; `seconds` from the failure to the success."""

    session: str
    agent: str
    at: datetime
    seconds: float = Field(ge=0)


class RecoveryTimes(BaseModel):
    """Recoveries of one category of failure, latest first."""

    recoveries: list[Recovery] = Field(default_factory=list)

    def observe(self, recovery: Recovery) -> None:
        """Add one recovery, in place."""
        self.recoveries = _bounded([*self.recoveries, recovery])

    def merged(self, other: "RecoveryTimes") -> "RecoveryTimes":
        """What both saw; the same in any order, and twice the same changes nothing."""
        return RecoveryTimes(recoveries=_bounded([*self.recoveries, *other.recoveries]))

    def quantile_s(self, share: float) -> float | None:
        """The seconds within which `share` (0 to 1) of the sessions saw it recover (nearest rank).

        None while fewer than `MIN_SESSIONS` sessions are known.
        """
        if len(self.recoveries) < MIN_SESSIONS:
            return None
        ordered = sorted(each.seconds for each in self.recoveries)
        return ordered[max(0, ceil(share * len(ordered)) - 1)]


def learn_recovery(
    recoveries: dict[ErrorCategory, RecoveryTimes],
    category: ErrorCategory,
    *,
    failed_at: datetime,
    worked_at: datetime,
    session: str,
    agent: str,
) -> None:
    """Add one recovery to those of its category, in place; other failures than transient are none.

    Args:
        recoveries: `ToolKnowledge.recoveries` of the tool, or of the whole workspace.
        category: of the failure.
        failed_at: when the call failed.
        worked_at: when the same call worked.
        session: a short text that tells sessions apart.
        agent: the agent's name.
    """
    if category not in TRANSIENT:
        return
    seconds = max(0.0, (worked_at - failed_at).total_seconds())
    recovery = Recovery(session=session, agent=agent, at=worked_at, seconds=seconds)
    recoveries.setdefault(category, RecoveryTimes()).observe(recovery)


def _bounded(recoveries: list[Recovery]) -> list[Recovery]:
    latest: dict[tuple[str, str], Recovery] = {}
    per_agent: dict[str, int] = {}
    # Of one session's recoveries that ended together the longest counts: from its first failure.
    for each in sorted(
        recoveries, key=lambda r: (r.at, r.seconds, r.session, r.agent), reverse=True
    ):
        key = (each.agent, each.session)
        if key not in latest and per_agent.get(each.agent, 0) < MAX_PER_AGENT:
            latest[key] = each
            per_agent[each.agent] = per_agent.get(each.agent, 0) + 1
    return list(latest.values())[:MAX_RECOVERIES]
