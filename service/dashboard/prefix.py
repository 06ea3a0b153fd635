"""Where the dashboard is, and what the log and the metrics call its paths."""

from typing import Final

PREFIX: Final = "/dashboard"

SOCKET: Final = f"{PREFIX}/_nicegui_ws"
"""The live connection of a page, by WebSocket or, where that is not let through, by polling."""

PAGE_TEMPLATE: Final = f"{PREFIX}/{{page}}"
FILE_TEMPLATE: Final = f"{PREFIX}/_nicegui/{{file}}"
STYLE_TEMPLATE: Final = f"{PREFIX}/static/{{file}}"

QUIET_TEMPLATES: Final = (FILE_TEMPLATE, STYLE_TEMPLATE, SOCKET)
"""What a page asks for by itself, dozens of times."""


def template_of(path: str) -> str:
    """One of four: what is told of a path below `/dashboard`, which may say what a tool said."""
    if path.startswith(f"{PREFIX}/_nicegui/"):
        return FILE_TEMPLATE
    if path.startswith(f"{PREFIX}/static/"):
        return STYLE_TEMPLATE
    return SOCKET if path.startswith(f"{SOCKET}/") else PAGE_TEMPLATE
