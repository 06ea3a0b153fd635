"""The patterns that were met most, each with its lesson and an example."""

from collections.abc import Mapping, Sequence

from nicegui.elements.mixins.text_element import TextElement

from aftercall.models import FailurePattern, PatternFailures
from service.dashboard.look import Look
from service.dashboard.parts.calls import SAME_CALL, show_call, show_repair
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.repair_reads import Example
from service.dashboard.shown.call_text import one_line, visible
from service.dashboard.shown.failure_rows import (
    MAX_SIGNATURE,
    compared,
    mended_share,
    name_of,
)
from service.dashboard.shown.numbers import count, percent
from service.dashboard.widgets import badge, box, link, set_text, text

NO_LESSON = "Nothing is known yet that helps against it."

_MAX_AGENTS = 6
_MAX_LESSON = 1_000
_MAX_GLIMPSE = 200


class PatternCards:
    """A list of cards, whose numbers change in place; other patterns make other cards."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._list = box("ol", "patterns")
        self._ids: list[str] = []
        self._numbers: list[TextElement] = []

    def shows(self, patterns: Sequence[PatternFailures]) -> bool:
        """Whether these are the patterns that are there, so that no example needs to be read."""
        return [each.pattern.pattern_id for each in patterns] == self._ids

    def set(self, patterns: Sequence[PatternFailures], examples: Mapping[str, Example]) -> None:
        """Show these; `examples` by pattern id, used where the cards are made."""
        if not self.shows(patterns):
            self._ids = [each.pattern.pattern_id for each in patterns]
            self._list.clear()
            with self._list:
                self._numbers = [
                    self._card(each.pattern, examples.get(each.pattern.pattern_id, Example()))
                    for each in patterns
                ]
        for each, number in zip(patterns, self._numbers, strict=True):
            set_text(number, counted(each))

    def _card(self, pattern: FailurePattern, example: Example) -> TextElement:
        look = self._look
        signature = one_line(pattern.signature, MAX_SIGNATURE)
        with box("li", "pattern"):
            with box("h3"):
                link(signature, look.link(f"/patterns/{pattern.pattern_id}"))
            with box("p", "about"):
                link(name_of(pattern.tool), tool_href(look, pattern.tool), "tool")
                badge(pattern.category)
            number = text("", "p", "counted")
            text(lesson_of(pattern), "p", "lesson")
            show_agents(look, pattern.agents)
            _show_example(look, example)
        return number


def counted(met: PatternFailures) -> str:
    """How often it was met, how that compares, and how much of it is mended."""
    word = "failure" if met.failures == 1 else "failures"
    share = mended_share(met.pattern)
    mended = f"Agents mended {percent(share)} of all so far." if share else "None is mended so far."
    told = filter(None, (f"{count(met.failures)} {word}", compared(met.failures, met.before)))
    return f"{', '.join(told)}. {mended}"


def lesson_of(pattern: FailurePattern) -> str:
    """What helps against it, or that nothing is known."""
    return visible(pattern.lesson, _MAX_LESSON) if pattern.lesson else NO_LESSON


def show_agents(look: Look, agents: Sequence[str]) -> None:
    """Links to some of the agents that it happened to."""
    if not agents:
        return
    with box("p", "note agents"):
        text("Happened to ", "span")
        for place, agent in enumerate(agents[:_MAX_AGENTS]):
            if place:
                text(", ", "span")
            link(one_line(agent, 256), look.link(f"/agents/{agent}"))
        left = len(agents) - _MAX_AGENTS
        text(f" and {count(left)} more." if left > 0 else ".", "span")


def glimpse_of(example: Example) -> str:
    """The gist of an example in one line: what a repair changed, else what the tool said."""
    if example.repair is not None:
        return one_line("; ".join(example.repair.changes) or SAME_CALL, _MAX_GLIMPSE)
    error = example.failed.error if example.failed is not None else None
    return one_line(error or "", _MAX_GLIMPSE)


def _show_example(look: Look, example: Example) -> None:
    if example.repair is None and example.failed is None:
        text("Its examples have expired.", "p", "note")
        return
    text(glimpse_of(example), "p", "glimpse")
    with box("details"):
        text("Example" if example.repair is None else "Example with its repair", "summary")
        if example.repair is not None:
            show_repair(look, example.repair, level=4)
        elif example.failed is not None:
            show_call(look, "Failed", example.failed, level=4)
