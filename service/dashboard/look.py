"""One look at the dashboard: whose services, which workspace and window, and what the address says.

"Path" is everywhere one below `/dashboard`, as in `/tools`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, TypeVar, get_args
from urllib.parse import quote, urlencode

from nicegui import Client

from aftercall.models import UsageWindow
from service.context import Context
from service.dashboard.live import Viewer
from service.dashboard.prefix import PREFIX
from service.dashboard.viewing import Viewing
from service.routes.parameters import DEFAULT_WORKSPACE

Read = TypeVar("Read")

WINDOWS: Final[tuple[UsageWindow, ...]] = get_args(UsageWindow)

DEFAULT_WINDOW: Final[UsageWindow] = "24h"

MOVED: Final = "at"
"""Query parameter with what cannot stand in a path: browsers resolve `..` before they ask."""


@dataclass(frozen=True, slots=True)
class State:
    """From when the figures of a page are."""

    at: datetime
    is_complete: bool = True
    """False while what came in lately is still being counted."""
    is_stale: bool = False
    """Whether the latest attempt to bring the page up to date failed."""


@dataclass(eq=False, slots=True)
class Look:
    """What a page gets to build itself with."""

    services: Context
    workspace: str
    window: UsageWindow
    params: Mapping[str, str]
    """Parameters of path and query, as text."""
    viewing: Viewing
    client: Client
    path: str
    """This page's own, as it was asked for."""
    workspaces: Sequence[str] = ()
    """All there are, in order."""
    on_title: Callable[[str], None] = lambda _: None
    on_state: Callable[[State], None] = lambda _: None
    """What shows a state; the frame sets it."""
    _seen: int = 0
    _begun_after: float = 0.0
    _state: State = field(default_factory=lambda: State(datetime.now(UTC)))

    def link(self, path: str, **query: str) -> str:
        """An address that keeps window and workspace, percent-encoded.

        Args:
            path: unencoded, such as `/tools/` and a tool's id; whatever it holds, the address leads
                to that page.
            query: further parameters; `window` and `workspace` replace those of this page.
        """
        path, moved = _in_path(path)
        kept = {"window": self.window, "workspace": self.workspace}
        asked = {**moved, **kept, **query}
        if asked["window"] == DEFAULT_WINDOW:
            del asked["window"]
        if asked["workspace"] == DEFAULT_WORKSPACE:
            del asked["workspace"]
        text = f"?{urlencode(asked, errors='replace')}" if asked else ""
        return f"{PREFIX}{quote(path, safe='/', errors='replace')}{text}"

    def again(self, **query: str) -> str:
        """This page with other parameters, such as another window."""
        own = {
            name: value
            for name, value in self.client.request.query_params.items()
            if name not in ("window", "workspace")
        }
        return self.link(self.path, **(own | query))

    async def shared(self, key: str, read: Callable[[], Awaitable[Read]]) -> Read:
        """What `read` returns, or returned for another viewer within the last second.

        Args:
            key: names what is read, its arguments included; workspace and window need not be in it.
            read: reads it; what it returns is shown to several, so nobody may change it.
        """
        news = self.services.statistics.news
        result, version = await self.viewing.reads.get(
            (self.workspace, self.window, key),
            read,
            version=news.version(self.workspace),
            begun_after=self._begun_after,
        )
        self._seen = min(self._seen, version)
        return result

    def title(self, title: str) -> None:
        """Call this page by what it is about: its heading, and the browser's name for it."""
        self.on_title(title)

    def as_of(self, at: datetime, *, is_complete: bool = True) -> None:
        """Say from when the figures are, and whether what came lately is still being counted."""
        self._state = State(at, is_complete)
        self.on_state(self._state)

    def live(self, update: Callable[[], Awaitable[None]]) -> None:
        """Run `update` in this page's context whenever news came, at most about once a second.

        Call it once, when the page is built. An update that raises is logged, and the page says
        that it is out of date until one succeeds.
        """

        async def refresh(begun: float) -> None:
            self._begun_after = begun
            former, self._state = self._state, State(datetime.now(UTC))
            try:
                with self.client:
                    await update()
                    self.on_state(self._state)
            except Exception:
                self._state = former
                if not self.client.is_deleted:
                    self.on_state(replace(former, is_stale=True))
                raise

        viewer = Viewer(refresh=refresh, is_gone=lambda: self.client.is_deleted)
        watchers = self.viewing.watchers
        watchers.watch(self.workspace, self.services.statistics.news, viewer, self._seen)
        self.client.on_delete(lambda: watchers.leave(self.workspace, viewer))

    def show_state(self) -> None:
        """Say from when the figures are, as far as it is known."""
        self.on_state(self._state)

    def begin(self) -> None:
        """Remember from when on news is news; before anything is read."""
        self._seen = self.services.statistics.news.version(self.workspace)


def _in_path(path: str) -> tuple[str, dict[str, str]]:
    """A path that browsers and the path guard leave as it is, and what had to leave it."""
    parts = path.split("/")
    if not any(part in (".", "..") for part in parts) and path.isprintable():
        return path, {}
    first, _, rest = path.removeprefix("/").partition("/")
    return f"/{first}/-", {MOVED: rest}
