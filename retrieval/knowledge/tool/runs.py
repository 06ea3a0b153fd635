"""Failures that repeat and that pass: calls that keep failing alike, and how long outages took.

Of recoveries from transient failures each session counts with its latest only, each agent with its
latest few sessions, so that no flood of one moves the rest.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import NamedTuple

from aftercall.json_values import JsonObject
from aftercall.models import ErrorCategory
from aftercall.outcomes import TRANSIENT
from aftercall.redaction import is_redacted
from aftercall.tables import keep_latest
from retrieval.knowledge.rows.principals import agent_mark, drop_loudest, fairly_heard, principal_of
from retrieval.knowledge.tool.profile import call_hash

MAX_RECOVERIES = 32
"""Sessions remembered per category: the 75th percentile of so many is within a few ranks."""
MAX_PER_AGENT = 8
"""A quarter of these: what a single agent waits is not how long an outage takes."""
MIN_SESSIONS = 2
"""Fewer say nothing yet: from two sessions on, something is common knowledge (4-rules.md)."""


@dataclass(slots=True)
class Recovery:
    """The latest recovery that one session saw; `seconds` from the failure to the success."""

    session: str
    agent: str
    at: datetime
    seconds: float


@dataclass(slots=True)
class RecoveryTimes:
    """Recoveries of one category of failure, latest first."""

    recoveries: list[Recovery] = field(default_factory=list)

    def add_recovery(self, recovery: Recovery) -> None:
        """Add one recovery, in place."""
        latest: dict[tuple[str, str], Recovery] = {}
        per_agent = Counter[str]()
        # Of one session's that ended together the longest counts: from its first failure.
        for each in sorted(
            [*self.recoveries, recovery],
            key=lambda r: (r.at, r.seconds, r.session, r.agent),
            reverse=True,
        ):
            key = (each.agent, each.session)
            if key not in latest and per_agent[each.agent] < MAX_PER_AGENT:
                latest[key] = each
                per_agent[each.agent] += 1
        kept = list(latest.values())[::-1]
        drop_loudest(kept, MAX_RECOVERIES, lambda each: each.agent)
        self.recoveries = kept[::-1]

    def heard_by(self, agent: str) -> "RecoveryTimes":
        """Return those that an agent hears, by its name (`rows.principals.fairly_heard`)."""
        own = principal_of(agent_mark(agent))
        found = fairly_heard(self.recoveries[::-1], lambda each: principal_of(each.agent), own)
        return RecoveryTimes(recoveries=found[::-1])

    def quantile_s(self, share: float) -> float | None:
        """Seconds in which `share` (0 to 1) of sessions recovered (nearest rank); None of few."""
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
    """Add a recovery from a transient failure to those of its category, in place."""
    if category not in TRANSIENT:
        return
    seconds = max(0.0, (worked_at - failed_at).total_seconds())
    recovery = Recovery(session=session, agent=agent, at=worked_at, seconds=seconds)
    recoveries.setdefault(category, RecoveryTimes()).add_recovery(recovery)


MAX_RUNS = 200
"""Calls, and errors of a session, remembered per tool; those that failed last stay."""
_MAX_SESSIONS = 5
_OUTAGE = timedelta(hours=1)
"""A transient failure after a longer pause begins again: the earlier outage is over."""


@dataclass(slots=True, kw_only=True)
class Run:
    """The same parameters, or calls of one session, that keep failing with one signature."""

    signature: str
    count: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
    last_seen: datetime
    said: str = ""
    """The signature itself and its category, of errors that stood in successes."""
    category: ErrorCategory = "unknown"


class Repeats(NamedTuple):
    """How often exactly this call failed with this error since it last worked.

    `weighed` counts every failure of the asking session, and one for each of the others; `alike`
    the asking session's failures with this error, whatever the parameters, since the tool worked.
    """

    total: int = 0
    weighed: int = 0
    alike: int = 0


EMPTY = "empty"
"""Instead of a signature's id: the answers were empty."""


def learn_repeat(
    runs: dict[str, Run],
    parameters: JsonObject | None,
    signature_id: str,
    category: ErrorCategory,
    *,
    session: str,
    at: datetime,
    said: str = "",
) -> None:
    """Count a failure, or an empty answer, in place; `said` are the words of one in a success.

    Parameters that are masked or not known (None) stand for many calls: only the error counts.
    """
    keys = [_key_within(session, signature_id)]
    if parameters is not None and not is_redacted(parameters):
        keys.append(call_hash(parameters))
    for key in keys:
        run = runs.get(key)
        if run is None or run.signature != signature_id or _is_over(run, category, at):
            run = Run(signature=signature_id, last_seen=at, said=said, category=category)
        run.count += 1
        keep_latest(run.sessions, session, run.sessions.get(session, 0) + 1, _MAX_SESSIONS)
        run.last_seen = max(run.last_seen, at)
        keep_latest(runs, key, run, MAX_RUNS)


def forget_repeat(runs: dict[str, Run], call: str | None, session: str, kept: str = "") -> None:
    """Say that a call, by its hash, worked in a session, in place; the id `kept` goes on."""
    if not runs:
        return
    if call is not None and (run := runs.get(call)) is not None and run.signature != kept:
        del runs[call]
    within = _key_within(session, "")
    if within in "".join(runs):  # there are many, and hardly ever one of this session
        gone = [key for key in runs if key.startswith(within) and key != within + kept]
        for key in gone:
            del runs[key]


def repeats_of(
    runs: dict[str, Run],
    parameters: JsonObject,
    signature_id: str,
    category: ErrorCategory,
    *,
    session: str,
    now: datetime,
) -> Repeats:
    """Return how often exactly this call failed with this error since it last worked."""
    if not runs:
        return Repeats()
    alike = runs.get(_key_within(session, signature_id))
    times = 0 if alike is None or _is_over(alike, category, now) else alike.count
    run = None if is_redacted(parameters) else runs.get(call_hash(parameters))
    if run is None or run.signature != signature_id or _is_over(run, category, now):
        return Repeats(alike=times)
    weighed = run.sessions.get(session, 0) + sum(other != session for other in run.sessions)
    return Repeats(run.count, weighed, times)


class Loop(NamedTuple):
    """One error that the calls of a session keep failing with."""

    signature_id: str
    failures: int
    is_same: bool
    said: str = ""
    category: ErrorCategory = "unknown"


def loops_of(runs: dict[str, Run], parameters: JsonObject, session: str) -> Iterator[Loop]:
    """Yield the errors of a session since the tool last worked in it."""
    own = None if is_redacted(parameters) else runs.get(call_hash(parameters))
    for key, run in runs.items():
        if key.startswith(_key_within(session, "")):
            is_same = own is not None and own.signature == run.signature
            yield Loop(run.signature, run.count, is_same, run.said, run.category)


@lru_cache(1_024)
def session_mark(session_id: str | None, agent: str) -> str:
    """Return a short mark of a session; without one, the agent stands for it."""
    return sha256((session_id or f"\x1f{agent}").encode()).hexdigest()[:8]


def _key_within(session: str, signature_id: str) -> str:
    return f"{session} {signature_id}"


def _is_over(run: Run, category: ErrorCategory, at: datetime) -> bool:
    return category in TRANSIENT and at - run.last_seen > _OUTAGE
