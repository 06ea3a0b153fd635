"""From a request to a page: who looks at what, and what is said when it cannot be shown."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from aftercall.models import UsageWindow
from mongo.errors import StoreError
from service.dashboard.leaving import free_when_left
from service.dashboard.look import DEFAULT_WINDOW, MOVED, WINDOWS, Look
from service.dashboard.notice import notice
from service.dashboard.page import NothingHereError, Page
from service.dashboard.prefix import PREFIX
from service.dashboard.shell import Shell, missing
from service.dashboard.theme import theme_of
from service.dashboard.viewing import VIEWING, Viewing
from service.errors import UnavailableError
from service.logs import log_event
from service.routes.parameters import DEFAULT_WORKSPACE

logger = logging.getLogger(__name__)

Shown = Callable[[Request], Awaitable[Response | None]]

_MAX_NAME: Final = 120

_UNREADABLE: Final = UnavailableError(
    "not_readable",
    "the store cannot be read at the moment, the service's log says why; this page is loaded "
    "again by itself",
    retry_after_s=10,
)


def show(page: Page, pages: Sequence[Page]) -> Shown:
    """What builds `page` for a request."""

    async def shown(request: Request) -> Response | None:
        client = ui.context.client
        try:
            look = await _look(request)
        except Exception as error:  # noqa: BLE001  # a store that is away, or services that close
            log_event(logger, "page not begun", level="error", error=error, page=page.path)
            return notice(_UNREADABLE)
        shell = Shell(page, look, pages, theme_of(request.cookies))
        look.show_state()
        free_when_left(look)
        try:
            _refuse_unknown(look)
            with shell.main:
                await page.build(look)
        except NothingHereError as error:
            client.status_code = 404
            missing(shell, error.what, error.cure)
        except Exception as error:  # noqa: BLE001  # whatever it is, its reader gets a page
            log_event(logger, "page not built", level="error", error=error, page=page.path)
            client.status_code = 503 if isinstance(error, StoreError | UnavailableError) else 500
            missing(
                shell,
                "This page cannot be shown at the moment.",
                "Load it again in a moment; the service's log says why.",
            )
        return None

    return shown


def _refuse_unknown(look: Look) -> None:
    # Shown as another one, it would be believed: a link says what it is a link to.
    if look.workspace not in look.workspaces:
        raise NothingHereError(
            f"There is no workspace {look.workspace[:_MAX_NAME]!r}.",
            "Choose one of those there are.",
        )
    asked = look.params.get("window", look.window)
    if asked != look.window:
        raise NothingHereError(
            f"There is no time range {asked[:_MAX_NAME]!r}.", f"Choose one of {', '.join(WINDOWS)}."
        )


def show_nothing(pages: Sequence[Page]) -> Shown:
    """What answers where there is no page."""

    async def build(_: Look) -> None:
        raise NothingHereError("There is no such page.", "See the navigation for those there are.")

    return show(Page(path="", title="Not found", build=build), pages)


async def _look(request: Request) -> Look:
    viewing: Viewing = request.scope[VIEWING]
    services = viewing.services
    params = {**request.query_params, **request.path_params}
    moved = request.query_params.get(MOVED)
    if moved is not None:
        params |= {name: moved for name, value in request.path_params.items() if value == "-"}
    known, _ = await viewing.reads.get("workspaces", services.store.workspaces, version=0)
    workspaces = sorted({DEFAULT_WORKSPACE, *known})
    look = Look(
        services=services,
        workspace=params.get("workspace", DEFAULT_WORKSPACE),
        window=_window(params.get("window")),
        params=params,
        viewing=viewing,
        client=ui.context.client,
        path=str(request.scope["path"]).removeprefix(PREFIX) or "/",
        workspaces=workspaces,
    )
    look.begin()
    return look


def _window(asked: str | None) -> UsageWindow:
    return next((window for window in WINDOWS if window == asked), DEFAULT_WINDOW)
