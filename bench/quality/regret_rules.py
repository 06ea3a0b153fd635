"""The rules that choose: the shipped one, the seed's formula, and what the literature would take.

A rule sees what a service sees: the scenario of each call, and what became of the calls that it
chose itself. Bandits meet the same vectors as the shipped rule.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from aftercall.models import Factors, ToolSource
from bench.quality.regret_world import EVOLVED, ORIGINAL, World
from retrieval.answers.fitness.expected import LEAST_NEARNESS, LikeScenario, experience_of
from retrieval.answers.fitness.score import (
    DEMOTION,
    LIKE,
    MAX_FAILURES,
    base_of,
    by_experience,
    demotion_of,
    quality_of,
    score_of,
    similar_failures,
)
from retrieval.knowledge.rows.statistics import (
    MAX_SCENARIO_TRIALS,
    MAX_SCENARIOS,
    MAX_TRIALS,
    Trial,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
_NEAR = 0.5
"""Cosine below which a past success adds nothing to relevance that one could see."""


class Random:
    """Any tool. What all rules have: the world, as far as they may see it, and draws of their own.

    Args:
        world: whose calls come.
        seed: of the draws.
    """

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.draw = np.random.default_rng([seed, 9])

    def choose(self, _call: int, tools: Sequence[int]) -> int:
        """The tool to call, of those that are there."""
        return int(self.draw.choice(tools))

    def learn(self, call: int, tool: int, success: bool) -> None:  # noqa: FBT001
        """What became of the call."""


class Shipped(Random):
    """The shipped rule, with as much memory as the service has.

    Args:
        world: whose calls come.
        seed: of the draws; it has none.
        may_be_tried: whether its tools are such that may be tried out.
        by_seed: in the mode `seed`.
    """

    def __init__(
        self, world: World, seed: int, *, may_be_tried: bool = False, by_seed: bool = False
    ) -> None:
        super().__init__(world, seed)
        self._may_be_tried, self._by_seed = may_be_tried, by_seed
        self.trials: list[list[Trial]] = [[] for _ in range(world.tools)]
        self._scenarios: list[dict[int, list[Trial]]] = [{} for _ in range(world.tools)]
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._calls = 0

    def choose(self, call: int, tools: Sequence[int]) -> int:
        """The highest score; of equal ones evolved, then original, then by relevance."""
        now = START + timedelta(days=float(self.world.days[call]))
        alike = {tool: self._like(call, tool) for tool in tools}
        trials = (self.trials[tool] for tool in tools)
        experience = experience_of(trials, like=alike.values())
        scored = []
        for tool in tools:
            like = alike[tool]
            source: ToolSource = (
                "evolved" if tool == EVOLVED else "original" if tool == ORIGINAL else "semantic"
            )
            similarity = self._similarity(call, tool, like) if source == "semantic" else 1.0
            base, own = base_of(source, similarity), self.trials[tool]
            if self._by_seed:
                score = score_of(
                    Factors(
                        base=base,
                        quality=quality_of(own, now=now),
                        failure_demotion=demotion_of(similar_failures(like, now=now)),
                    )
                )
            else:  # what quality and demotion are apart makes no difference to the score
                plain = Factors(base=base, quality=1.0, failure_demotion=1.0)
                score = score_of(
                    by_experience(
                        plain,
                        like,
                        own,
                        experience,
                        now,
                        source=source,
                        serves=True,
                        may_be_tried=self._may_be_tried,
                    )
                )
            scored.append((score, source == "evolved", source == "original", similarity, -tool))
        return -max(scored)[-1]

    def learn(self, call: int, tool: int, success: bool) -> None:  # noqa: FBT001
        """As many trials and scenarios as the service would keep, the latest ones."""
        self._calls += 1
        at = (START + timedelta(days=float(self.world.days[call]))).timestamp()
        trial = Trial(at, f"{self._calls:012x}", "success" if success else "failure")
        text = int(self.world.texts[call])
        self._vectors[text] = self.world.vectors[call]
        scenarios = self._scenarios[tool]
        known = scenarios.pop(text, [])
        scenarios[text] = [*known, trial][-MAX_SCENARIO_TRIALS:]  # the latest used come last
        if len(scenarios) > MAX_SCENARIOS:
            del scenarios[next(iter(scenarios))]
        self.trials[tool] = [*self.trials[tool], trial][-MAX_TRIALS:]

    def _like(self, call: int, tool: int) -> list[LikeScenario]:
        known = self._scenarios[tool]
        if not known:
            return []
        near = np.stack([self._vectors[text] for text in known]) @ self.world.vectors[call]
        return [
            LikeScenario("", float(cosine), trials)
            for cosine, trials in zip(near, known.values(), strict=True)
            if cosine >= LEAST_NEARNESS
        ]

    def _similarity(self, call: int, tool: int, like: Sequence[LikeScenario]) -> float:
        past = [
            (each.similarity, sum(trial.is_success for trial in each.trials) / len(each.trials))
            for each in like
            if each.similarity > _NEAR
        ]
        return self.world.relevance(call, tool, past)


class Seed(Random):
    """The formula of seed 002: every failure is marked `medium`; nothing ever heals."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self._failures: list[list[int]] = [[] for _ in range(world.tools)]

    def choose(self, call: int, tools: Sequence[int]) -> int:
        """The highest base x quality x demotion."""
        return -max((self._score(call, tool), -tool) for tool in tools)[1]

    def learn(self, call: int, tool: int, success: bool) -> None:  # noqa: FBT001
        """Failures alone."""
        if not success:
            self._failures[tool].append(call)

    def _score(self, call: int, tool: int) -> float:
        bases = {EVOLVED: 1.0, ORIGINAL: 0.9}
        base = bases.get(tool, 0.8 * max(0.0, float(self.world.cosines[call, tool])))
        failures = self._failures[tool]
        many, more = max(0, len(failures) - 5), max(0, len(failures) - 10)
        quality = max(0.0, 1 - 0.05 * (len(failures) + many + more))
        alike = 0
        if failures:
            near = self.world.vectors[failures] @ self.world.vectors[call]
            alike = min(MAX_FAILURES, int((near > LIKE).sum()))
        return float(base * quality * DEMOTION**alike)


