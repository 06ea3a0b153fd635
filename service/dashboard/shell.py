"""What stands around every page: its head, the way to the others, the pickers, and its foot."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from nicegui import ui
from nicegui.element import Element

from service.dashboard.look import WINDOWS, Look, State
from service.dashboard.page import Page
from service.dashboard.prefix import PREFIX
from service.dashboard.shown import numbers
from service.dashboard.shown.overview import WINDOW_WORDS
from service.dashboard.theme import COOKIE, THEMES, Theme
from service.dashboard.widgets import box, link, set_text, set_visible, text
from service.version import VERSION

STATIC: Final = Path(__file__).parent / "static"

FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" '
    'rx="7" fill="#1f5f8b"/><path d="M7 22 L13 14 L18 18 L25 9" fill="none" stroke="#fff" '
    'stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)

_THEME_NAMES: Final[dict[Theme, str]] = {"auto": "Auto", "light": "Light", "dark": "Dark"}

_SCRIPT: Final = f"""
document.documentElement.dataset.theme = "%s";
document.addEventListener("click", (event) => {{
  const button = event.target.closest?.("[data-theme-choice]");
  if (!button) return;
  const chosen = button.dataset.themeChoice;
  document.cookie = "{COOKIE}=" + chosen + "; path={PREFIX}; max-age=31536000; samesite=strict";
  document.documentElement.dataset.theme = chosen;
  for (const each of document.querySelectorAll("[data-theme-choice]"))
    each.setAttribute("aria-pressed", each === button ? "true" : "false");
}});
document.addEventListener("DOMContentLoaded", () => {{
  // What tells that the connection is lost is said aloud, too.
  document.getElementById("popup")?.setAttribute("role", "alert");
}});
"""

_NO_SCRIPT: Final = (
    "<noscript><p>The dashboard needs JavaScript; the same figures are at "
    '<a href="/docs">the API</a>.</p></noscript>'
)


class Shell:
    """The frame of one page; `main` is where the page goes."""

    def __init__(self, page: Page, look: Look, pages: Sequence[Page], theme: Theme) -> None:
        self._look = look
        client = look.client
        ui.add_head_html(
            f'<link rel="stylesheet" href="{PREFIX}/static/{style_name()}">'
            f"<script>{_SCRIPT % theme}</script>"
        )
        ui.add_body_html(_NO_SCRIPT)
        # The layout gives the page its `<main>`; what goes around it is put around it.
        with client.layout:
            with box("header", "top") as header:
                link("Skip to the content", "#main", "skip")
                self._way(page, pages)
                self._pickers(page, theme)
            header.move(client.layout, 0)
            with box("footer", "bottom"):
                self._state = text("", "p", role="status")
                text(f"Aftercall {VERSION}", "p", "version")
        slot = client.content.parent_slot
        if slot is not None:
            slot.parent.props["id"] = "main"
            slot.parent.props["tabindex"] = "-1"
        with client.content:
            self._stale = text(
                "This page could not be brought up to date just now; it is tried again.",
                "p",
                "stale",
                role="alert",
            )
            set_visible(self._stale, visible=False)
            self._heading = text(page.title, "h1")
            self.main: Element = box("div", "page")
        self.title(page.title)
        look.on_state = self.state
        look.on_title = self.title

    def title(self, title: str) -> None:
        """Call the page something else, such as by what it is about."""
        set_text(self._heading, title)
        ui.page_title(f"{title} - Aftercall")

    def state(self, state: State) -> None:
        """Say from when the figures are."""
        counting = "" if state.is_complete else " - still counting what came in lately"
        set_text(self._state, f"As of {numbers.moment(state.at)} UTC{counting}")
        set_visible(self._stale, state.is_stale)

    def _way(self, page: Page, pages: Sequence[Page]) -> None:
        look = self._look
        link("Aftercall", look.link("/"), "product")
        with box("nav", "way", aria_label="Pages"):
            for each in pages:
                if each.nav is not None:
                    target = link(each.nav, look.link(each.path))
                    if each.path == page.path:
                        target.props["aria-current"] = "page"

    def _pickers(self, page: Page, theme: Theme) -> None:
        look = self._look
        with box("div", "pickers"):
            if len(look.workspaces) > 1:
                self._workspaces(page)
            with box("nav", "windows", aria_label="Time range"):
                for window in WINDOWS:
                    target = link(window, look.again(window=window))
                    target.props["aria-label"] = f"Last {WINDOW_WORDS[window]}"
                    if window == look.window:
                        target.props["aria-current"] = "true"
            with box("div", "themes", role="group", aria_label="Colours"):
                for each in THEMES:
                    button = text(_THEME_NAMES[each], "button", type="button")
                    button.props["data-theme-choice"] = each
                    button.props["aria-pressed"] = "true" if each == theme else "false"

    def _workspaces(self, page: Page) -> None:
        # A form of the browser's own: it works with the keyboard, and gives an address to share.
        # What a page of its own is about is not in another workspace; the lists are.
        look = self._look
        path = page.path if page.nav is not None else "/"
        with box("form", "workspaces", method="get", action=f"{PREFIX}{path}"):
            box("input", type="hidden", name="window", value=look.window)
            with box("label"):
                text("Workspace", "span")
                with box("select", name="workspace"):
                    for name in look.workspaces:
                        option = text(name, "option", value=name)
                        if name == look.workspace:
                            option.props["selected"] = "selected"
            text("Show", "button", type="submit")


@cache
def style_sheet() -> bytes:
    """The one style sheet: the frame's, then those of single pages, by name."""
    frame = STATIC / "dashboard.css"
    pages = sorted(each for each in STATIC.glob("*.css") if each != frame)
    return b"\n".join(each.read_bytes() for each in (frame, *pages))


@cache
def style_name() -> str:
    """Its name, which changes with its content, so that browsers may keep it for good."""
    return f"dashboard.{hashlib.sha256(style_sheet()).hexdigest()[:12]}.css"


def missing(shell: Shell, what: str, cure: str) -> None:
    """Say that there is nothing at this address."""
    shell.main.clear()
    with shell.main, box("div", "empty"):
        text(what, "p", "what")
        text(cure)
        link("To the overview", f"{PREFIX}/")
