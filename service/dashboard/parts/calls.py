"""Recorded calls, and repairs side by side. All of it is text."""

from datetime import timedelta

from service.dashboard.look import Look
from service.dashboard.shown.call_text import ShownCall
from service.dashboard.shown.numbers import duration, moment
from service.dashboard.shown.repairs import ShownRepair
from service.dashboard.widgets import Lines, box, code, link, text

SAME_CALL = "Nothing was changed: the same call worked when it was made again."


def show_call(look: Look, title: str, call: ShownCall, *, level: int) -> None:
    """One call: who made it and when, what was sent, what the tool said, what it was for.

    Args:
        look: of the page.
        title: what the call is here.
        call: the call.
        level: of the heading with the title; it comes after one of the level before.
    """

    def part(name: str) -> None:
        text(name, f"h{level + 1}", "call-part")

    with box("div", "call"):
        text(title, f"h{level}", "call-title")
        with box("p", "note"):
            text(f"{moment(call.at)} UTC by ", "span")
            link(call.agent, look.link(f"/agents/{call.agent_name}"))
            text(_more(call), "span")
        if call.context:
            part("Context")
            text(call.context, "p", "said")
        part("Parameters")
        code(call.parameters)
        if call.error is not None:
            part("Error")
            code(call.error)


def show_repair(look: Look, repair: ShownRepair, *, level: int) -> None:
    """The failed call and the one that mended it, and between them what changed.

    Args:
        look: of the page.
        repair: both calls.
        level: of the headings of the three; they come after one of the level before.
    """
    with box("div", "pair"):
        show_call(look, "Failed", repair.failed, level=level)
        with box("div", "call"):
            text("Mended by", f"h{level}", "call-title")
            if repair.changes:
                Lines(classes="changes").set(repair.changes)
            else:
                text(SAME_CALL)
            if repair.lesson:
                text(repair.lesson, "p", "lesson")
            text(_waited(repair.waited), "p", "note")
            with box("details"):
                text("JSON Patch", "summary")
                code(repair.patch)
        show_call(look, "Worked", repair.mended, level=level)


def _more(call: ShownCall) -> str:
    parts = [
        "",
        *([f"version {call.version}"] if call.version else []),
        *([f"attempt {call.attempt}"] if call.attempt > 1 else []),
        *([duration(call.duration_ms)] if call.duration_ms else []),
        *(["after a suggestion"] if call.followed_suggestion else []),
    ]
    return ", ".join(parts)


def _waited(waited: timedelta) -> str:
    return f"{duration(waited.total_seconds() * 1_000)} after the failure."
