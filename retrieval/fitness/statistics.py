"""Statistics: how a tool has fared, version by version. Updated by ingest, read by the answers."""

from datetime import datetime

from pydantic import BaseModel, Field

from aftercall.models import Outcome
from retrieval.fitness.trials import Trial, merged, moment_of, trial_of_call, with_trial

MAX_VERSIONS = 8
"""Versions remembered; of more, those that were used last."""

MAX_SCENARIOS = 32
"""Distinct scenarios of a tool that are embedded; of more, the least recent makes room.

Each costs one embedding and some 2 KiB: they are most of what a tool of many uses costs."""

MAX_SCENARIO_TRIALS = 16
"""Trials remembered of one scenario: thrice the failures that can count there."""

MAX_NEGATIVE_TAGS = 50

NO_VERSION = ""
"""Calls whose record names no version."""


class VersionStatistics(BaseModel):
    """How one version has fared: its latest trials one by one, all of them in number."""

    trials: list[Trial] = Field(default_factory=list)
    successes: int = 0
    failures: int = 0
    """Calls that failed or were referred elsewhere, and marks that name no recorded call."""
    last_seen: datetime | None = None

    def add(self, trial: Trial, at: datetime, counted: Outcome | None = None) -> None:
        """Count one trial, in place; a call that is known already only gets the graver kind.

        Args:
            trial: what became of the call.
            at: when the call was.
            counted: as what the call was counted here before, by whoever knows it from the log: the
                trials do not go back so far. What they say themselves comes first.
        """
        known = trial_of_call(self.trials, trial.key)
        if known is None:
            self.trials = with_trial(self.trials, trial)
        else:
            counted = "success" if known.is_success else "failure"
            self.trials = merged(self.trials, [trial])
        self.last_seen = at if self.last_seen is None else max(at, self.last_seen)
        if counted is None:
            self.successes += trial.is_success
            self.failures += not trial.is_success
        elif counted == "success" and not trial.is_success:
            self.successes -= 1
            self.failures += 1

    def take_out(self, key: str, counted: Outcome) -> Trial | None:
        """Count a call no longer, in place; its trial, where that is remembered.

        Args:
            key: the trial's.
            counted: as what the call was counted here.
        """
        taken = trial_of_call(self.trials, key)
        self.trials = [each for each in self.trials if each.key != key]
        if taken is not None and self.trials and moment_of(taken) == self.last_seen:
            self.last_seen = max(map(moment_of, self.trials))
        # A version that was forgotten and came back has never counted it.
        self.successes -= counted == "success" and self.successes > 0
        self.failures -= counted == "failure" and self.failures > 0
        return taken


class ToolStatistics(BaseModel):
    """How a tool has fared; `versions` by the version that its calls named."""

    versions: dict[str, VersionStatistics] = Field(default_factory=dict)
    scenarios: dict[str, datetime] = Field(default_factory=dict)
    """Ids of its scenario documents, with their latest use."""
    negative_tags: dict[str, datetime] = Field(default_factory=dict)
    """Tags given by marks, with their latest use."""

    def version_to_update(self, version: str | None) -> VersionStatistics:
        """A version's statistics, made when they are new in the place of the least recent."""
        key = version or NO_VERSION
        known = self.versions.setdefault(key, VersionStatistics())
        while len(self.versions) > MAX_VERSIONS:
            others = (each for each in self.versions if each != key)
            del self.versions[min(others, key=self._last_seen)]
        return known

    def _last_seen(self, version: str) -> tuple[float, str]:
        seen = self.versions[version].last_seen
        return (seen.timestamp() if seen else 0.0, version)
