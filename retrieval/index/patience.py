"""How long an answer waits for an index that hangs: a moment once, and then not at all.

A server that does not answer at all keeps every call until its timeout, which is long, since
writes may take long. Who answers a question does without the index instead (`retrieval.suggest`).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from retrieval.index.protocol import VectorIndexUnavailableError

SEARCH_WITHIN_S = 1.5
"""A search takes milliseconds. What is not answered by then will not be in time."""

_LOOK_AGAIN_S = 1.0
"""After one that was not answered the others are refused at once, but for one in so long, which
looks whether it is over."""

T = TypeVar("T")


class Patience:
    """Bounds calls in time, and in number while none is answered.

    Args:
        within_s: seconds that a call has.
        clock: tells the time, in seconds that only grow.
    """

    def __init__(
        self, within_s: float = SEARCH_WITHIN_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._within_s = within_s
        self._clock = clock
        self._looked_at: float | None = None
        """When the latest look began, while nothing is answered; None while all is well."""

    async def wait_for(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a call returns, if it does in time; it is cancelled else.

        Raises:
            VectorIndexUnavailableError: it does not, or the last ones did not.
        """
        if self._looked_at is not None:
            if self._clock() - self._looked_at < self._within_s + _LOOK_AGAIN_S:
                raise _hangs()
            self._looked_at = self._clock()
        try:
            async with asyncio.timeout(self._within_s):
                result = await call()
        except TimeoutError:
            self._looked_at = self._clock() - self._within_s
            raise _hangs() from None
        self._looked_at = None
        return result


def _hangs() -> VectorIndexUnavailableError:
    return VectorIndexUnavailableError(
        "the vector index takes a connection and does not answer: see that Qdrant runs and is not "
        "overloaded; it is asked again every second"
    )
