"""Statistics: how a tool has done, version by version. Updated by ingest, read by the answers."""

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import Literal, NamedTuple

from aftercall.models import Outcome, Severity
from aftercall.tables import gather_values
from mongo.contents import BETWEEN
from mongo.records import OWNER
from retrieval.knowledge.rows.principals import (
    drop_loudest,
    fairly_heard,
    is_one_stranger,
    key_mark,
)

MAX_TRIALS = 64
"""Trials remembered: at the rate at which quality heals, what came before weighs below 0.002."""
MAX_REFERRALS = 16
"""Referrals remembered next to them: they heal nothing, so they must not push failures out. Thrice
the failures that can count in a scenario; a quarter of the other trials where that is more."""
TrialKind = Literal["success", "weak", "referral", "failure", "low", "medium", "high"]
"""A success, one that is empty or calls itself weak, a call that the tool refused as not its job
(`wrong_tool_boundary`), a failure that no one marked, or a marked one by its severity.

A referral is an honest tool's word: it speaks against the tool in scenarios like that one, where it
counts as a failure, and nowhere else."""
_RANK: dict[TrialKind, int] = {
    "success": 0,
    "weak": 1,
    "referral": 2,
    "failure": 3,
    "low": 4,
    "medium": 5,
    "high": 6,
}
_VALUES: dict[TrialKind, float] = {"success": 1.0, "weak": 0.5}
MAX_VERSIONS = 8
"""Versions remembered; of more, those that were used last."""
MAX_SCENARIOS = 64
"""Distinct scenarios of a tool that are embedded; of more, the least recent makes space. On the
worlds that `bench/quality/regret_world.py` was developed on, 32 cost a fifth more regret, and 128
save a twentieth.

Each costs one embedding and some 2 KiB: they are most of what a tool of many uses costs."""
MAX_SCENARIO_TRIALS = 32
"""Trials remembered of one scenario: enough that one failure among them turns nothing."""
MAX_NEGATIVE_TAGS = 50
NO_VERSION = ""
"""Calls whose record names no version."""


class Trial(NamedTuple):
    """One call: when, which (a short digest of its id), and what became of it."""

    at: float
    """Seconds since 1970 in UTC, exact to the microsecond."""
    key: str
    kind: TrialKind
    by: str = ""
    """The mark of the principal that states so (`retrieval.knowledge.rows.principals.key_mark`)."""
    bare: bool = False
    """Whether no one stated in which scenario it was."""

    @property
    def is_success(self) -> bool:
        """Return whether the call succeeded, strongly or weakly."""
        return self.kind in {"success", "weak"}

    @property
    def value(self) -> float:
        """Return how much of a success it was.

        A weak one is half, for an empty answer is often right.
        """
        return _VALUES.get(self.kind, 0.0)

    @property
    def severity(self) -> Severity | None:
        """Return how bad it was, as marked; None when no one did."""
        kind = self.kind
        # Mypy narrows by `==` only.
        if kind == "low" or kind == "medium" or kind == "high":  # noqa: PLR1714
            return kind
        return None


@dataclass(slots=True)
class VersionStatistics:
    """How one version has done: its latest trials one by one, all of them in number."""

    trials: list[Trial] = field(default_factory=list)
    successes: int = 0
    failures: int = 0
    """Calls that failed or were referred elsewhere, and marks that name no recorded call."""
    last_seen: datetime | None = None

    def add(self, trial: Trial, at: datetime, counted: Outcome | None = None) -> None:
        """Count one trial, in place; a call that is known already only gets the graver kind.

        `counted` is as what the call was counted here before, by a caller with the log: the trials
        do not go back so far. Their own severity comes first.
        """
        known = trial_of_call(self.trials, trial.key)
        if known is None:
            self.trials = with_trial(self.trials, trial)
        else:
            counted = "success" if known.is_success else "failure"
            self.trials = merge_trials(self.trials, [trial])
        self.last_seen = at if self.last_seen is None else max(at, self.last_seen)
        if counted is None:
            self.successes += trial.is_success
            self.failures += not trial.is_success
        elif counted == "success" and not trial.is_success:
            self.successes -= 1
            self.failures += 1

    def take_out(self, key: str, counted: Outcome) -> Trial | None:
        """Count a call no longer, in place; its trial, where that is remembered."""
        taken = trial_of_call(self.trials, key)
        self.trials = [each for each in self.trials if each.key != key]
        if taken is not None and self.trials and trial_moment(taken) == self.last_seen:
            self.last_seen = max(map(trial_moment, self.trials))
        # A version that was forgotten and came back has never counted it.
        self.successes -= counted == "success" and self.successes > 0
        self.failures -= counted == "failure" and self.failures > 0
        return taken


