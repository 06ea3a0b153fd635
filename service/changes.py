"""What the changes of tools and promotions share: one at a time, and what they are refused for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LINE_BREAKS = "\n\r"
"""What no id and no namespace may hold."""


class RefusedError(ValueError):
    """The change makes no sense here, such as a circle of `evolvedFrom`; the message says why."""


def check_addressable(name: str, what: str) -> None:
    """A namespace stands in the paths of requests, and no path of ours holds a line break.

    Raises:
        RefusedError: it could not be asked for; `what` says which name it is.
    """
    if any(each in name for each in LINE_BREAKS):
        raise RefusedError(
            f"{what}: must not hold a line break, for it could not be asked for; "
            "write it on one line"
        )


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
