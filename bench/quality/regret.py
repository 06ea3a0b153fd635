"""Regret: what a rule's choices cost against the best tool at each call; and how soon it changes.

The regret of a call is the hidden success rate of the best tool there and then, minus that of the
chosen one. Every rule meets the same calls with the same luck. What is tunable was tuned on the
families `DEVELOPED` with the seeds `DEVELOPMENT`; families and texts of `HELD_OUT` were looked at
when that was done.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.quality.regret_rules import Best, LinTS, Random, Seed, Shipped, Thompson
from bench.quality.regret_texts import Catalogue
from bench.quality.regret_world import DEVELOPED, EVOLVED, HELD_OUT, ORIGINAL, World, world

DEVELOPMENT, REPORTED = range(6), range(100, 105)
OURS, LINTS, SEED = "Aftercall", "LinTS", "seed 002's formula"
CONTENDERS: dict[str, Callable[[World, int], Random]] = {
    OURS: Shipped,
    f"{OURS}, tools may be tried": lambda known, seed: Shipped(known, seed, may_be_tried=True),
    f"{OURS}, mode=seed": lambda known, seed: Shipped(known, seed, by_seed=True),
    SEED: Seed,
    LINTS: LinTS,
    "Thompson per tool": Thompson,
    "random": Random,
    "best at each call": Best,
}
_SERVED, _AWAY, _MOST = 40, 20, 60
"""Calls while all is well, calls that the others get while the tool is broken, and where to stop
counting."""

Curve = NDArray[np.float64]
_known: dict[str, Catalogue] = {}


def run(known: World, rule: Random) -> Curve:
    """The cumulative regret of a rule in a world, after each call."""
    regrets = []
    for call in range(known.calls):
        tools = np.flatnonzero(known.comes <= call)
        chosen, rates = rule.choose(call, tools), known.rates[call]
        rule.learn(call, chosen, bool(known.luck[call] < rates[chosen]))
        regrets.append(rates[tools].max() - rates[chosen])
    return np.cumsum(regrets)


def runs(
    development: Catalogue, held_out: Catalogue | None, seeds: range = REPORTED
) -> dict[str, dict[str, list[Curve]]]:
    """All rules in all worlds: by family, then by rule, one curve for each seed."""
    families = [(name, development) for name in DEVELOPED]
    families += [(name, held_out) for name in HELD_OUT if held_out is not None]
    jobs = [(name, seed) for (name, _), seed in product(families, seeds)]
    with ProcessPoolExecutor(initializer=_start, initargs=(dict(families),)) as pool:
        found = list(pool.map(_one, jobs))
    return {
        family: {
            rule: [
                each[rule] for (name, _), each in zip(jobs, found, strict=True) if name == family
            ]
            for rule in CONTENDERS
        }
        for family, _ in families
    }


def _start(families: dict[str, Catalogue]) -> None:
    _known.update(families)


def _one(job: tuple[str, int]) -> dict[str, Curve]:
    family, seed = job
    drawn = world(_known[family], family, seed)
    return {name: run(drawn, make(drawn, seed)) for name, make in CONTENDERS.items()}


class Change(NamedTuple):
    """Calls until the choice follows a change."""

    lost: int
    """Failed calls of a tool that broke, until another one is chosen."""
    back: int
    """Successes of the mended tool, called all the same, until it is chosen again."""


def changes(known: Catalogue, seeds: range = REPORTED, *, rival: float = 1.0) -> list[Change]:
    """How soon a promoted tool that breaks loses its place, and has it back when it is mended.

    It succeeded in 40 calls, beside an original that succeeds at the rate `rival`; each call comes
    in other words, of 3 to 6 kinds. While it is broken the others get 20 calls.
    """
    found = []
    for seed in seeds:
        drawn = world(known, "specialists", seed)  # for its calls; the rates are ours
        drawn = replace(drawn, rates=np.zeros_like(drawn.rates), comes=np.zeros_like(drawn.comes))
        rule, call = Shipped(drawn, seed), 0
        for call in range(_SERVED):
            rule.learn(call, EVOLVED, success=True)

        def chosen(call: int, rule: Shipped = rule) -> int:
            return rule.choose(call, [ORIGINAL, EVOLVED])

        lost = 0
        while chosen(call := call + 1) == EVOLVED and lost < _MOST:
            rule.learn(call, EVOLVED, success=False)
            lost += 1
        call += _AWAY
        for away in range(call - _AWAY, call):
            rule.learn(away, ORIGINAL, success=bool(drawn.luck[away] < rival))
        back = 0
        while chosen(call := call + 1) != EVOLVED and back < _MOST:
            rule.learn(call, EVOLVED, success=True)
            back += 1
        found.append(Change(lost, back))
    return found
