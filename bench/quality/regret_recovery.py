"""Recovery: after how many successes a tool that was demoted ranks first again.

A namespace's evolved version breaks beside a flawless original, its nearest rival; then it works
again for whoever calls it. Failures and successes come in the scenarios of one group, in turn, an
hour apart; the question is about the first of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, cycle
from random import Random
from typing import NamedTuple

import numpy as np

from bench.quality import regret_rules as rules
from bench.quality.regret_rules import Memory
from bench.quality.regret_world import EVOLVED, ORIGINAL, Call, Map, World
from retrieval.fitness.score import LIKE
from retrieval.fitness.statistics import TrialKind

_MOST = 1_000
GRAVE = 20
"""Grave marks that bring the quality to 0 and the demotion to its limit."""


class Recovery(NamedTuple):
    """Successes until a tool ranked first again."""

    all: int
    alike: int
    """Of these, how many were in scenarios like the one asked about."""


def recoveries(known: list[Map], failure: TrialKind, failures: int | None) -> list[Recovery]:
    """Successes until the tool ranks first again, for every group of scenarios.

    Args:
        known: all namespaces.
        failure: how each failure is recorded.
        failures: how many there are; None for as many as it takes to lose the first rank.
    """
    world, rule = World(known, 0), rules.shipped("fitness", Random(0))
    found = []
    for namespace, each in enumerate(known):
        for group in range(len(each.capability.groups)):
            memory = Memory(world, failure)
            calls = _calls(namespace, np.flatnonzero(each.groups == group).tolist())
            asked = next(calls)

            def is_first(call: Call, memory: Memory = memory, asked: Call = asked) -> bool:
                now = replace(asked, day=call.day)
                return rule(world, memory, now, [ORIGINAL, EVOLVED]).tool == EVOLVED

            for number, call in enumerate(calls):
                memory.learn(call, EVOLVED, success=False)
                if number + 1 >= (failures or 1) and not is_first(call):
                    break
            alike = 0
            for successes, call in enumerate(calls, start=1):
                memory.learn(call, EVOLVED, success=True)
                alike += bool(each.of_texts[asked.text, call.text] > LIKE)
                if is_first(call) or successes >= _MOST:
                    found.append(Recovery(successes, alike))
                    break
    return found


def _calls(namespace: int, texts: list[int]) -> Iterator[Call]:
    for hour, text in zip(count(), cycle(texts), strict=False):
        yield Call(hour / 24, namespace, text, 0.0)