@dataclass(slots=True, weakref_slot=True)  # what is shown of tools notices that it was replaced
class ToolTrials:
    """How a tool has done; `versions` by the version that its calls named."""

    versions: dict[str, VersionStatistics] = field(default_factory=dict)
    scenarios: dict[str, datetime] = field(default_factory=dict)
    """Ids of its scenario documents, with their latest use."""
    negative_tags: dict[str, datetime] = field(default_factory=dict)
    """Tags given by marks, each behind the mark of its principal, with their latest use."""

    def list_negative_tags(self, own: str | None = None) -> list[str]:
        """Return the negative tags: of the asker's principal, or of two; all without an asker."""
        said = (each.rpartition(BETWEEN) for each in self.negative_tags)
        by_tag = gather_values((tag, by) for by, _, tag in said)
        return [tag for tag, by in by_tag.items() if own is None or own in by or len(by) > 1]

    def version_to_update(self, version: str | None) -> VersionStatistics:
        """Return a version's statistics, made when they are new instead of the least recent."""
        key = version or NO_VERSION
        known = self.versions.setdefault(key, VersionStatistics())
        while len(self.versions) > MAX_VERSIONS:
            others = (each for each in self.versions if each != key)
            del self.versions[min(others, key=self._last_seen)]
        return known

    def _last_seen(self, version: str) -> tuple[float, str]:
        seen = self.versions[version].last_seen
        return (seen.timestamp() if seen else 0.0, version)


_KEY_OF, _KIND_OF, _BY_OF = map(itemgetter, (1, 2, 3))
"""Of a trial: without a step of Python for each, for there are dozens of every call."""


def trial_of(
    at: datetime, call_id: str, kind: TrialKind, principal: str = OWNER, *, bare: bool = False
) -> Trial:
    """Return a trial of the call of an id: an execution's, or a mark's that names no execution.

    What one principal states of a call takes the place of nothing that another one states of it.
    """
    by = key_mark(principal)
    key = hashlib.sha256(f"{by}{call_id}".encode()).hexdigest()[:12]
    return Trial(round(at.timestamp(), 6), key, kind, by, bare)


def heard_trials(trials: Sequence[Trial], own: str | None) -> list[Trial]:
    """Trials as the asker's principal `own` hears them, good and bad ones each; None hears all.

    Where one other principal alone complains of what works for two or more, it is received as often
    as the tool worked for it.
    """
    if own is None or all(each.by == own for each in trials):
        return list(trials)
    good, bad = ([each for each in trials if each.is_success is way] for way in (True, False))
    worked, failed = (Counter(each.by for each in some) for some in (good, bad))
    content = {by for by, count in worked.items() if count >= failed[by]}
    [*complaining] = failed.keys() - content - {own}
    if is_one_stranger(complaining, content):
        [by] = complaining
        its = [each for each in bad if each.by == by]
        latest = its[len(its) - worked[by] :]
        bad = [each for each in bad if each.by != by or each in latest]
    kept = {*fairly_heard(good, _BY_OF, own), *fairly_heard(bad, _BY_OF, own)}
    return [each for each in trials if each in kept]


def trial_moment(trial: Trial) -> datetime:
    """Return when the call was."""
    return datetime.fromtimestamp(trial.at, UTC)


def merge_trials(*sets: Iterable[Trial], limit: int = MAX_TRIALS) -> list[Trial]:
    """Return the latest trials of all sets, oldest first.

    `limit` of them, and referrals next to them.
    """
    return _latest_trials(
        sorted(gravest_trials(trial for each in sets for trial in each).values()), limit
    )


def gravest_trials(trials: Iterable[Trial]) -> dict[str, Trial]:
    """Return by key what holds of each call: a mark counts before its failure."""
    by_key: dict[str, Trial] = {}
    for trial in trials:
        known = by_key.setdefault(trial.key, trial)
        if known is not trial and (_RANK[trial.kind], trial.at) > (_RANK[known.kind], known.at):
            by_key[trial.key] = trial
    return by_key


def trial_of_call(trials: Sequence[Trial], key: str) -> Trial | None:
    """Return what is remembered of the call of that key."""
    if key not in map(_KEY_OF, trials):
        return None
    return next(trial for trial in trials if trial.key == key)


def with_trial(trials: Sequence[Trial], trial: Trial, limit: int = MAX_TRIALS) -> list[Trial]:
    """Return a result of `merge_trials` with one trial of a new call; much cheaper."""
    latest = list(trials)
    insort(latest, trial)
    return _latest_trials(latest, limit)


def _latest_trials(trials: list[Trial], limit: int) -> list[Trial]:
    if len(trials) <= min(limit, MAX_REFERRALS):
        return trials
    if "referral" not in map(_KIND_OF, trials):
        return _fit_trials(trials, limit)
    referrals = [each for each in trials if each.kind == "referral"]
    others = [each for each in trials if each.kind != "referral"]
    return sorted(
        [*_fit_trials(others, limit), *_fit_trials(referrals, max(MAX_REFERRALS, limit // 4))]
    )


def _fit_trials(trials: list[Trial], limit: int) -> list[Trial]:
    """Return the latest; of several principals the one with the most makes space."""
    if len(trials) > limit and len(set(map(_BY_OF, trials))) > 1:
        drop_loudest(trials, limit, lambda each: f"{each.by}.")
    return trials[-limit:]
