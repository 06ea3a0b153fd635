"""The simulated world: tools with hidden success rates that change, and the calls of 30 days."""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import NDArray

from aftercall.models import Tool
from bench.quality.regret_phrases import CAPABILITIES, Capability
from embeddings.protocol import Embedder
from retrieval.fitness.relevance import relevant, tool_queries, tool_terms, tool_text
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import IndexPoint

CALLS = 2_000
DAYS = 30.0
ORIGINAL, EVOLVED = 0, 1
"""Places of these two among a namespace's tools; the others are semantic matches."""


_WORKSPACE = "simulation"
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_FAR, _NEAR = 0.2, 0.5
"""Cosines of a description and a scenario: unrelated, and made for it."""


@dataclass(frozen=True, slots=True)
class Map:
    """What the model and the index say of a namespace's words."""

    capability: Capability
    texts: tuple[str, ...]
    groups: NDArray[np.int64]
    """The group of each text."""
    of_texts: NDArray[np.float32]
    """Cosines, texts x texts."""
    to_tools: NDArray[np.float64]
    """Cosines, texts x tools."""
    terms: NDArray[np.float64]
    """BM25, texts x tools."""
    best_terms: NDArray[np.float64]
    """The highest BM25 of any tool of any namespace, by text."""


async def maps(embedder: Embedder) -> list[Map]:
    """All namespaces: their tools in one index, asked for every scenario as the service asks."""
    with tempfile.TemporaryDirectory() as folder:
        index = await EdgeIndex.open(
            Path(folder), dimension=embedder.dimension, fingerprint=embedder.fingerprint
        )
        try:
            for each in CAPABILITIES:
                await _add(index, embedder, each)
            return [await _map(index, embedder, each) for each in CAPABILITIES]
        finally:
            await index.close()


def _names(capability: Capability) -> list[str]:
    """The tools that have a document; the original's stands for its evolved version."""
    return [capability.name, *capability.others]


async def _add(index: EdgeIndex, embedder: Embedder, capability: Capability) -> None:
    descriptions = [capability.description, *capability.others.values()]
    tools = [
        Tool(tool_id=name, name=name, namespace=capability.name, description=said, updated_at=_AT)
        for name, said in zip(_names(capability), descriptions, strict=True)
    ]
    vectors = await embedder.embed([tool_text(each) for each in tools], "document")
    await index.upsert(
        [
            IndexPoint(
                str(uuid5(NAMESPACE_URL, tool.name)), _WORKSPACE, "tool", None, tool.name, vector,
                tool_terms(tool),
            )
            for tool, vector in zip(tools, vectors, strict=True)
        ]
    )  # fmt: skip


