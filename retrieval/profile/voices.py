"""Weights of calls in which no agent outshouts the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

MAX_VOICE = 20
"""Calls of one agent that count in full where there are several; more share the weight of these."""


@dataclass(frozen=True, slots=True)
class Voices:
    """What a call of each agent weighs, from 0 to 1.

    At most `MAX_VOICE` calls of each agent count in full, and of all agents beyond the sample
    together. So a flood of one agent moves no share by more than any other agent's word does. Where
    one agent made all calls, each weighs 1: there is nobody to be outshouted.
    """

    of_agent: Mapping[str, float]
    of_others: float

    @classmethod
    def among(cls, calls: int, agents: Mapping[str, int]) -> Self:
        """The voices in so many calls, with the sample of who made them."""
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
