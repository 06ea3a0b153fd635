"""Requests of the service to itself, in its own process: the same routes, guards and log lines."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import httpx2
from starlette.types import ASGIApp

_within: ContextVar[Mapping[str, str]] = ContextVar("aftercall_within_request")

_NO_HEADERS: Final[Mapping[str, str]] = {}


@contextmanager
def on_behalf_of(headers: Mapping[str, str]) -> Iterator[None]:
    """Within, the service's own requests have these headers of the request they are made for."""
    token = _within.set(headers)
    try:
        yield
    finally:
        _within.reset(token)


class OwnTransport(httpx2.AsyncBaseTransport):
    """Hands requests to an app of this process.

    One client serves all that is asked, so what belongs to one request is no header of the client.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._transport = httpx2.ASGITransport(app=app)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        # As bytes: a host name may have come in Latin-1, as which the server reads headers.
        within = _within.get(_NO_HEADERS).items()
        request.headers.update({name.encode(): text.encode("latin-1") for name, text in within})
        return await self._transport.handle_async_request(request)
