"""Whether the stores answer, and agree: a document without a vector is found by nobody."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import TTLCache

from mongo.errors import StoreError
from mongo.protocol import Store
from retrieval.index.protocol import VectorIndex, VectorIndexError
from retrieval.log import StoreCounts, counts

T = TypeVar("T")

_LOOKS = 3
_BETWEEN_LOOKS_S = 0.2
"""What disagrees this many times in a row, while nothing moved, disagrees for good."""

_CURE = "run `aftercall rebuild`, which makes the vectors anew from the log"


class _Lately(Generic[T]):
    """Keeps an answer for a while; one asks at a time, and the others wait for it."""

    def __init__(self, kept_s: float, clock: Callable[[], float]) -> None:
        self._kept: TTLCache[Hashable, T] = TTLCache(1, kept_s, timer=clock)
        self._lock = asyncio.Lock()

    async def answer(self, ask: Callable[[], Awaitable[T]], about: Hashable = None) -> T:
        async with self._lock:
            if about not in self._kept:
                self._kept[about] = await ask()
            return self._kept[about]


class StoreWatch:
    """Asks the store when it is asked itself, so that it is right again as soon as the store is.

    Supervisors and load balancers ask often, several at a time: an answer is kept for a second.

    Args:
        store: what is watched.
        within_s: seconds in which it has to answer; a slower one serves nobody.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        store: Store,
        *,
        within_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._within_s = within_s
        self._lately = _Lately[bool](1.0, clock)

    async def answers(self) -> bool:
        """Whether it answered a moment ago, or does now."""
        return await self._lately.answer(self._asked)

    async def _asked(self) -> bool:
        try:
            async with asyncio.timeout(self._within_s):
                await self._store.metadata.get("generation")
        except (StoreError, TimeoutError):
            return False
        return True


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

    A count of all vectors takes milliseconds on a large index, and status pages ask often: what it
    found is kept for five seconds, as long as the log store counts the same.

    Args:
        store: counts documents, over all workspaces.
        index: counts vectors.
        seeds: entries of the shipped corpus, which have vectors and no documents.
    """

    def __init__(
        self,
        *,
        store: Store,
        index: VectorIndex,
        seeds: int,
        clock: Callable[[], float] = time.monotonic,
        between_looks_s: float = _BETWEEN_LOOKS_S,
    ) -> None:
        self._store = store
        self._index = index
        self._seeds = seeds
        self._between_looks_s = between_looks_s
        self._lately = _Lately[Agreement](5.0, clock)

    async def look(self) -> Agreement:
        """How it is, at most some seconds ago.

        Raises:
            StoreError: when the log store does not answer.
        """
        return await self._lately.answer(self._compared, await counts(self._store))

    async def _compared(self) -> Agreement:
        for left in reversed(range(_LOOKS)):
            before = await counts(self._store)
            try:
                vectors = await self._index.count()
            except VectorIndexError:
                return Agreement(
                    None, problem="the vector index does not answer; suggestions come from rules"
                )
            problem = disagreement(before, vectors, self._seeds)
            if problem is None or await counts(self._store) != before:
                return Agreement(vectors)
            if left:
                await asyncio.sleep(self._between_looks_s)
        return Agreement(vectors, consistent=False, problem=problem)


def disagreement(counts: StoreCounts, vectors: int, seeds: int) -> str | None:
    """What is wrong with a number of vectors, with the cure; None when it can be explained.

    What is queued may be there already, or not yet. Entries of an earlier version's corpus may be
    left in the index; nobody is answered from them.

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
