"""The standing of a repair rule: what its agents report of it, each heard up to a cap.

Counts are kept by agent, under a hash of its name, and are forgotten by contradiction: with k the
factor of one report (half-life: two reports), a failure takes what its agent said for the rule
times k, a success what its agent said against it times k. Over all agents

    right = min(most, sum of what each says for it) * k ** doubt
    wrong = sum of what each says against it * k ** (others that saw it work since)
    doubt = sum over the agents whose last word was a failure of k ** (others ... since)

so agreeing reports only ever add up, an agent that goes on and on repeats itself and doubts once,
and each further agent that doubts weighs again. (Beta reputation with a longevity factor, Josang
and Ismail 2002, applied to contradicting reports only, with a cap per rater.)
"""

import hashlib
from bisect import bisect_right
from typing import NamedTuple

from pydantic import BaseModel, Field

from aftercall.models import Outcome

HALF_LIFE = 2.0
"""Contradicting reports after which what was said before weighs half."""
_KEPT = 2.0 ** (-1 / HALF_LIFE)
MOST_OF_ONE_AGENT = 4
"""Repairs (of distinct sessions) and successes of one agent that count."""
MOST_FAILURES_OF_ONE_AGENT = 2
"""Less than of successes: a failure weighs more (see `retrieval.proposals.experience`)."""
MOST_REPAIRS = 10
MOST_SUCCESSES = 12
"""So many count at most: a wrong suggestion that succeeds would else make itself sure."""
MAX_WITNESSES = 8
"""Enough for all that counts (`MOST_REPAIRS`); a tool may have some thousand rules."""
ANYBODY = ""
"""The agent of reports that name none; they share one cap."""


class Standing(NamedTuple):
    """Repairs, reported successes and reported failures as they weigh now."""

    repairs: float = 0.0
    successes: float = 0.0
    failures: float = 0.0


class Witness(BaseModel):
    """What one agent reports of a rule, and which of all reports were its last of either kind."""

    repairs: float = 0.0
    mended: int = 0
    """All its repairs, beyond the cap too."""
    successes: float = 0.0
    failures: float = 0.0
    sessions: list[str] = Field(default_factory=list)
    worked_at: int = 0
    failed_at: int = 0

    @property
    def heard_at(self) -> int:
        """Its last word."""
        return max(self.worked_at, self.failed_at)

    def agree(self, at: int) -> None:
        """It saw the rule work."""
        self.failures *= _KEPT
        self.worked_at = at

    def disagree(self, at: int) -> None:
        """It saw the rule fail."""
        self.repairs *= _KEPT
        self.successes *= _KEPT
        self.failures = min(self.failures + 1, MOST_FAILURES_OF_ONE_AGENT)
        self.failed_at = at


class Testimony(BaseModel):
    """All that is reported of a rule, bounded: the agents that were heard last."""

    witnesses: dict[str, Witness] = Field(default_factory=dict)
    reports: int = 0
    otherwise: dict[str, int] = Field(default_factory=dict)
    """By agent, the failures that it mended by something else, though the edits applied."""

    def repaired(self, agent: str, session: str, weight: float = 1.0) -> None:
        """An agent mended a failure so by itself; a session counts once."""
        witness = self._witness(agent)
        if session in witness.sessions:
            return
        witness.agree(self.reports)
        witness.sessions = [*witness.sessions, session][-MOST_OF_ONE_AGENT:]
        witness.mended += 1
        witness.repairs = min(witness.repairs + weight, MOST_OF_ONE_AGENT)

    def reported(self, agent: str, outcome: Outcome) -> None:
        """An agent followed a suggestion of these edits, and this became of it."""
        witness = self._witness(agent)
        if outcome == "failure":
            witness.disagree(self.reports)
        else:
            witness.agree(self.reports)
            witness.successes = min(witness.successes + 1, MOST_OF_ONE_AGENT)

    def mended_otherwise(self, agent: str) -> None:
        """An agent mended such a failure by something else."""
        key = _key(agent)
        if key not in self.otherwise and len(self.otherwise) >= MAX_WITNESSES:
            del self.otherwise[min(self.otherwise, key=lambda each: self.otherwise[each])]
        self.otherwise[key] = self.otherwise.get(key, 0) + 1

    def doubts(self) -> float:
        """Repairs that speak against it, as those in `standing` speak for it.

        Of an agent whose repairs are capped, in the same proportion; of no agent above the cap.
        """
        return sum(
            min(MOST_OF_ONE_AGENT, count * min(1.0, MOST_OF_ONE_AGENT / max(1, self._mended(key))))
            for key, count in self.otherwise.items()
        )

    def _mended(self, key: str) -> int:
        return self.witnesses[key].mended if key in self.witnesses else 0

    def standing(self) -> Standing:
        """What all reports come to."""
        repairs = successes = failures = doubt = 0.0
        worked = sorted(each.worked_at for each in self.witnesses.values())
        for witness in self.witnesses.values():
            repairs += witness.repairs
            successes += witness.successes
            since = len(worked) - bisect_right(worked, witness.failed_at)
            doubts = witness.failed_at > witness.worked_at
            kept = _KEPT ** (since if doubts else max(0, since - 1))  # its own is no other's word
            failures += witness.failures * kept
            doubt += kept if doubts else 0.0
        kept = _KEPT**doubt
        return Standing(
            min(repairs, MOST_REPAIRS) * kept, min(successes, MOST_SUCCESSES) * kept, failures
        )

    def _witness(self, agent: str) -> Witness:
        key = _key(agent)
        if key not in self.witnesses and len(self.witnesses) >= MAX_WITNESSES:
            del self.witnesses[min(self.witnesses, key=lambda each: self.witnesses[each].heard_at)]
        self.reports += 1
        return self.witnesses.setdefault(key, Witness())


def _key(agent: str) -> str:
    return hashlib.sha256(agent.encode()).hexdigest()[:12] if agent else ANYBODY
