"""The simulated worlds: tools of one namespace whose hidden success rates differ and change.

A world is drawn from a family and a seed. Its tools are the original, an evolved version of it, and
others that are found by their descriptions; what they are good at is hidden. Four families were
developed on, with texts of the catalogue `development`. Four others are held out, with texts of
`held_out`: they were written, and frozen with their seeds, before the rule was.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.quality.regret_texts import Catalogue
from retrieval.answers.fitness.relevance import past_evidence, shipped_weights
from retrieval.knowledge.confidence import apply_logistic

CALLS = 2_000
ORIGINAL, EVOLVED = 0, 1
"""Places of these two among the tools; the others are semantic matches."""
Rates = NDArray[np.float64]
"""Success rates, calls x tools x kinds."""
FEW = 240
"""Calls of a world of few calls, in 60 days."""
_LEAST, _MOST = 0.02, 0.98


@dataclass(frozen=True, slots=True)
class World:
    """All calls of a world, and what a rule cannot see: the rates."""

    days: NDArray[np.float64]
    """When each call was, in days."""
    kinds: NDArray[np.int64]
    """Of each call, 0 to the world's kinds."""
    vectors: NDArray[np.float32]
    """Of each call's scenario, unit length, calls x dimension."""
    texts: NDArray[np.int64]
    """Which text of the catalogue each call's scenario is."""
    similarities: NDArray[np.float64]
    """Relevance of each tool's description, 0 to 1, calls x tools, without past successes."""
    cosines: NDArray[np.float64]
    terms: NDArray[np.float64]
    best_terms: NDArray[np.float64]
    rates: NDArray[np.float64]
    """The hidden success rate of each tool at each call, calls x tools."""
    luck: NDArray[np.float64]
    """A call succeeds where its luck is below the rate of the chosen tool."""
    comes: NDArray[np.int64]
    """The call from which on each tool is there."""

    @property
    def calls(self) -> int:
        """How many calls there are."""
        return len(self.days)

    @property
    def tools(self) -> int:
        """How many tools there are."""
        return self.rates.shape[1]

    def relevance(self, call: int, tool: int, past: list[tuple[float, float]]) -> float:
        """As the service has it, with past successes (cosine and share of each)."""
        return _relevance(
            float(self.cosines[call, tool]),
            float(self.terms[call, tool]),
            best_terms=float(self.best_terms[call]),
            past=past_evidence(past),
        )


@dataclass(slots=True)
class _Draft:
    """What a family fills in."""

    draw: np.random.Generator
    rates: Rates
    described: NDArray[np.int64]
    """The kind that each tool's description speaks of."""
    comes: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int, int]:
        calls, tools, kinds = self.rates.shape
        return calls, tools, kinds


def _skills(draft: _Draft, spread: float) -> Rates:
    """Rates that do not change: a skill for each tool, more or less by kind; tools x kinds."""
    _, tools, kinds = draft.shape
    skill = draft.draw.uniform(0.35, 0.80, (tools, 1))
    return skill + draft.draw.uniform(-spread, spread, (tools, kinds))


def _walk(draft: _Draft, shape: tuple[int, ...], memory: float, size: float) -> NDArray[np.float64]:
    """Ornstein-Uhlenbeck paths of deviation `size` that forget within `memory` calls."""
    calls = draft.shape[0]
    keep = np.exp(-1 / memory)
    steps = draft.draw.normal(0, size * np.sqrt(1 - keep**2), (calls, *shape))
    path = np.empty_like(steps)
    level = draft.draw.normal(0, size, shape)
    for call in range(calls):
        level = keep * level + steps[call]
        path[call] = level
    return path


def _drift(draft: _Draft) -> None:
    """What each tool is good at wanders, kind by kind, and a little of it for all kinds at once."""
    _, tools, kinds = draft.shape
    level = _walk(draft, (tools, kinds), 700, 1.3) + _walk(draft, (tools, 1), 500, 0.5)
    draft.rates[:] = 1 / (1 + np.exp(-(level + 0.3)))


def _outages(draft: _Draft) -> None:
    """Every tool breaks for a time, once or twice; one of them breaks for good."""
    calls, tools, _ = draft.shape
    draft.rates[:] = _skills(draft, 0.30)
    for tool in range(tools):
        for _ in range(draft.draw.integers(1, 3)):
            start = int(draft.draw.uniform(0.05, 0.9) * calls)
            end = start + int(draft.draw.uniform(0.04, 0.2) * calls)
            draft.rates[start:end, tool] *= draft.draw.uniform(0, 0.15)
    broken = int(draft.draw.integers(tools))
    draft.rates[int(draft.draw.uniform(0.3, 0.7) * calls) :, broken] *= 0.1


def _specialists(draft: _Draft) -> None:
    """Each tool is good at one or two kinds, as its description says, and bad at the others."""
    _, tools, kinds = draft.shape
    good = draft.draw.uniform(0.80, 0.97, (tools, kinds))
    bad = draft.draw.uniform(0.05, 0.45, (tools, kinds))
    own = np.zeros((tools, kinds), dtype=bool)
    for tool in range(tools):
        own[tool, draft.described[tool]] = True
        own[tool, draft.draw.integers(kinds)] |= draft.draw.random() < 0.5
    draft.rates[:] = np.where(own, good, bad)