class Thompson(Random):
    """A draw from a Beta for each tool (Thompson 1933)."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self._counts = np.ones((world.tools, 2))

    def choose(self, _call: int, tools: Sequence[int]) -> int:
        """The highest draw."""
        counts = self._counts[tools]
        return int(tools[np.argmax(self.draw.beta(counts[:, 0], counts[:, 1]))])

    def learn(self, _call: int, tool: int, success: bool) -> None:  # noqa: FBT001
        """One count more."""
        self._counts[tool, 0 if success else 1] += 1


class LinTS(Random):
    """Linear Thompson sampling on the scenarios' vectors (Agrawal and Goyal 2013), ridge 1."""

    WIDTH = 0.25
    """Of the draws, in standard deviations: 0.1, 0.25 and 0.5 gave a regret of 283, 266 and 338 on
    worlds of development."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        dimension = world.vectors.shape[1]
        self._inverse = np.stack([np.eye(dimension)] * world.tools)
        self._rewards = np.zeros((world.tools, dimension))

    def choose(self, call: int, tools: Sequence[int]) -> int:
        """The highest draw."""
        vector = self.world.vectors[call].astype(np.float64)
        drawn = []
        for tool in tools:
            spread = self._inverse[tool] @ vector
            noise = self.WIDTH * np.sqrt(vector @ spread) * self.draw.standard_normal()
            drawn.append(spread @ self._rewards[tool] + noise)
        return int(tools[int(np.argmax(drawn))])

    def learn(self, call: int, tool: int, success: bool) -> None:  # noqa: FBT001
        """One row of the regression more (Sherman and Morrison)."""
        vector = self.world.vectors[call].astype(np.float64)
        inverse = self._inverse[tool]
        spread = inverse @ vector
        inverse -= np.outer(spread, spread) / (1 + vector @ spread)
        self._rewards[tool] += vector * success


class Best(Random):
    """The best hidden rate."""

    def choose(self, call: int, tools: Sequence[int]) -> int:
        """Whatever is best there and then."""
        return int(max(tools, key=lambda tool: self.world.rates[call, tool]))
