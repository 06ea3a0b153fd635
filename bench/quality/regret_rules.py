"""The rules that choose: the shipped functions, the seed's formula, and what one would try first.

A rule sees what the service would see: the outcomes of the calls that it chose itself. Its memory
holds them as the service does, per version and per scenario.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from aftercall.models import Factors, RankingMode
from bench.quality.regret_world import EVOLVED, ORIGINAL, Call, Map, World
from retrieval.fitness.relevance import past_evidence, relevance
from retrieval.fitness.score import (
    LEAST_NEARNESS,
    LIKE,
    LikeScenario,
    base_of,
    demotion_of,
    posterior_of,
    quality_of,
    score_of,
    similar_failures,
)
from retrieval.fitness.statistics import MAX_SCENARIO_TRIALS, MAX_TRIALS, Trial, TrialKind

START = datetime(2026, 1, 1, tzinfo=UTC)
EPSILON = 0.1


class Memory:
    """What a rule has seen: trials by namespace and tool, in all and by scenario."""

    def __init__(self, world: World, failure: TrialKind) -> None:
        self.failure = failure
        """How a failed call is recorded: unmarked, or marked with a severity."""
        tools = [range(each.to_tools.shape[1]) for each in world.maps]
        self.trials: list[list[list[Trial]]] = [[[] for _ in each] for each in tools]
        self.scenarios: list[list[dict[int, list[Trial]]]] = [[{} for _ in each] for each in tools]
        self.inherited = [1.0] * len(world.maps)
        self._calls = 0

    def learn(self, call: Call, tool: int, *, success: bool) -> None:
        """Keep what became of a call; as many trials as the service would."""
        self._calls += 1
        kind: TrialKind = "success" if success else self.failure
        trial = Trial(now_of(call).timestamp(), f"{self._calls:012x}", kind)
        of_scenario = self.scenarios[call.namespace][tool].setdefault(call.text, [])
        of_tool = self.trials[call.namespace][tool]
        for trials, limit in ((of_tool, MAX_TRIALS), (of_scenario, MAX_SCENARIO_TRIALS)):
            trials.append(trial)
            del trials[:-limit]

    def like(self, known: Map, call: Call, tool: int) -> list[LikeScenario]:
        """What the tool was used for that is near what is asked (cosine above 0.5)."""
        near = known.of_texts[call.text]
        return [
            LikeScenario(known.texts[text], float(near[text]), trials)
            for text, trials in self.scenarios[call.namespace][tool].items()
            if near[text] > LEAST_NEARNESS
        ]


class Choice(NamedTuple):
    """The tool to call, and what the rule held of it."""

    tool: int
    score: float = 0.0


Similarity = Callable[[Map, Memory, Call, int], float]
"""Of a scenario and a tool, 0 to 1."""


def cosine(known: Map, _memory: Memory, call: Call, tool: int) -> float:
    """The model's, as seed 002 has it."""
    return float(known.to_tools[call.text, tool])


def relevant(known: Map, memory: Memory, call: Call, tool: int) -> float:
    """As the service has it: cosine, BM25, and past successes in like scenarios."""
    past = [
        (each.similarity, sum(trial.is_success for trial in each.trials) / len(each.trials))
        for each in memory.like(known, call, tool)
    ]
    return relevance(
        cosine(known, memory, call, tool),
        float(known.terms[call.text, tool]),
        best_terms=float(known.best_terms[call.text]),
        past=past_evidence(past),
    )


Rule = Callable[[World, Memory, Call, list[int]], Choice]
"""Chooses of these tools of the namespace."""


def now_of(call: Call) -> datetime:
    """The simulated time of a call."""
    return START + timedelta(days=call.day)


def shipped(mode: RankingMode, draw: Random, similarity: Similarity = relevant) -> Rule:
    """The shipped rule in one of its modes."""

    def choose(world: World, memory: Memory, call: Call, tools: list[int]) -> Choice:
        def score(tool: int) -> float:
            base = _base(world, memory, call, tool, similarity)
            return _shipped_score(world, memory, call, tool, base, mode, draw)

        return _best(tools, score)

    return choose


def _base(world: World, memory: Memory, call: Call, tool: int, similarity: Similarity) -> float:
    if tool == EVOLVED:
        return base_of("evolved")
    if tool == ORIGINAL:
        return base_of("original")
    return base_of("semantic", similarity(world.maps[call.namespace], memory, call, tool))


