"""What is shown in the place of a tool that is none, or that may be one of several."""

from collections.abc import Sequence

from service.dashboard.look import Look
from service.dashboard.shown.call_text import one_line
from service.dashboard.widgets import Lines, box, link, text

_MAX_NAME = 520


def show_unknown(look: Look, name: str, nearest: Sequence[str]) -> None:
    """The names that may have been meant, as links, under the status 404."""
    look.client.status_code = 404
    look.title("No such tool")
    shown = one_line(name, _MAX_NAME)
    with box("div", "empty"):
        if any(each.endswith(f"/{name}") for each in nearest):
            text(f"Several servers have a tool {shown!r}.", "p", "what")
        else:
            text(f"There is no tool {shown!r}.", "p", "what")
        if nearest:
            text("Was one of these meant?")
            Lines().set(
                [(one_line(each, _MAX_NAME), look.link(f"/tools/{each}")) for each in nearest]
            )
        else:
            text("A tool is known once it is registered or was called.")
        link("All tools", look.link("/tools"))
