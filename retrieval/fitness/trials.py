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

from aftercall.models import Severity

MAX_TRIALS = 64
"""Trials remembered: at the rate at which quality heals, what came before weighs below 0.002."""

MAX_REFERRALS = 16
"""Referrals remembered beside them: they heal nothing, so they must not push failures out. Thrice
the failures that can count in a scenario; a quarter of the other trials where that is more."""

TrialKind = Literal["success", "referral", "failure", "low", "medium", "high"]
"""A success, a call that the tool refused as not its job (`wrong_tool_boundary`), a failure that
nobody marked, or a marked one by its severity.

A referral is an honest tool's word: it speaks against the tool in scenarios like that one, where it
counts as a failure, and nowhere else."""

_RANK: dict[TrialKind, int] = {
    "success": 0, "referral": 1, "failure": 2, "low": 3, "medium": 4, "high": 5,
}  # fmt: skip


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
    def is_referral(self) -> bool:
        """Whether the tool refused the call as not its job."""
        return self.kind == "referral"

    @property
    def severity(self) -> Severity | None:
        """How bad it was by whoever marked it; None when nobody did."""
        kind = self.kind
        if kind == "success" or kind == "referral" or kind == "failure":  # noqa: PLR1714 - mypy narrows by `==` only
            return None
        return kind


def trial_of(at: datetime, call_id: str, kind: TrialKind) -> Trial:
    """A trial of the call of an id: an execution's, or a mark's that names no execution."""
    return Trial(round(at.timestamp(), 6), hashlib.sha256(call_id.encode()).hexdigest()[:12], kind)


def moment_of(trial: Trial) -> datetime:
    """When the call was."""
    return datetime.fromtimestamp(trial.at, UTC)


def merged(*sets: Iterable[Trial], limit: int = MAX_TRIALS) -> list[Trial]:
    """The latest trials of all sets, oldest first: `limit` of them, and referrals beside them.

    Of several trials of one call the gravest holds: a mark says more than the failure that it is
    about.
    """
    by_key: dict[str, Trial] = {}
    for trial in (trial for each in sets for trial in each):
        known = by_key.get(trial.key)
        if known is None or (_RANK[trial.kind], trial.at) > (_RANK[known.kind], known.at):
            by_key[trial.key] = trial
    return _latest(sorted(by_key.values()), limit)


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
    return _latest(latest, limit)


def _latest(trials: list[Trial], limit: int) -> list[Trial]:
    """The latest `limit` trials and the latest referrals, of trials in the order of time."""
    if len(trials) <= min(limit, MAX_REFERRALS):
        return trials
    referrals = [each for each in trials if each.kind == "referral"]
    if not referrals:
        return trials[-limit:]
    others = [each for each in trials if each.kind != "referral"]
    return sorted([*others[-limit:], *referrals[-max(MAX_REFERRALS, limit // 4) :]])