def _shipped_score(
    world: World,
    memory: Memory,
    call: Call,
    tool: int,
    base: float,
    mode: RankingMode,
    draw: Random,
) -> float:
    known, now = world.maps[call.namespace], now_of(call)
    trials = memory.trials[call.namespace][tool]
    like = memory.like(known, call, tool)
    by_fitness = mode == "fitness"
    start, since = 1.0, None
    if tool == EVOLVED:
        start = memory.inherited[call.namespace]
        since = START + timedelta(days=world.promoted_on[call.namespace])
    factors = Factors(
        base=base,
        quality=quality_of(trials, now=now, start=start, since=since) if by_fitness else 1.0,
        failure_demotion=demotion_of(similar_failures(like, now=now)) if by_fitness else 1.0,
        posterior=None if by_fitness else posterior_of(like, trials, now=now),
    )
    return score_of(factors, mode, draw)


class Seed:
    """The formula of seed 002: every failure is marked `medium`; nothing ever heals."""

    def __init__(self, similarity: Similarity = cosine) -> None:
        self._similarity = similarity
        self._failures: dict[tuple[int, int], dict[int, int]] = {}

    def __call__(self, world: World, memory: Memory, call: Call, tools: list[int]) -> Choice:
        """The tool of the highest score."""
        return _best(tools, lambda tool: self._score(world, memory, call, tool))

    def learn(self, call: Call, tool: int, *, success: bool) -> None:
        """Failures by scenario, all of them."""
        if not success:
            failures = self._failures.setdefault((call.namespace, tool), {})
            failures[call.text] = failures.get(call.text, 0) + 1

    def quality(self, namespace: int, tool: int, start: float = 1.0) -> float:
        """Minus 0.05 for each failure, 0.10 from the 6th on, 0.15 from the 11th on."""
        failures = sum(self._failures.get((namespace, tool), {}).values())
        lost = 0.05 * (failures + max(0, failures - 5) + max(0, failures - 10))
        return max(0.0, start - lost)

    def _score(self, world: World, memory: Memory, call: Call, tool: int) -> float:
        known = world.maps[call.namespace]
        near = known.of_texts[call.text]
        failures = self._failures.get((call.namespace, tool), {})
        similar = sum(count for text, count in failures.items() if near[text] > LIKE)
        start = memory.inherited[call.namespace] if tool == EVOLVED else 1.0
        quality = self.quality(call.namespace, tool, start)
        base = _base(world, memory, call, tool, self._similarity)
        return float(base * quality * 0.7 ** min(5, similar))


def random_choice(draw: Random) -> Rule:
    """Any tool."""
    return lambda _world, _memory, _call, tools: Choice(draw.choice(tools))


def static_base(world: World, memory: Memory, call: Call, tools: list[int]) -> Choice:
    """The highest base: the evolved version, else the original. Learns nothing."""
    return _best(tools, lambda tool: _base(world, memory, call, tool, cosine))


def epsilon_greedy(draw: Random) -> Rule:
    """Usually the highest success rate in like scenarios so far, one time in ten any tool."""

    def choose(world: World, memory: Memory, call: Call, tools: list[int]) -> Choice:
        if draw.random() < EPSILON:
            return Choice(draw.choice(tools))
        near = world.maps[call.namespace].of_texts[call.text]

        def mean(tool: int) -> float:
            scenarios = memory.scenarios[call.namespace][tool]
            seen = [t for text, trials in scenarios.items() if near[text] > LIKE for t in trials]
            return (sum(each.is_success for each in seen) + 1) / (len(seen) + 2)

        return _best(tools, mean)

    return choose


def oracle(world: World, _memory: Memory, call: Call, tools: list[int]) -> Choice:
    """The best hidden rate."""
    rates = world.rates(call)
    return _best(tools, lambda tool: float(rates[tool]))


def inherit(memory: Memory, rule: Rule, namespace: int, day: float) -> None:
    """The evolved version starts with what quality its original has, by the rule's own measure."""
    if isinstance(rule, Seed):
        memory.inherited[namespace] = rule.quality(namespace, ORIGINAL)
    else:
        trials = memory.trials[namespace][ORIGINAL]
        memory.inherited[namespace] = quality_of(trials, now=START + timedelta(days=day))


def _best(tools: list[int], value: Callable[[int], float]) -> Choice:
    """The tool of the highest value; of equal ones evolved, then original, then by id."""
    score, _, _, tool = max(
        (value(each), each == EVOLVED, each == ORIGINAL, -each) for each in tools
    )
    return Choice(-tool, score)
