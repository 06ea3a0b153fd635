"""Trials: what became of the calls of a tool, one by one, as far back as it matters.

A bounded set of the latest trials, told apart by id, so that two sets merge by union: in any order,
and twice the same changes nothing. Late arrivals fall into their place, since a trial carries the
time of its call.
"""

import hashlib
from bisect import insort
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from aftercall.wire import Severity

MAX_TRIALS = 64
"""Trials remembered: at the rate at which quality heals, what came before weighs below 0.002."""

TrialKind = Literal["success", "failure", "low", "medium", "high"]
"""A success, a failure that nobody marked, or a marked one by its severity."""

_RANK: dict[TrialKind, int] = {"success": 0, "failure": 1, "low": 2, "medium": 3, "high": 4}


class Trial(NamedTuple):
    """One call: when, which (a short digest of its id), and what became of it."""

    at: float
    """Seconds since 1970 in UTC, exact to the microsecond."""
    key: str
    kind: TrialKind

    @property
    def is_success(self) -> bool:
        """Whether the call succeeded."""
        return self.kind == "success"

    @property
    def severity(self) -> Severity | None:
        """How bad it was by whoever marked it; None when nobody did."""
        return None if self.kind == "success" or self.kind == "failure" else self.kind  # noqa: PLR1714 - mypy narrows by `==` only


def trial_of(at: datetime, call_id: str, kind: TrialKind) -> Trial:
    """A trial of the call of an id: an execution's, or a mark's that names no execution."""
    return Trial(round(at.timestamp(), 6), hashlib.sha256(call_id.encode()).hexdigest()[:12], kind)


def moment_of(trial: Trial) -> datetime:
    """When the call was."""
    return datetime.fromtimestamp(trial.at, UTC)


def merged(*sets: Iterable[Trial], limit: int = MAX_TRIALS) -> list[Trial]:
    """The latest trials of all sets, oldest first.

    Of several trials of one call the gravest holds: a mark says more than the failure that it is
    about.
    """
    by_key: dict[str, Trial] = {}
    for trial in (trial for each in sets for trial in each):
        known = by_key.get(trial.key)
        if known is None or (_RANK[trial.kind], trial.at) > (_RANK[known.kind], known.at):
            by_key[trial.key] = trial
    return sorted(by_key.values())[-limit:]


def trial_of_call(trials: Iterable[Trial], key: str) -> Trial | None:
    """What is remembered of the call of that key."""
    for trial in trials:
        if trial.key == key:
            return trial
    return None


def with_trial(trials: Sequence[Trial], trial: Trial, limit: int = MAX_TRIALS) -> list[Trial]:
    """As `merged`, of what it returned and one trial of a call that is not in it: much cheaper."""
    latest = list(trials)
    insort(latest, trial)
    return latest[-limit:]
