"""Bounds on request bodies: size, time to arrive, and memory over all requests.

Pure ASGI, because Starlette's `BaseHTTPMiddleware` costs a task and a queue per request.
"""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.config.settings import LimitSettings
from service.http.problems import ProblemError, TooLargeError, UnavailableError, render


class BodyLimits:
    """Refuses bodies by their Content-Length at once, and by their bytes as they arrive.

    What was refused is not buffered. The connection stays open, so that a client which sends its
    whole body before it reads still gets the answer.
    """

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self._app = app
        self._limits = limits
        self._buffered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        # A length that is no number never gets here: the HTTP parser refuses it.
        if declared.isdigit() and int(declared) > self._limits.body_bytes:
            await render(self._too_large())(scope, receive, send)
            return
        body = _Body(self, receive)
        try:
            await self._app(scope, body.receive, send)
        finally:
            self._buffered -= body.size

    def take(self, body: "_Body", size: int) -> None:
        """Count `size` bytes more of one body."""
        if body.size + size > self._limits.body_bytes:
            raise self._too_large()
        if self._buffered + size > self._limits.buffered_bytes:
            raise UnavailableError(
                "busy", "too many large requests at this moment; send this one again shortly"
            )
        body.size += size
        self._buffered += size

    @property
    def timeout_s(self) -> float:
        """Seconds in which a body has to arrive."""
        return self._limits.body_timeout_s

    def _too_large(self) -> ProblemError:
        return TooLargeError(
            f"the body is larger than {self._limits.body_bytes:,} bytes; nothing was stored, "
            "send it in several requests"
        )


class _Body:
    """One request's body on its way in."""

    def __init__(self, limits: BodyLimits, receive: Receive) -> None:
        self._limits = limits
        self._receive = receive
        self._deadline: float | None = None
        self._complete = False
        self.size = 0

    async def receive(self) -> Message:
        if self._complete:  # what follows is only the news that the client went away
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._limits.timeout_s
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise ProblemError(
                408,
                "request_timeout",
                f"the body did not arrive within {self._limits.timeout_s:g} seconds",
                headers={"connection": "close"},
            ) from None
        if message["type"] == "http.request":
            self._limits.take(self, len(message.get("body", b"")))
            self._complete = not message.get("more_body", False)
        return message
