"""What the changes of tools and promotions share: one at a time, and what they are refused for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class InvalidChangeError(ValueError):
    """The change is wrong by itself, such as a path that leaves its folder."""


class RefusedError(ValueError):
    """The change makes no sense here, such as a circle of `evolvedFrom`; the message says why."""


class NothingBeforeError(LookupError):
    """There is nothing to go back to."""


class NotPromotedError(LookupError):
    """Nothing is promoted in the namespace."""


class Changes:
    """Lets one change look at what there is and write before the next one looks.

    Without it two puts at once could close a circle that neither sees.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def one_at_a_time(self) -> AsyncIterator[None]:
        """Until the block ends, no other change of tools or promotions begins."""
        async with self._lock:
            yield
