"""`/dashboard`: addresses, guards, and the frame around every page.

A page is made once for all requests within half a second. An open page asks again every second with
the ETag of its content, so that unchanged content is not sent.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, FastAPI
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from aftercall.models import PatternChange, RecommendationChange, window_dates
from mongo.errors import StoreError
from retrieval.knowledge.rows.registry import UnknownNameError
from service import dashboard
from service.api.patterns import change_pattern
from service.api.recommendations import change_recommendation
from service.context import Lifecycle
from service.dashboard import html as h
from service.dashboard.agents import show_agent, show_agents
from service.dashboard.boundaries import show_boundaries
from service.dashboard.criteria import show_criteria
from service.dashboard.failures import show_failures
from service.dashboard.keys import show_keys
from service.dashboard.look import (
    DATES,
    DEFAULT_WINDOW,
    MOVED,
    PREFIX,
    Look,
    NothingHereError,
    Shown,
)
from service.dashboard.overview import show_overview
from service.dashboard.pattern import show_pattern
from service.dashboard.recommendations import show_recommendations
from service.dashboard.sessions import show_session, show_sessions
from service.dashboard.suggestions import show_suggestions
from service.dashboard.tool import show_tool
from service.dashboard.tools import show_tools
from service.dashboard.try_it import show_try_it
from service.errors import (
    InvalidChangeError,
    NotFoundProblemError,
    ProblemError,
    UnavailableError,
    safe_message,
)
from service.keys import DEFAULT_WORKSPACE, InvalidTokenError
from service.lifecycle import Shared
from service.logs import log_event
from service.middleware import SESSION_COOKIE, access_of
from service.requests import check_scope, open_for
from service.settings import Settings
from service.version import VERSION

logger = logging.getLogger(__name__)
Answer = Callable[[Request], Awaitable[Response]]


class Page(NamedTuple):
    """One kind of page."""

    path: str
    """Below `/dashboard`, with parameters in FastAPI's form."""
    show: Callable[[Look], Awaitable[Shown]]
    nav: str | None = None
    """Its name in the navigation; None: it is not there."""


