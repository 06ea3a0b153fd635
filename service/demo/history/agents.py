"""The simulated agents: whom they work for, what they get wrong, whether they ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.demo.history.faults import FaultKind
from service.demo.history.slips import SlipKind

READABLE: Mapping[FaultKind, float] = {
    "unknown_parameter": 0.5,
    "missing_parameter": 0.55,
    "wrong_type": 0.6,
    "out_of_range": 0.55,
    "not_a_choice": 0.45,
    "wrong_form": 0.4,
    "hidden_rule": 0.25,
    "not_found": 0.3,
    "conflict": 0.35,
    "timeout": 0.5,
    "rate_limited": 0.6,
    "unavailable": 0.25,
    "wrong_tool": 0.55,
}
"""How often an agent of mean skill mends a failure by itself, by what it is."""


@dataclass(frozen=True, slots=True)
class SimAgent:
    """One agent.

    Args:
        name: its name.
        servers: how much of its work is on each server.
        slips: share of its calls that it gets wrong.
        prone: kinds of slips that it makes more or less often than others, as factors.
        skill: factor on `READABLE`.
        asks_from: the day of the story from which on it asks the service; None for never.
        min_confidence: it follows suggestions above this, 0 to 1.
        may_write: whether it has the rights that some tools ask for.
        says_repair_of: whether it says which failed call a call of its own mends.
        share: of the work, beside the others.
        joins: the first day of the story on which it works.
    """

    name: str
    servers: Mapping[str, float]
    slips: float
    prone: Mapping[SlipKind, float] = field(default_factory=dict)
    skill: float = 1.0
    asks_from: int | None = 0
    min_confidence: float = 0.80
    may_write: bool = True
    says_repair_of: bool = False
    share: float = 1.0
    joins: int = 0

    def asks(self, day: int) -> bool:
        """Whether it asks the service on a day."""
        return self.asks_from is not None and day >= self.asks_from

    def mends(self, kind: FaultKind) -> float:
        """How often it mends such a failure by itself, 0 to 1."""
        return min(0.95, READABLE.get(kind, 0.0) * self.skill)


AGENTS: tuple[SimAgent, ...] = (
    SimAgent(
        "research-ada", {"web": 4, "library": 3, "words": 2}, 0.17, {"range": 2}, share=1.6,
        asks_from=2, says_repair_of=True,
    ),
    SimAgent("research-ben", {"web": 3, "library": 3}, 0.21, {"name": 2}, share=1.3, asks_from=8),
    SimAgent(
        "support-cyd", {"tickets": 4, "commerce": 4, "words": 1}, 0.19, {"id": 1.6}, share=1.8,
        asks_from=5,
    ),
    SimAgent(
        "support-dee", {"tickets": 3, "commerce": 4}, 0.23, {"choice": 2}, share=1.5, asks_from=12,
        may_write=False,
    ),
    SimAgent(
        "support-eve", {"tickets": 3, "commerce": 2}, 0.22, {"missing": 2}, share=1.2,
        asks_from=None,
    ),
    SimAgent(
        "planner-fay", {"calendar": 5, "tickets": 1}, 0.18, {"form": 2}, share=1.4, asks_from=6,
        says_repair_of=True,
    ),
    SimAgent("planner-gus", {"calendar": 4, "words": 1}, 0.24, {"form": 3}, share=1.0,
             asks_from=None),
    SimAgent(
        "ops-hal", {"metrics": 5, "tickets": 1, "files": 1}, 0.14, {"type": 2}, skill=1.3,
        share=1.6, asks_from=2,
    ),
    SimAgent("ops-ivy", {"metrics": 4, "files": 2}, 0.2, share=1.1, asks_from=14, may_write=False),
    SimAgent("coder-jon", {"files": 5, "library": 2}, 0.15, skill=1.3, share=1.7, asks_from=7),
    SimAgent(
        "coder-kim", {"files": 4, "library": 2, "web": 1}, 0.2, {"invented": 2}, share=1.2,
        asks_from=None, skill=0.8,
    ),
    SimAgent("writer-lea", {"words": 5, "web": 2}, 0.18, {"choice": 2}, share=1.3, asks_from=10),
    SimAgent(
        "buyer-max", {"commerce": 5, "web": 1}, 0.2, {"name": 1.5}, share=1.1, asks_from=11,
        min_confidence=0.5,
    ),
    SimAgent("analyst-noa", {"metrics": 2, "commerce": 2, "library": 2}, 0.19, share=1.2,
             asks_from=4, min_confidence=0.5),
    SimAgent(
        "trainee-oli", {"tickets": 2, "files": 2, "calendar": 2, "web": 2}, 0.33, skill=0.6,
        share=0.9, asks_from=13, may_write=False, joins=8,
    ),
    SimAgent("nightly-pia", {"metrics": 2, "library": 3, "files": 2}, 0.12, share=1.0,
             asks_from=None),
)  # fmt: skip
"""Sixteen agents; four never ask, the others begin to within the first half."""
