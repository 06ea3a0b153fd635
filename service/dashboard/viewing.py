"""What the pages of one app share: its services, what was read lately, and who looks."""

from typing import Final

from service.context import Context, Lifecycle
from service.dashboard.live import Watchers
from service.dashboard.shared import SharedReads
from service.errors import UnavailableError

VIEWING: Final = "aftercall.viewing"
"""Its name in the scope of a request."""


class Viewing:
    """One for each app."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.reads = SharedReads()
        self.watchers = Watchers()

    @property
    def services(self) -> Context:
        """The open services.

        Raises:
            UnavailableError: while they are being opened or closed.
        """
        services = self._lifecycle.context
        if services is None:
            raise UnavailableError("not_ready", f"the service is {self._lifecycle.phase}")
        return services

    async def close(self) -> None:
        """Stop watching; the services may be closed then."""
        await self.watchers.close()
