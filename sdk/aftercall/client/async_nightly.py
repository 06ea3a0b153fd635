"""The methods of `AsyncClient` for failure patterns."""

from typing import TypeVar

from aftercall.client import nightly_endpoints as endpoints
from aftercall.client.requests import Request
from aftercall.models import ErrorCategory, FailurePattern

T = TypeVar("T")


class AsyncNightlyMethods:
    """Base of `AsyncClient`: one method per endpoint of `nightly_endpoints`."""

    async def send(self, request: Request[T]) -> T:
        """Send a request; the clients say how."""
        raise NotImplementedError

    async def patterns(
        self,
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
        category: ErrorCategory | None = None,
        limit: int | None = None,
    ) -> list[FailurePattern]:
        """Ways in which tools fail, most failures first; as of the latest nightly run.

        Args:
            tool_name: only those of this tool, by the name of its calls.
            server_name: only those of tools of this server.
            category: only those of this kind.
            limit: most patterns to return, 1 to 1,000; the service's own number when None.
        """
        return await self.send(endpoints.patterns(tool_name, server_name, category, limit))