async def _map(index: EdgeIndex, embedder: Embedder, capability: Capability) -> Map:
    texts = tuple(text for group in capability.groups for text in group)
    groups = [number for number, group in enumerate(capability.groups) for _ in group]
    vectors = await embedder.embed(texts, "query")
    cosines, terms, best = [], [], []
    for text, vector in zip(texts, vectors, strict=True):
        queries = tool_queries(_WORKSPACE, vector[np.newaxis], text, limit=100)
        tools = {each.tool_name: each for each in relevant(await index.search(queries))}
        own = [tools[name] for name in (capability.name, *_names(capability))]
        cosines.append([each.cosine for each in own])
        terms.append([each.terms for each in own])
        best.append(max(each.terms for each in tools.values()))
    return Map(
        capability, texts, np.array(groups), vectors @ vectors.T, np.array(cosines),
        np.array(terms), np.array(best),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the run. `luck` decides for every tool alike: it succeeds below its rate."""

    day: float
    namespace: int
    text: int
    luck: float


@dataclass(frozen=True, slots=True)
class Trouble:
    """From `start` to `end` (days) a tool's rates are multiplied by `factor`."""

    start: float
    end: float
    factor: float


class World:
    """One namespace set with rates, troubles and promotions drawn from a seed.

    - A tool's rate is its skill (0.60 to 0.97), more or less 0.08 by group; at a group in four it
      is bad (0.05 to 0.50).
    - Where words tell, a semantic match can do what it is described for: its rates fall to between
      0.02 and 0.40 as the cosine to the group's scenarios falls from 0.5 to 0.2. Where they do not,
      rates have nothing to do with words.
    - The evolved version comes between day 0 and 12. In three of five namespaces it is better than
      its original by up to 0.25 in each group, in the others worse by 0.15 to 0.50.
    - Every second tool degrades once for 2 to 8 days, to between 0 and 0.4 of its rates, then is
      well again. In each namespace one tool is out for one day.
    """

    def __init__(self, known: list[Map], seed: int, *, words_tell: bool = True) -> None:
        draw = np.random.default_rng([seed, 1])
        self.maps = known
        worse = set(draw.permutation(len(known))[: (2 * len(known)) // 5].tolist())
        self._rates: list[NDArray[np.float64]] = []
        self._troubles: list[list[list[Trouble]]] = []
        self.promoted_on: list[float] = []
        for number, each in enumerate(known):
            is_worse = number in worse
            self._rates.append(_rates(draw, each, evolved_is_worse=is_worse, words_tell=words_tell))
            self._troubles.append(_troubles(draw, each.to_tools.shape[1]))
            self.promoted_on.append(float(draw.uniform(0, 12)))
        self.calls = self._calls(np.random.default_rng([seed, 2]))

    def rates(self, call: Call) -> NDArray[np.float64]:
        """The hidden success rate of every tool of the namespace at this call; -1 for none yet."""
        known = self.maps[call.namespace]
        rates = self._rates[call.namespace][:, known.groups[call.text]].copy()
        for tool, troubles in enumerate(self._troubles[call.namespace]):
            for each in troubles:
                if each.start <= call.day < each.end:
                    rates[tool] *= each.factor
        if call.day < self.promoted_on[call.namespace]:
            rates[EVOLVED] = -1.0
        return rates

    def _calls(self, draw: np.random.Generator) -> list[Call]:
        shares = 1 / np.arange(1, len(self.maps) + 1) ** 0.5
        shares = draw.permutation(shares / shares.sum())
        days = np.sort(draw.uniform(0, DAYS, CALLS))
        found = []
        for day in days:
            namespace = int(draw.choice(len(self.maps), p=shares))
            text = int(draw.integers(len(self.maps[namespace].texts)))
            found.append(Call(float(day), namespace, text, float(draw.random())))
        return found


def _rates(
    draw: np.random.Generator, known: Map, *, evolved_is_worse: bool, words_tell: bool
) -> NDArray[np.float64]:
    """Success rates without troubles, tools x groups."""
    shape = known.to_tools.shape[1], len(known.capability.groups)
    skill = draw.uniform(0.60, 0.97, (shape[0], 1))
    rates = skill + draw.uniform(-0.08, 0.08, shape)
    if words_tell:
        fit = np.clip((_nearness(known) - _FAR) / (_NEAR - _FAR), 0, 1)[EVOLVED + 1 :]
        low = draw.uniform(0.02, 0.40, fit.shape)
        rates[EVOLVED + 1 :] = fit * rates[EVOLVED + 1 :] + (1 - fit) * low
    bad = draw.random(shape) < 0.25
    rates = np.where(bad, np.minimum(rates, draw.uniform(0.05, 0.50, shape)), rates)
    better = draw.uniform(0, 0.25, shape[1])
    loss = draw.uniform(0.15, 0.50, shape[1])
    rates[EVOLVED] = rates[ORIGINAL] + (-loss if evolved_is_worse else better)
    return np.clip(rates, 0.02, 0.98)


def _nearness(known: Map) -> NDArray[np.float64]:
    """Mean cosine of each tool to the scenarios of each group, tools x groups."""
    groups = range(len(known.capability.groups))
    return np.stack([known.to_tools[known.groups == each].mean(axis=0) for each in groups], axis=1)


def _troubles(draw: np.random.Generator, tools: int) -> list[list[Trouble]]:
    found: list[list[Trouble]] = [[] for _ in range(tools)]
    for each in found:
        if draw.random() < 0.5:
            start = float(draw.uniform(2, 22))
            end = start + float(draw.uniform(2, 8))
            each.append(Trouble(start, end, float(draw.uniform(0, 0.4))))
    start = float(draw.uniform(2, 28))
    found[int(draw.integers(tools))].append(Trouble(start, start + 1, 0.0))
    return found
