"""`/dashboard`: from the service's app to NiceGUI's, which is opened when somebody first asks.

NiceGUI costs a third of a second and some 28 MiB, so it is imported in a thread with the first
request and never where nobody looks. It keeps its state by process, not by app, so one app of a
process has the dashboard at a time.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Final, NamedTuple, Protocol

from starlette.datastructures import Headers, MutableHeaders, URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import Lifecycle
from service.dashboard.notice import notice
from service.dashboard.policy import (
    guarded_headers,
    own_hosts,
    refuse_embedding,
    refuse_other_origin,
)
from service.dashboard.prefix import PAGE_TEMPLATE, PREFIX, QUIET_TEMPLATES, SOCKET, template_of
from service.dashboard.viewing import VIEWING, Viewing
from service.errors import ProblemError, UnavailableError, render
from service.logs import log_event
from service.settings import Settings

logger = logging.getLogger(__name__)

MAX_VIEWERS: Final = 100
"""Pages that are open at a time; each keeps its elements, some 1 MiB, in memory."""

_MAX_SOCKETS: Final = 2 * MAX_VIEWERS
"""A page that reconnects has two for a moment."""

_ASGI: Final = frozenset({
    "type", "asgi", "http_version", "server", "client", "scheme", "root_path", "headers", "state",
    "method", "path", "raw_path", "query_string", "subprotocols", "extensions",
})  # fmt: skip
"""What the inner app gets of the outer one's scope: nothing that routing put there."""


class OpenDashboard(Protocol):
    """What `service.dashboard.opening` gives once NiceGUI is there."""

    @property
    def app(self) -> ASGIApp:
        """Answers everything below `/dashboard`."""
        ...

    def viewers(self) -> int:
        """Pages that are open, those that nobody looks at any more soon left out."""
        ...


class _Template(NamedTuple):
    """What the log and the metrics call a request's route."""

    path_format: str


class DashboardMount(BaseRoute):
    """A route for everything below `/dashboard`."""

    def __init__(self, settings: Settings, lifecycle: Lifecycle) -> None:
        self._hosts = own_hosts(settings.server)
        self._lifecycle = lifecycle
        self._viewing = Viewing(lifecycle)
        self._opened: OpenDashboard | None = None
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._sockets = 0

    async def close(self) -> None:
        """Leave NiceGUI, if it was opened; once nothing is served any more."""
        await self._viewing.close()
        self._opened = None
        await self._stack.aclose()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is below `/dashboard`."""
        if scope["type"] not in ("http", "websocket"):
            return Match.NONE, {}
        path: str = scope["path"]
        is_here = path == PREFIX or path.startswith(f"{PREFIX}/")
        return (
            (Match.FULL, {"route": _Template(template_of(path))}) if is_here else (Match.NONE, {})
        )

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """No route here has a name."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or one socket from its opening to its end."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        path: str = scope["path"]
        is_page = template_of(path) == PAGE_TEMPLATE
        guarded = _Guarded(scope, send)
        try:
            _refuse_other_methods(scope)
            headers = Headers(scope=scope)
            refuse_embedding(headers.get("sec-fetch-site"), headers.get("sec-fetch-dest"))
            if template_of(path) == SOCKET:
                self._refuse_other_origin(scope)
            opened = await self._open()
            if is_page and opened.viewers() >= MAX_VIEWERS:
                raise UnavailableError(
                    "too_many_viewers",
                    f"{MAX_VIEWERS} pages of the dashboard are open; close some, then load this "
                    "one again",
                    retry_after_s=10,
                )
        except ProblemError as problem:
            wants_page = is_page and "text/html" in Headers(scope=scope).get("accept", "")
            answer = notice(problem) if wants_page else render(problem, scope)
            await answer(scope, receive, guarded.send)
            return
        await opened.app(self._inner(scope), receive, guarded.send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if template_of(scope["path"]) != SOCKET or self._sockets >= _MAX_SOCKETS:
                raise UnavailableError("no_socket", "there is no socket here")
            self._refuse_other_origin(scope)
            opened = await self._open()
        except ProblemError:
            await receive()  # the opening
            await send({"type": "websocket.close", "code": 1008})
            return
        self._sockets += 1
        try:
            await opened.app(self._inner(scope), receive, send)
        except Exception as error:  # noqa: BLE001  # such as for what is no message at all
            log_event(logger, "socket failed", level="warning", error=error)
            with suppress(RuntimeError):  # it is closed already
                await send({"type": "websocket.close", "code": 1002})
        finally:
            self._sockets -= 1

    def _refuse_other_origin(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        refuse_other_origin(headers.get("origin"), headers.get("host", ""), self._hosts)

    async def _open(self) -> OpenDashboard:
        if self._lifecycle.context is None:
            raise UnavailableError(
                "not_ready", f"the service is {self._lifecycle.phase}; try again shortly"
            )
        async with self._opening:
            if self._opened is None:
                self._opened = await self._opened_now()
            return self._opened

    async def _opened_now(self) -> OpenDashboard:
        try:
            # Others are answered while it is imported.
            enter = await asyncio.to_thread(_import_opening)
            return await self._stack.enter_async_context(enter())
        except ProblemError:
            raise
        except Exception as error:
            log_event(logger, "dashboard did not open", level="error", error=error)
            raise UnavailableError(
                "dashboard_unavailable",
                "the dashboard could not be opened, all else works; the service's log says why",
                retry_after_s=30,
            ) from error

    def _inner(self, scope: Scope) -> Scope:
        inner = {name: value for name, value in scope.items() if name in _ASGI}
        # Where it stands below a proxy is not for the caller to say: it is put into the page.
        inner["headers"] = [
            (name, value) for name, value in scope["headers"] if name != b"x-forwarded-prefix"
        ]
        if scope["path"] == PREFIX:
            inner |= {"path": f"{PREFIX}/", "raw_path": f"{PREFIX}/".encode()}
        inner[VIEWING] = self._viewing
        return inner


class _Guarded:
    """Sends with the headers that keep a page to itself."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._path: str = scope["path"]
        self._host = Headers(scope=scope).get("host", "")
        self._send = send

    async def send(self, message: Message) -> None:
        """One part of the answer."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            headers.update(guarded_headers(self._host))
            template = template_of(self._path)
            is_file = template in QUIET_TEMPLATES and template != SOCKET
            if message["status"] == 200 and is_file:
                # Their addresses carry a version, so they never change.
                headers["cache-control"] = "public, max-age=31536000, immutable"
            message = {**message, "headers": headers.raw}
        await self._send(message)


def _refuse_other_methods(scope: Scope) -> None:
    allowed = ("GET", "POST") if template_of(scope["path"]) == SOCKET else ("GET",)
    if scope["method"] not in allowed:
        raise ProblemError(
            405,
            "method_not_allowed",
            f"this path takes {', '.join(allowed)}, not {scope['method'][:20]}",
            headers={"allow": ", ".join(allowed)},
        )


def _import_opening() -> Callable[[], AbstractAsyncContextManager[OpenDashboard]]:
    from service.dashboard.opening import (  # noqa: PLC0415  # imports NiceGUI
        open_dashboard,
    )

    return open_dashboard
