"""Repeats: exactly the same call failing with the same error again and again. Bounded."""

import hashlib
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import BaseModel, Field

from aftercall.json_values import JsonObject, content_hash
from aftercall.models import ErrorCategory
from aftercall.redaction import is_redacted
from retrieval.recovery import TRANSIENT

MAX_RUNS = 100
"""Calls remembered per tool; those that failed last stay."""
_MAX_SESSIONS = 5
_OUTAGE = timedelta(hours=1)
"""A transient failure after a longer pause begins anew: the earlier outage is over."""


class Run(BaseModel):
    """The same parameters failing with the same signature, with no success in between."""

    signature: str
    count: int = 0
    sessions: dict[str, int] = Field(default_factory=dict)
    """Failures of the latest few sessions."""
    last_seen: datetime


class Repeats(NamedTuple):
    """How often exactly this call failed with this error since it last worked.

    `weighed` counts every failure of the asking session, and one for each of the others.
    """

    total: int = 0
    weighed: int = 0


def learn_repeat(
    runs: dict[str, Run],
    parameters: JsonObject,
    signature_id: str,
    category: ErrorCategory,
    *,
    session: str,
    at: datetime,
) -> None:
    """Count a failure, in place. Masked parameters stand for many calls and are not counted.

    Args:
        runs: `ToolKnowledge.runs`.
        parameters: what was sent.
        signature_id: of the error's signature (`knowledge.signature_id`).
        category: of the error.
        session: see `session_mark`.
        at: when it failed.
    """
    if is_redacted(parameters):
        return
    key = _key(parameters)
    run = runs.pop(key, None)
    if run is None or run.signature != signature_id or _is_over(run, category, at):
        run = Run(signature=signature_id, last_seen=at)
    run.count += 1
    run.sessions[session] = run.sessions.pop(session, 0) + 1
    while len(run.sessions) > _MAX_SESSIONS:
        del run.sessions[next(iter(run.sessions))]
    run.last_seen = max(run.last_seen, at)
    runs[key] = run
    while len(runs) > MAX_RUNS:
        del runs[next(iter(runs))]


def forget_repeat(runs: dict[str, Run], parameters: JsonObject) -> None:
    """Say that a call worked, in place."""
    if runs:
        runs.pop(_key(parameters), None)


def repeats_of(
    runs: dict[str, Run],
    parameters: JsonObject,
    signature_id: str,
    category: ErrorCategory,
    *,
    session: str,
    now: datetime,
) -> Repeats:
    """How often exactly this call failed with this error since it last worked."""
    if not runs or is_redacted(parameters):
        return Repeats()
    run = runs.get(_key(parameters))
    if run is None or run.signature != signature_id or _is_over(run, category, now):
        return Repeats()
    own = run.sessions.get(session, 0)
    return Repeats(run.count, own + sum(other != session for other in run.sessions))


def session_mark(session_id: str | None, agent: str) -> str:
    """A short mark of a session; without one, the agent stands for it."""
    return hashlib.sha256((session_id or f"\x1f{agent}").encode()).hexdigest()[:8]


def _key(parameters: JsonObject) -> str:
    return content_hash(parameters)[:16]


def _is_over(run: Run, category: ErrorCategory, at: datetime) -> bool:
    return category in TRANSIENT and at - run.last_seen > _OUTAGE
