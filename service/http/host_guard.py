"""Requests under a foreign host name are refused: the defence against DNS rebinding.

A page on the web can let its own name resolve to 127.0.0.1 and then read from a service there as if
it were its own. The Host header still carries the page's name.
"""

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.problems import ProblemError, render

ANY_HOST = "*"

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def hosts_to_answer(host: str, configured: Sequence[str]) -> frozenset[str]:
    """The host names to answer when listening on `host`, lower case and without port.

    On an address that others can reach, the names they use are not known here, so without a setting
    any name is answered.
    """
    if configured:
        return frozenset(name.lower() for name in configured)
    if is_loopback(host):
        return frozenset((*_LOOPBACK_NAMES, host.lower()))
    return frozenset((ANY_HOST,))


class HostGuard:
    """Pure ASGI: 403 for a request, or a socket, whose Host header names another host."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] in ("http", "websocket") and ANY_HOST not in self._hosts:
            name = _without_port(Headers(scope=scope).get("host", ""))
            if name not in self._hosts and scope["type"] == "websocket":
                await receive()  # the opening; closing before it is accepted is answered with 403
                await send({"type": "websocket.close", "code": 1008})
                return
            if name not in self._hosts:
                problem = ProblemError(
                    403,
                    "host_not_allowed",
                    "this service does not answer under that host name; "
                    "name it in AFTERCALL_SERVER_ALLOWED_HOSTS",
                )
                await render(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