def _misleading(draft: _Draft) -> None:
    """Whose description fits best is bad at it; the promoted version is worse than the original."""
    _, tools, kinds = draft.shape
    rates = _skills(draft, 0.35)
    rates[np.arange(tools), draft.described] = draft.draw.uniform(0.02, 0.25, tools)
    rates[EVOLVED] = rates[ORIGINAL] - draft.draw.uniform(0.1, 0.4, kinds)
    draft.rates[:] = rates
    later = int(draft.draw.uniform(0.4, 0.6) * draft.shape[0])
    draft.rates[later:, 2:] = draft.rates[later:, 2:][:, ::-1]  # two others change their places


def _seasons(draft: _Draft) -> None:
    """Success swings in a rhythm of its own for each tool, and each kind lags behind another."""
    calls, tools, kinds = draft.shape
    period = draft.draw.uniform(0.25, 0.7, (tools, 1)) * calls
    phase = draft.draw.uniform(0, 2 * np.pi, (tools, kinds))
    swing = draft.draw.uniform(0.15, 0.40, (tools, 1))
    angle = 2 * np.pi * np.arange(calls)[:, np.newaxis, np.newaxis] / period + phase
    draft.rates[:] = _skills(draft, 0.15) + swing * np.sin(angle)


def _newcomer(draft: _Draft) -> None:
    """A better tool comes late, with an unlike description; the original stays as it was."""
    calls, tools, kinds = draft.shape
    draft.rates[:] = _skills(draft, 0.30)
    newcomer = tools - 1
    best = draft.rates[0, :newcomer].max(axis=0)
    draft.rates[:, newcomer] = best + draft.draw.uniform(-0.05, 0.25, kinds)
    draft.comes[newcomer] = int(draft.draw.uniform(0.15, 0.5) * calls)
    draft.comes[EVOLVED] = int(draft.draw.uniform(0.05, 0.3) * calls)


def _few(draft: _Draft) -> None:
    """Four calls a day: skills by kind, one tool breaks and one is mended."""
    calls, tools, _ = draft.shape
    draft.rates[:] = _skills(draft, 0.40)
    one, other = draft.draw.permutation(tools)[:2]
    draft.rates[int(0.5 * calls) :, one] *= 0.15
    draft.rates[: int(0.4 * calls), other] *= 0.15


def _switches(draft: _Draft) -> None:
    """Three times in a world all tools change what they are good at, from one call to the next."""
    calls = draft.shape[0]
    cuts = np.sort(draft.draw.uniform(0.1, 0.95, 3) * calls).astype(int)
    for start, end in zip((0, *cuts), (*cuts, calls), strict=True):
        draft.rates[start:end] = _skills(draft, 0.45)


Family = Callable[[_Draft], None]
DEVELOPED: dict[str, Family] = {
    "drift": _drift,
    "outages": _outages,
    "specialists": _specialists,
    "misleading descriptions": _misleading,
}
HELD_OUT: dict[str, Family] = {
    "seasons": _seasons,
    "newcomer": _newcomer,
    "few calls": _few,
    "switches": _switches,
}
"""Looked at once, when all choices were made."""


def world(known: Catalogue, name: str, seed: int) -> World:
    """The world of a family and a seed: 3 to 6 kinds of requests, 4 to 7 tools.

    In every second world the calls come within an hour, in the others over 30 days (60 where they
    are few); clocks must not decide what is forgotten.
    """
    family = {**DEVELOPED, **HELD_OUT}[name]
    draw = np.random.default_rng([seed, len(name)])
    count = FEW if family is _few else CALLS
    kinds = draw.choice(known.kinds.max() + 1, size=int(draw.integers(3, 7)), replace=False)
    tools = int(draw.integers(4, 8))
    described = draw.integers(len(kinds), size=tools)
    described[EVOLVED] = described[ORIGINAL]
    draft = _Draft(
        draw, np.zeros((count, tools, len(kinds))), described, np.zeros(tools, dtype=np.int64)
    )
    family(draft)
    rates = np.clip(draft.rates, _LEAST, _MOST)
    shares = draw.dirichlet(np.full(len(kinds), 3.0))
    asked = draw.choice(len(kinds), size=count, p=shares)
    texts = np.array([draw.choice(np.flatnonzero(known.kinds == kinds[kind])) for kind in asked])
    days = 60.0 if family is _few else (30.0 if seed % 2 else 1 / 24)
    columns = kinds[described]
    cosines, terms = (each[texts][:, columns] for each in (known.cosines, known.terms))
    best_terms = known.terms[texts].max(axis=1)
    return World(
        days=np.sort(draw.uniform(0, days, count)),
        kinds=asked,
        vectors=known.vectors[texts],
        texts=texts,
        similarities=np.vectorize(relevance_of)(cosines, terms, best_terms[:, np.newaxis]),
        cosines=cosines,
        terms=terms,
        best_terms=best_terms,
        rates=rates[np.arange(count), :, asked],
        luck=draw.random(count),
        comes=draft.comes,
    )


def relevance_of(cosine: float, terms: float, best_terms: float) -> float:
    """Relevance without past successes."""
    return _relevance(float(cosine), float(terms), best_terms=float(best_terms))


def _relevance(cosine: float, terms: float, *, best_terms: float, past: float = 0.0) -> float:
    """That of the service, of a scenario of one part."""
    by = shipped_weights()
    evidence = cosine + by.terms * terms + by.past * past
    return apply_logistic(by.slope * evidence - by.best_terms * best_terms + by.intercept)
