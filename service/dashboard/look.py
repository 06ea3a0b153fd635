"""One look at the dashboard: its workspace, its window, and the parameters of its address.

"Path" is everywhere one below `/dashboard`, as in `/tools`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from aftercall.errors import AftercallError
from aftercall.models import ToolName, Usage, UsageWindow
from aftercall.models.statistics import Statistics
from service.context import Context, Space
from service.dashboard import html as h
from service.dashboard import words as w
from service.keys import DEFAULT_WORKSPACE
from service.lifecycle import Shared
from service.windows import window_before

PREFIX: Final = "/dashboard"
DEFAULT_WINDOW: Final[UsageWindow] = "24h"
MOVED: Final = "at"
"""Query parameter with what cannot stand in a path: browsers resolve `..` before they ask."""
DATES: Final = ("from", "to")
"""Query parameters with the first and the last day of a window, as a form sends them."""
_RARELY_S: Final = 15.0
Read = TypeVar("Read")


class NothingHereError(AftercallError):
    """404: the address names something that does not exist."""

    def __init__(self, what: str, cure: str) -> None:
        """Take two sentences, which are shown as text: what is missing, and what to do."""
        super().__init__(what)
        self.what = what
        self.cure = cure


@dataclass(frozen=True, slots=True)
class Shown:
    """The content of a page."""

    title: str
    """Its heading, and the first part of what the browser calls it."""
    content: h.Html
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """From when its figures are."""
    is_complete: bool = True
    """False while what came in lately is still being counted."""
    status: int = 200
    is_live: bool = True
    """Whether an open page asks for it again."""


@dataclass(frozen=True, slots=True)
class Look:
    """A request for a page: the space, the window and the address."""

    context: Context
    workspace: str
    window: UsageWindow
    path: str
    """This page's own, as it was asked for."""
    query: Mapping[str, str]
    """All parameters of the address, as text."""
    named: Mapping[str, str]
    """Names in the path, such as the id of a tool."""
    workspaces: Sequence[str]
    """All there are, in order."""
    shared: Shared
    tables: dict[str, h.DataTable] = field(default_factory=dict)
    """Tables of the page that can be taken along, by name."""

    @property
    def space(self) -> Space:
        """Return the first argument of operations."""
        return Space(self.context, self.workspace)

    def show_page(
        self, title: str, template: str, *, of: Statistics | Usage | None = None, **data: object
    ) -> Shown:
        """Return the page that a template makes of this look and its data.

        `of` has the time of the figures.
        """
        is_complete = of is None or of.is_complete
        content = h.render_template(template, look=self, is_complete=is_complete, **data)
        at = (of and of.until) or datetime.now(UTC)
        return Shown(title, content, at, is_complete=is_complete)

    def link_path(self, path: str, **query: str) -> str:
        """Return an address that keeps window and workspace, percent-encoded.

        Whatever the path holds (unencoded, such as `/tools/` and a tool's id), the address leads to
        that page. `window` and `workspace` in the query replace those of this page.
        """
        path, moved = _in_path(path)
        usual = {"window": DEFAULT_WINDOW, "workspace": DEFAULT_WORKSPACE}
        asked = {**moved, "window": self.window, "workspace": self.workspace, **query}
        asked = {name: text for name, text in asked.items() if usual.get(name) != text}
        text = f"?{urlencode(asked, errors='replace')}" if asked else ""
        return f"{PREFIX}{quote(path, safe='/', errors='replace')}{text}"

    def link_again(self, **query: str) -> str:
        """Return the address of this page with other parameters, such as another window."""
        return self.link_path(self.path, **self.own_query | query)

    @property
    def own_query(self) -> dict[str, str]:
        """Parameters of the address that are this page's own."""
        return {k: v for k, v in self.query.items() if k not in ("window", "workspace", *DATES)}

    @property
    def before(self) -> UsageWindow:
        """Same span of time before the window."""
        return window_before(self.space, self.window)

    def link_tool(self, tool: ToolName) -> str:
        """Return the address of a tool's page: by registered id, else by server and name."""
        if tool.tool_id is not None:
            return self.link_path(f"/tools/{tool.tool_id}")
        server = {} if tool.server_name is None else {"server": tool.server_name}
        return self.link_path("/tool", name=tool.tool_name, **server)

    def link_pattern(self, pattern_id: str) -> str:
        """Return the address of a failure pattern's page."""
        return self.link_path(f"/patterns/{pattern_id}")

    def link_agent(self, agent: str) -> str:
        """Return the address of an agent's page."""
        return self.link_path(f"/agents/{agent}")

    @property
    def trace_url(self) -> str | None:
        """Address of the trace viewer, with `{trace_id}` in it."""
        return self.context.settings.server.trace_url

    @property
    def may_change(self) -> bool:
        """Return whether the reader may change the state of patterns and recommendations."""
        return "admin" in self.context.caller.scopes

    def whole_tool_column(self) -> h.Column:
        """Return a column with the tool of a row, by server and name, with its page."""
        return h.Column(
            "tool",
            "Tool",
            of=lambda each: h.Anchor(w.format_tool(each.tool), self.link_tool(each.tool)),
        )

    def tool_columns(self) -> list[h.Column]:
        """Return two columns with the tool and its server."""
        return [
            h.Column(
                "tool",
                "Tool",
                of=lambda each: h.Anchor(each.tool.tool_name, self.link_tool(each.tool)),
            ),
            h.Column("server", "Server", of=lambda each: each.tool.server_name or ""),
        ]

    def make_table(
        self, name: str, columns: Sequence[h.Column], rows: Sequence[object], **more: Any
    ) -> h.Html:
        """Return a table to sort, filter and download, as `DataTable` describes it."""
        table = h.DataTable(name, columns, rows, **more)
        self.tables[name] = table
        return table.write_html(self.link_again(table=name))

    async def read_rarely(self, key: str, read: Callable[[], Awaitable[Read]]) -> Read:
        """Return what `read` returns, or returned some seconds ago.

        `key` names it in workspace and window.
        """
        return await self.shared.get((self.workspace, self.window, key), read, _RARELY_S)


def _in_path(path: str) -> tuple[str, dict[str, str]]:
    """Return a path that browsers and routes leave as it is, and what had to leave it."""
    if not any(part in (".", "..") for part in path.split("/")) and path.isprintable():
        return path, {}
    first, _, rest = path.removeprefix("/").partition("/")
    return f"/{first}/-", {MOVED: rest}
