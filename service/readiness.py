"""Whether the stores answer, and agree with each other."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from mongo.errors import StoreError
from mongo.protocol import LogStore
from mongo.records import StoreCounts
from retrieval.index.protocol import VectorIndex, VectorIndexError

_KEPT_S = 1.0
"""Supervisors and load balancers ask often, several at a time."""

_WITHIN_S = 2.0
"""A store that takes longer for one number serves nobody; who asks `/readyz` waits as long."""


class StoreWatch:
    """Asks the store when it is asked itself, so that it is right again as soon as the store is.

    Args:
        store: what is watched.
        within_s: seconds in which it has to answer.
        clock: tells the time, in seconds that only grow.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        within_s: float = _WITHIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._within_s = within_s
        self._clock = clock
        self._asked_at: float | None = None
        self._answered = False
        self._one_at_a_time = asyncio.Lock()

    async def answers(self) -> bool:
        """Whether it answered a moment ago, or does now."""
        async with self._one_at_a_time:
            if self._asked_at is None or self._clock() - self._asked_at >= _KEPT_S:
                self._answered = await self._asked()
                self._asked_at = self._clock()
            return self._answered

    async def _asked(self) -> bool:
        try:
            async with asyncio.timeout(self._within_s):
                await self._store.generation()
        except (StoreError, TimeoutError):
            return False
        return True


_KEPT_S_consistency = 5.0
"""A count of all vectors takes milliseconds on a large index, and status pages ask often."""

_LOOKS = 3
_BETWEEN_LOOKS_S = 0.2
"""What disagrees this many times in a row, while nothing moved, disagrees for good."""

_CURE = "run `aftercall rebuild`, which makes the vectors anew from the log"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a look at both stores has shown."""

    vectors: int | None
    """In the index, over all workspaces; None when it does not answer."""
    consistent: bool = True
    problem: str | None = None
    """A sentence with its cure; None while all is well."""


class VectorCheck:
    """Compares how many vectors there are with how many there should be.

    What it found is kept some seconds, as long as the log store counts the same.

    Args:
        store: counts documents, over all workspaces.
        index: counts vectors.
        seeds: entries of the shipped corpus, which have vectors and no documents.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        index: VectorIndex,
        seeds: int,
        clock: Callable[[], float] = time.monotonic,
        between_looks_s: float = _BETWEEN_LOOKS_S,
    ) -> None:
        self._store = store
        self._index = index
        self._seeds = seeds
        self._clock = clock
        self._between_looks_s = between_looks_s
        self._kept: tuple[float, StoreCounts, Agreement] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def look(self) -> Agreement:
        """How it is, at most some seconds ago.

        Raises:
            StoreError: when the log store does not answer.
        """
        async with self._one_at_a_time:
            counts = await self._store.counts()
            if self._kept is not None:
                at, of, agreement = self._kept
                if of == counts and self._clock() - at < _KEPT_S_consistency:
                    return agreement
            agreement = await self._compared()
            self._kept = (self._clock(), counts, agreement)
            return agreement

    async def _compared(self) -> Agreement:
        for left in reversed(range(_LOOKS)):
            before = await self._store.counts()
            try:
                vectors = await self._index.count()
            except VectorIndexError:
                return Agreement(
                    None, problem="the vector index does not answer; suggestions come from rules"
                )
            problem = disagreement(before, vectors, self._seeds)
            if problem is None or await self._store.counts() != before:
                break
            if left:
                await asyncio.sleep(self._between_looks_s)
        else:
            return Agreement(vectors, consistent=False, problem=problem)
        return Agreement(vectors)


def disagreement(counts: StoreCounts, vectors: int, seeds: int) -> str | None:
    """What is wrong with a number of vectors, with the cure; None when it can be explained.

    Whatever is queued may be there already, or not yet. Entries of an earlier version's corpus may
    be left in the index; nobody is answered from them.

    Args:
        counts: of the log store over all workspaces.
        vectors: in the index.
        seeds: entries of the shipped corpus.
    """
    expected = counts.documents + seeds
    if vectors < expected - counts.pending:
        missing = expected - counts.pending - vectors
        return f"{missing:,} documents have no vector although none is queued: {_CURE}"
    if vectors > expected + counts.pending + seeds:
        surplus = vectors - expected - counts.pending
        return f"{surplus:,} vectors are of documents that the log store does not know: {_CURE}"
    return None
