"""Paths that hold a line break are refused, before any route looks at them.

An id or a namespace is taken from the path, where it may hold nearly anything. But a pattern's `.`
is no line break, and its `$` overlooks one at the end: `DELETE /tools/a%0A` would delete `a`.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.changes import LINE_BREAKS
from service.http.problems import InvalidRequestError, render


class PathGuard:
    """Pure ASGI: 422 for a path with a line break, percent-encoded or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and any(each in scope["path"] for each in LINE_BREAKS):
            problem = InvalidRequestError(
                "the path holds a line break, which no id and no namespace may; "
                "send it without (%0A, %0D)"
            )
            await render(problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)
