"""Regret: what a rule's choices cost against the best tool at each call, over 2,000 calls.

The regret of a call is the hidden success rate of the best tool there and then, minus that of the
chosen one. Every rule meets the same calls with the same luck. What is tunable was tuned on
`DEVELOPMENT` seeds; the figures are those of `REPORTED` ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bench.quality import regret_rules as rules
from bench.quality.regret_rules import Memory, Rule, Seed
from bench.quality.regret_world import EVOLVED, Map, World
from retrieval.fitness.statistics import TrialKind

DEVELOPMENT = range(8)
REPORTED = range(100, 130)

Curve = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Run:
    """One rule in one world."""

    regret: Curve
    """Cumulative, after each call."""
    successes: Flags
    """Whether each call succeeded."""
    scores: Curve
    """What the rule held of the tool that it chose."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A rule by its name, and how the failures that it meets are recorded."""

    make: Callable[[int], Rule]
    failure: TrialKind = "failure"


CONTENDERS: dict[str, Contender] = {
    "fitness (default)": Contender(lambda seed: rules.shipped("fitness", Random(seed))),
    "fitness, every failure marked medium": Contender(
        lambda seed: rules.shipped("fitness", Random(seed)), "medium"
    ),
    "fitness, similarity by cosine": Contender(
        lambda seed: rules.shipped("fitness", Random(seed), rules.cosine)
    ),
    "lower_bound": Contender(lambda seed: rules.shipped("lower_bound", Random(seed))),
    "thompson": Contender(lambda seed: rules.shipped("thompson", Random(seed))),
    "seed 002's formula": Contender(lambda _: Seed()),
    "seed 002's formula, shipped similarity": Contender(lambda _: Seed(rules.relevant)),
    "epsilon-greedy (0.1)": Contender(lambda seed: rules.epsilon_greedy(Random(seed))),
    "highest base": Contender(lambda _: rules.static_base),
    "random": Contender(lambda seed: rules.random_choice(Random(seed))),
    "oracle": Contender(lambda _: rules.oracle),
}


def run(known: list[Map], contender: Contender, seed: int, *, words_tell: bool = True) -> Run:
    """One rule through one world."""
    world = World(known, seed, words_tell=words_tell)
    memory, rule = Memory(world, contender.failure), contender.make(seed)
    promoted = [False] * len(known)
    regrets, successes, scores = [], [], []
    for call in world.calls:
        rates = world.rates(call)
        tools = [tool for tool, rate in enumerate(rates) if rate >= 0]
        if not promoted[call.namespace] and EVOLVED in tools:
            promoted[call.namespace] = True
            rules.inherit(memory, rule, call.namespace, world.promoted_on[call.namespace])
        chosen, score = rule(world, memory, call, tools)
        success = bool(call.luck < rates[chosen])
        memory.learn(call, chosen, success=success)
        if isinstance(rule, Seed):
            rule.learn(call, chosen, success=success)
        regrets.append(rates.max() - rates[chosen])
        successes.append(success)
        scores.append(score)
    return Run(np.cumsum(regrets), np.array(successes), np.array(scores))


def runs(
    known: list[Map], name: str, seeds: Sequence[int], *, words_tell: bool = True
) -> list[Run]:
    """A rule through all worlds."""
    return [run(known, CONTENDERS[name], seed, words_tell=words_tell) for seed in seeds]
