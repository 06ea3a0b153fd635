"""Bounded samples of many calls, and weights in which no agent outshouts the others.

- A *sample* keeps those keys whose hashes are the smallest (bottom-k sampling: Cohen and Kaplan,
  "Summarizing data using bottom-k sketches", 2007). A key that was let go can never come back, so
  the counts that are kept are exact, whatever the order in which things were seen.
- The *latest* keeps those keys that were seen last, by the clock of the executions.

Both are plain JSON and are changed in place.
"""

import hashlib
from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

AGENT_DIGITS = 6
"""Of the token of an agent."""
V = TypeVar("V")


def token(text: str, digits: int = 8) -> str:
    """Hexadecimal digits that stand for a text and say nothing else of it; the key of samples."""
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


def milliseconds(moment: datetime | None) -> int:
    """Milliseconds since 1970 in UTC; 0 for a moment that is not known."""
    return 0 if moment is None else round(moment.timestamp() * 1000)


def has_place(sample: dict[str, V], key: str, limit: int) -> bool:
    """Whether a key, a `token`, is among the smallest; then there is room for it."""
    if key in sample or len(sample) < limit:
        return True
    largest = max(sample)
    if key > largest:
        return False
    del sample[largest]
    return True


def count_in_sample(sample: dict[str, int], key: str, limit: int) -> None:
    """Count a key, a `token`, when it is among the smallest."""
    if has_place(sample, key, limit):
        sample[key] = sample.get(key, 0) + 1


def add_to_sample(sample: list[str], key: str, limit: int) -> None:
    """Remember a key, a `token`, when it is among the smallest; the list stays sorted."""
    if key not in sample and (len(sample) < limit or key < sample[-1]):
        insort(sample, key)
        del sample[limit:]


def touch(latest: dict[str, int], key: str, at: int, limit: int) -> None:
    """Remember when a key was seen, when it is among the latest; ties go to the larger key."""
    if latest.get(key, -1) >= at:
        return
    latest[key] = at
    if len(latest) > limit:
        del latest[min(zip(latest.values(), latest, strict=True))[1]]


MAX_VOICE = 20
"""Calls of one agent that count in full where there are several; more share the weight of these."""


@dataclass(frozen=True, slots=True)
class FairWeights:
    """What a call of each agent weighs, from 0 to 1.

    At most `MAX_VOICE` calls of each agent count in full, and of all agents beyond the sample
    together. So a flood of one agent moves no share by more than any other agent's word does. Where
    one agent made all calls, each weighs 1: there is nobody to be outshouted.
    """

    of_agent: Mapping[str, float]
    of_others: float

    @classmethod
    def among(cls, calls: int, agents: Mapping[str, int]) -> Self:
        """The fair in so many calls, with the sample of who made them."""
        others = calls - sum(agents.values())
        if len(agents) + (others > 0) <= 1:
            return cls({}, 1.0)
        of_agent = {agent: min(1.0, MAX_VOICE / made) for agent, made in agents.items()}
        return cls(of_agent, min(1.0, MAX_VOICE / others) if others else 0.0)

    def weight(self, calls: int, agents: Mapping[str, int]) -> float:
        """The weight of some of these calls, with the sample of who made those; at most `calls`."""
        weight, others = 0.0, calls
        for agent, made in agents.items():
            if (voice := self.of_agent.get(agent)) is not None:
                weight += made * voice
                others -= made
        return weight + others * self.of_others
