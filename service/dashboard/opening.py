"""NiceGUI, opened: its app with our pages, its tasks running until it is left.

Its state is the process's own, so a second app of the process has to wait until the first one has
left. It writes no file, as nothing is put into its storage, and asks nobody: its assets are local.
"""

import inspect
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

import socketio
from fastapi import FastAPI
from nicegui import Client, core, ui
from nicegui.classes import Classes
from nicegui.props import Props
from nicegui.style import Style
from starlette.responses import Response
from starlette.types import ASGIApp

from service.dashboard.pages import PAGES
from service.dashboard.prefix import PREFIX
from service.dashboard.shell import FAVICON, style_name, style_sheet
from service.dashboard.showing import show, show_nothing
from service.errors import UnavailableError
from service.logs import log_event

logger = logging.getLogger(__name__)

_UNSEEN_S: Final = 10.0
"""Seconds after which a page that never opened its socket is forgotten when there are many."""

_MANY: Final = 40

_IN_USE = threading.Lock()


@dataclass(frozen=True, slots=True)
class Opened:
    """NiceGUI's app below `/dashboard`."""

    app: ASGIApp

    def viewers(self) -> int:
        """Pages that are open; when there are many, those that nobody looks at are dropped."""
        if len(Client.instances) >= _MANY:
            Client.prune_instances(client_age_threshold=_UNSEEN_S)
        return len(Client.instances)


@asynccontextmanager
async def open_dashboard() -> AsyncIterator[Opened]:
    """The dashboard's app, until the block ends.

    Raises:
        UnavailableError: another app of this process has it.
    """
    if not _IN_USE.acquire(blocking=False):
        raise UnavailableError(
            "dashboard_in_use", "another service of this process has the dashboard", retry_after_s=5
        )
    try:
        host = _host()
        core.sio.eio.start_service_task = True  # its task ended with the loop it was begun on
        async with host.router.lifespan_context(host):
            yield Opened(host)
            await core.sio.eio.shutdown()
            for client in list(Client.instances.values()):
                client.delete()
    finally:
        _IN_USE.release()


@cache
def _host() -> FastAPI:
    """NiceGUI's app on one of ours, with our pages; once in a process."""
    _speak_as_we_do()
    _bound_messages()
    _tell_signatures()
    host = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )

    @core.app.get("/_nicegui/{name:path}", include_in_schema=False)
    async def no_file() -> Response:
        # A page that says so would be one more to keep, and these are not counted.
        return Response(status_code=404)

    @host.get(f"{PREFIX}/static/{{name:path}}", include_in_schema=False)
    async def style(name: str) -> Response:
        if name != style_name():
            return Response(status_code=404)
        return Response(style_sheet(), media_type="text/css")

    for page in PAGES:
        ui.page(page.path, response_timeout=20)(show(page, PAGES))
    ui.page("/{path:path}")(show_nothing(PAGES))
    ui.run_with(
        host,
        mount_path=PREFIX,
        title="Aftercall",
        favicon=FAVICON,
        language="en-GB",
        dark=False,  # our own style sheet has both themes
        tailwind=False,
        binding_refresh_interval=None,
        gzip_middleware_factory=None,  # it would pack a megabyte on the event loop
        show_welcome_message=False,
        message_history_length=100,
    )
    # The mount lets in the service's own pages only, so nobody is told that others may read along.
    core.sio.eio.cors_allowed_origins = []
    return host


class _TextOnly(socketio.packet.Packet):  # type: ignore[misc]  # it says no types
    """A message of a page: never one in parts, which are all kept until the last one comes."""

    def decode(self, encoded_packet: str) -> int:
        """As it is, the number of parts that follow: none.

        Raises:
            ValueError: parts are to follow, or it is no message.
        """
        parts: int = super().decode(encoded_packet)
        if parts or self.packet_type in (socketio.packet.BINARY_EVENT, socketio.packet.BINARY_ACK):
            raise ValueError("pages send text alone")
        return parts


def _bound_messages() -> None:
    """One message of a socket after the other, none in parts; so nothing piles up."""
    core.sio.packet_class = _TextOnly
    core.sio.async_handlers = False


class _Spoken(logging.Handler):
    """Their logs say addresses, and what browsers ask them to say; of these nothing is told."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None or record.exc_info[1] is None:
            return
        if record.name == "nicegui":
            log_event(logger, "dashboard failed", level="error", error=record.exc_info[1])
        else:  # whoever sends it may send it a thousand times a second
            log_event(logger, "message refused", level="debug", error=record.exc_info[1])


def _tell_signatures() -> None:
    """NiceGUI inspects three handlers of every element that is made: half of the time of a page.

    A signature that stands there is taken as it is, which `inspect` has for such cases.
    """
    for kind in (Classes, Props, Style):
        handler = vars(kind).get("_update")  # its own name for it; without one nothing is lost
        if handler is not None:
            handler.__signature__ = inspect.signature(handler)


def _speak_as_we_do() -> None:
    for name in ("nicegui", "socketio.server", "engineio.server"):
        theirs = logging.getLogger(name)
        theirs.handlers[:] = [_Spoken()]
        theirs.propagate = False
