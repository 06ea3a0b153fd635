"""A small world of tools whose success rates are hidden and change, for rules of choice to meet.

Four tools serve one capability, in scenarios of three kinds:

- the *original*, with a rate of 0.70 to 0.90, a little different by kind;
- its *evolved* version, which comes after a fifth of the calls: better by up to 0.15, but at one
  kind worse by 0.3 to 0.6;
- two *semantic matches*, each good (0.75 to 0.95) at the kind that it is described for, else
  weak.

One of the first two breaks for a fifth of the time: its rates fall to a tenth. Then it works again.
`bench/quality/regret_world.py` has the larger world, with true words and the model's own cosines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from aftercall.models import ToolSource

TOOLS: tuple[tuple[str, ToolSource], ...] = (
    ("original", "original"),
    ("evolved", "evolved"),
    ("specialist A", "semantic"),
    ("specialist B", "semantic"),
)
ORIGINAL, EVOLVED, SPECIALIST_A, SPECIALIST_B = range(len(TOOLS))
KINDS = 3
DAYS = 30.0
START = datetime(2026, 1, 1, tzinfo=UTC)

_EVOLVED_AFTER = 0.2
_TROUBLE_SHARE, _TROUBLE_LEAVES = 0.2, 0.1

Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `luck` decides alike for every tool: one succeeds whose rate is above it."""

    number: int
    day: float
    kind: int
    luck: float

    @property
    def at(self) -> datetime:
        """Its simulated time."""
        return START + timedelta(days=self.day)


class World:
    """One world, drawn from a seed; the same seed gives the same world and calls.

    Args:
        seed: of the draws.
        calls: how many calls there are within `DAYS` days, evenly spaced.
    """

    def __init__(self, seed: int, calls: int = 600) -> None:
        draw = np.random.default_rng(seed)
        self._rates = _rates(draw)
        self.similarity = _similarity(draw)
        """How well each tool's words fit a scenario of each kind, tools x kinds, 0 to 1."""
        self.broken = int(draw.integers(EVOLVED + 1))
        """The tool that breaks."""
        begins = float(draw.uniform(0.3, 0.6)) * DAYS
        self.trouble = (begins, begins + _TROUBLE_SHARE * DAYS)
        """From when to when, in days."""
        self.evolved_from = _EVOLVED_AFTER * DAYS
        """The day on which the evolved version comes."""
        self.calls = [
            Call(
                number,
                day=DAYS * number / calls,
                kind=int(draw.integers(KINDS)),
                luck=float(draw.random()),
            )
            for number in range(calls)
        ]

    def tools(self, call: Call) -> list[int]:
        """Return those that there are at a call."""
        return [tool for tool in range(len(TOOLS)) if self._is_there(tool, call)]

    def rates(self, call: Call) -> Rates:
        """Return the hidden success rate of each tool at a call.

        -1 of one that is not there yet.
        """
        rates = self._rates[:, call.kind].copy()
        begins, ends = self.trouble
        if begins <= call.day < ends:
            rates[self.broken] *= _TROUBLE_LEAVES
        if not self._is_there(EVOLVED, call):
            rates[EVOLVED] = -1.0
        return rates

    def _is_there(self, tool: int, call: Call) -> bool:
        return tool != EVOLVED or call.day >= self.evolved_from


@dataclass(frozen=True, slots=True)
class Run:
    """What one rule's choices came to in one world."""

    chosen: NDArray[np.int64]
    successes: NDArray[np.bool_]
    regret: NDArray[np.float64]
    """After each call, the sum so far of: the best rate there and then, minus the chosen one's."""


def run_of(world: World, chosen: Sequence[int]) -> Run:
    """Return the outcomes and the regret of a choice for each call of a world."""
    rates = np.array([world.rates(call) for call in world.calls])
    of_chosen = rates[np.arange(len(rates)), np.array(chosen)]
    lucks = np.array([call.luck for call in world.calls])
    return Run(np.array(chosen), lucks < of_chosen, np.cumsum(rates.max(axis=1) - of_chosen))


def _rates(draw: np.random.Generator) -> Rates:
    """Without trouble, tools x kinds."""
    rates = np.empty((len(TOOLS), KINDS))
    rates[ORIGINAL] = draw.uniform(0.70, 0.90) + draw.uniform(-0.05, 0.05, KINDS)
    rates[EVOLVED] = rates[ORIGINAL] + draw.uniform(0.0, 0.15, KINDS)
    rates[EVOLVED, draw.integers(KINDS)] -= draw.uniform(0.3, 0.6)
    for tool, kind in ((SPECIALIST_A, 1), (SPECIALIST_B, 2)):
        rates[tool] = draw.uniform(0.10, 0.50, KINDS)
        rates[tool, kind] = draw.uniform(0.75, 0.95)
    return np.clip(rates, 0.02, 0.98)


def _similarity(draw: np.random.Generator) -> NDArray[np.float64]:
    similarity = draw.uniform(0.30, 0.60, (len(TOOLS), KINDS))
    similarity[SPECIALIST_A, 1] = draw.uniform(0.85, 1.0)
    similarity[SPECIALIST_B, 2] = draw.uniform(0.85, 1.0)
    return similarity