PAGES: Final = (
    Page("/", show_overview, "Overview"),
    Page("/failures", show_failures, "Failures"),
    Page("/patterns/{pattern_id}", show_pattern),
    Page("/tools", show_tools, "Tools"),
    Page("/tools/{tool_id:path}", show_tool),
    Page("/tool", show_tool),
    Page("/agents", show_agents, "Agents"),
    Page("/agents/{agent:path}", show_agent),
    Page("/recommendations", show_recommendations, "Recommendations"),
    Page("/sessions", show_sessions, "Sessions"),
    Page("/sessions/{session:path}", show_session),
    Page("/boundaries", show_boundaries, "Boundaries"),
    Page("/suggestions", show_suggestions, "Suggestions"),
    Page("/criteria", show_criteria, "Criteria"),
    Page("/try", show_try_it, "Try it"),
    Page("/keys", show_keys, "Keys"),
)
THEMES: Final = {"auto": "Auto", "light": "Light", "dark": "Dark"}
THEME_COOKIE: Final = "aftercall_theme"
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""Headers of every answer: nothing is loaded from elsewhere, a page holds no script, and no page
may frame one. Lengths of bars are styles that stand in the page."""
_SIGN_IN: Final = f"{PREFIX}/sign-in"
_SESSION_S: Final = 12 * 3600
"""Seconds until a reader has to sign in again."""
_LIVE_S: Final = 0.5
_MAX_NAME: Final = 120
"""Characters of an unknown workspace or window that a page repeats."""


class Dashboard:
    """Answers everything below `/dashboard`; one for each app."""

    def __init__(self, settings: Settings, lifecycle: Lifecycle) -> None:
        self._server = settings.server
        self._lifecycle = lifecycle
        self._shared = Shared()

    async def get(self, page: Page, request: Request) -> Response:
        """Return a page, one of its tables as a file, or 304 if nothing has changed."""
        key = access_of(request.scope), page.path, request.url.path, request.url.query
        look, shown = await self._shared.get(key, lambda: self._make_page(page, request), _LIVE_S)
        table = look.tables.get(request.query_params.get("table", "")) if look else None
        if table is not None:
            return _send_table(table, request.query_params.get("as", ""))
        return _frame_page(request, page, look, shown)

    async def post(self, request: Request) -> Response:
        """Return *Try it* with the answer to the form's question."""
        typed = await _read_form(request)
        [page] = (each for each in PAGES if each.show is show_try_it)
        asking = page._replace(show=lambda look: show_try_it(look, typed.get("call", "")))
        look, shown = await self._make_page(asking, request)
        return _frame_page(request, page, look, shown)

    async def change_review(self, request: Request) -> Response:
        """Note what is done about a pattern or a recommendation, and go back to that page."""
        typed = await _read_form(request)

        async def change_state(look: Look) -> Shown:
            check_scope(look.context.caller, "admin")
            asked = {"state": typed.get("state", ""), "reason": typed.get("reason") or None}
            try:
                if subject := typed.get("pattern"):
                    await change_pattern(look.space, subject, PatternChange.model_validate(asked))
                else:
                    change = RecommendationChange.model_validate(asked)
                    subject = typed.get("recommendation", "")
                    await change_recommendation(look.space, subject, change)
            except (UnknownNameError, InvalidChangeError, ValidationError) as error:
                what = "That is no state." if isinstance(error, ValidationError) else str(error)
                return _show_missing("Not changed", what, "Go back, and try again.", 422)
            return Shown("Changed", h.Html())

        look, shown = await self._make_page(Page("/review", change_state), request)
        back = typed.get("back", "")
        if look is None or shown.title != "Changed":
            return _frame_page(
                request, Page("/review", change_state), look, replace(shown, is_live=False)
            )
        self._shared.forget()
        is_here = h.is_local(back) and back.startswith(f"{PREFIX}/")
        return RedirectResponse(back if is_here else f"{PREFIX}/", 303, HEADERS)

    def signed_in(self, answer: Answer) -> Answer:
        """Return an answer for a reader who has signed in; others are sent to the sign-in page."""

        async def answer_viewer(request: Request) -> Response:
            if access_of(request.scope) is None and self._lifecycle.context is not None:
                return RedirectResponse(_SIGN_IN, 303, HEADERS)
            return await answer(request)

        return answer_viewer

    async def sign_in(self, request: Request) -> Response:
        """Start a session for a key; show the page for the key, again if the key is not valid."""
        context, refused = self._lifecycle.context, None
        if context is not None and request.method == "POST":
            try:
                access = context.keys.find_access(
                    (await _read_form(request)).get("key", "").strip()
                )
            except InvalidTokenError as error:
                refused = str(error)
            else:
                response = RedirectResponse(f"{PREFIX}/", 303, HEADERS)
                self._set_session(request, response, context.keys.make_session(access, _SESSION_S))
                return response
        content, status = (
            h.render_template("sign_in", refused=refused),
            200 if refused is None else 401,
        )
        shown = Shown("Sign in", content, status=status, is_live=False)
        return _frame_page(request, Page("/sign-in", show_overview), None, shown)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        if (context := self._lifecycle.context) is not None:
            await context.keys.end_session(request.cookies.get(SESSION_COOKIE, ""))
        response = RedirectResponse(_SIGN_IN, 303, HEADERS)
        self._set_session(request, response, "")
        return response

    def _set_session(self, request: Request, response: Response, session: str) -> None:
        response.set_cookie(
            SESSION_COOKIE,
            session,
            max_age=_SESSION_S if session else 0,
            path=PREFIX,
            secure="https" in (request.url.scheme, urlsplit(self._server.public_url or "").scheme),
            httponly=True,
            samesite="strict",
        )

    async def _make_page(self, page: Page, request: Request) -> tuple[Look | None, Shown]:
        look: Look | None = None
        try:
            look = await self._open_look(request)
            look = _check_look(look)
            return look, await page.show(look)
        except NothingHereError as error:
            return look, _show_missing("Not found", error.what, error.cure, 404)
        except UnavailableError as error:
            what = f"{safe_message(error.message).capitalize()}."
            return look, _show_missing(
                "Aftercall", what, "This page loads itself again.", error.status_code
            )
        except ProblemError as error:
            cure = "Sign out, and sign in with another key."
            return None, _show_missing(
                "Not shown", safe_message(error.message), cure, error.status_code
            )
        except Exception as error:  # noqa: BLE001  # the reader gets a page for any error
            log_event(logger, "page not shown", level="error", error=error, page=page.path)
            return look, _show_missing(
                "Not shown",
                "This page cannot be shown at the moment.",
                "It loads itself again; the service's log says why.",
                503 if isinstance(error, StoreError) else 500,
            )

    async def _open_look(self, request: Request) -> Look:
        context = open_for(request, "read")
        access = context.caller
        query, named = dict(request.query_params), dict(request.path_params)
        if MOVED in query:
            named = {name: query[MOVED] if each == "-" else each for name, each in named.items()}
        known = await self._shared.get("workspaces", context.store.events.read_heads, _LIVE_S)
        home = DEFAULT_WORKSPACE if access.sees_workspace(DEFAULT_WORKSPACE) else access.workspace
        return Look(
            context=context,
            workspace=query.get("workspace", home),
            window=DEFAULT_WINDOW,
            path=request.url.path.removeprefix(PREFIX) or "/",
            query=query,
            named=named,
            workspaces=sorted(each for each in {home, *known} if access.sees_workspace(each)),
            shared=self._shared,
        )


