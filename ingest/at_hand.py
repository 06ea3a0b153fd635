"""What is kept decoded of workspaces between batches: known to equal what the store has.

That holds as long as nobody else learned there and no rebuild has switched the store; whoever takes
it out says under which conditions that is so.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingest.fitness_loading import FitnessAtHand
from ingest.health_loading import HealthAtHand
from mongo.records import ToolKey
from retrieval.knowledge.rules import ToolKnowledge

MAX_TOOLS = 1_000
"""Tools whose knowledge is kept decoded, of all workspaces; the most recent ones."""


@dataclass(frozen=True, slots=True)
class AtHand:
    """Of one workspace. What is learned is learned into it in place."""

    knowledge: Mapping[ToolKey, ToolKnowledge] = field(default_factory=dict)
    fitness: FitnessAtHand = field(default_factory=FitnessAtHand)
    health: HealthAtHand = field(default_factory=HealthAtHand)
    learned_to: int | None = None
    """A position above which nothing was learned from; None where nobody knows."""

    def share(self) -> float:
        """How much of what may be kept it takes, 0 to 1."""
        return max(len(self.knowledge) / MAX_TOOLS, self.fitness.share(), self.health.share())


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must be as it was for things at hand to hold."""

    generation: int
    held_since: int | None
    """The token from which on nobody else held the workspace."""


class Hands:
    """What is at hand of all workspaces; those used longest ago make room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Conditions, AtHand]] = OrderedDict()

    def take(self, workspace: str, conditions: Conditions) -> AtHand:
        """What holds under these conditions; taken out, so that nothing is kept half changed."""
        then, at_hand = self._kept.pop(workspace, (conditions, AtHand()))
        return at_hand if then == conditions else AtHand()

    def put(self, workspace: str, conditions: Conditions, at_hand: AtHand) -> None:
        """Keep what was learned into, once that is durable."""
        self._kept[workspace] = (conditions, at_hand)
        self._kept.move_to_end(workspace)
        while len(self._kept) > 1 and sum(kept.share() for _, kept in self._kept.values()) > 1:
            self._kept.popitem(last=False)

    def drop(self) -> None:
        """Forget everything."""
        self._kept.clear()