def install_dashboard(app: FastAPI, settings: Settings, lifecycle: Lifecycle) -> None:
    """Add all routes below `/dashboard`; none of them is in the OpenAPI document."""
    inside = Dashboard(settings, lifecycle)
    router = APIRouter(prefix=PREFIX, include_in_schema=False)
    router.add_api_route("/static/{name}", _send_asset, methods=["GET"])
    router.add_api_route("/try", inside.signed_in(inside.post), methods=["POST"])
    router.add_api_route("/review", inside.signed_in(inside.change_review), methods=["POST"])
    router.add_api_route("/sign-in", inside.sign_in, methods=["GET", "POST"])
    router.add_api_route("/sign-out", inside.sign_out, methods=["POST"])
    for page in (*PAGES, Page("/{rest:path}", _refuse_page)):
        get = inside.signed_in(partial(inside.get, page))
        for path in (page.path, "") if page.path == "/" else (page.path,):
            router.add_api_route(path, get, methods=["GET"])
    app.router.routes += router.routes


async def _read_form(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True, errors="replace"))


async def _refuse_page(_: Look) -> Shown:
    raise NothingHereError("There is no such page.", "See the navigation for those there are.")


def _check_look(look: Look) -> Look:
    # Another workspace or window in its place would mislead the reader.
    if look.workspace not in look.workspaces:
        raise NothingHereError(
            f"There is no workspace {look.workspace[:_MAX_NAME]!r}.",
            "Choose one of those there are.",
        )
    dates = [look.query.get(each, "") for each in DATES]
    asked = "..".join(dates) if any(dates) else look.query.get("window", DEFAULT_WINDOW)
    try:
        window_dates(asked)
    except ValueError as error:
        cure = str(error)
        raise NothingHereError(
            f"There is no time range {asked[:_MAX_NAME]!r}.", f"{cure[:1].upper()}{cure[1:]}."
        ) from error
    return replace(look, window=asked)


def _show_missing(title: str, what: str, cure: str, status: int) -> Shown:
    return Shown(title, h.render_template("missing", what=what, cure=cure), status=status)


def _send_table(table: h.DataTable, kind: str) -> Response:
    is_json = kind == "json"
    name = table.file_name("json" if is_json else "csv")
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(
        table.write_json() if is_json else table.write_csv(),
        media_type="application/json" if is_json else "text/csv",
        headers=HEADERS | headers,
    )


@cache
def _read_assets() -> dict[str, tuple[str, bytes]]:
    """Return files by names that change with their content, so that browsers may keep them."""
    folder, found = Path(dashboard.__file__).parent / "static", {}
    for path, kind in ((folder / "dashboard.css", "text/css"),
                       (folder / "dashboard.js", "text/javascript")):  # fmt: skip
        content = path.read_bytes()
        found[f"dashboard.{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"] = kind, content
    return found


async def _send_asset(request: Request) -> Response:
    if (asset := _read_assets().get(request.path_params["name"])) is None:
        raise NotFoundProblemError("there is no such file")
    kind, content = asset
    kept = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=kind, headers=HEADERS | kept)


def _frame_page(request: Request, page: Page, look: Look | None, shown: Shown) -> Response:
    """Return the whole document, or 304 if the browser has it already."""
    chosen = request.cookies.get(THEME_COOKIE, "auto")
    style, script = _read_assets()
    html = h.render_template(
        "frame",
        shown=shown,
        look=look,
        page=page,
        pages=PAGES,
        prefix=PREFIX,
        theme=chosen if chosen in THEMES else "auto",
        themes=THEMES,
        style=style,
        script=script,
        is_signed_in=SESSION_COOKIE in request.cookies and page.path != "/sign-in",
        version=VERSION,
    )
    etag = f'"{hashlib.sha256(html.encode()).hexdigest()[:24]}"'
    headers = {**HEADERS, "etag": etag, "cache-control": "no-cache, private"}
    if shown.status == 200 and request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    if shown.status == 503:
        headers["retry-after"] = "1"
    return HTMLResponse(html, status_code=shown.status, headers=headers)
