"""Counts as lying bars that are words too: no chart needs to be seen to read them."""

from collections.abc import Sequence
from typing import NamedTuple

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from service.dashboard.shown.numbers import count, percent
from service.dashboard.widgets import box, link, set_text, text


class Bar(NamedTuple):
    """One of the counts."""

    label: str
    value: int
    href: str | None


class CountBars:
    """A list of counts, each with its share of all.

    Args:
        title: what is counted, for who does not see it.
    """

    def __init__(self, title: str) -> None:
        self._list = box("ul", "bars", aria_label=title)
        self._labels: list[tuple[str, str | None]] = []
        self._drawn: list[tuple[TextElement, Element]] = []

    def set(self, bars: Sequence[Bar]) -> None:
        """Show these; only numbers are sent where the labels are the same."""
        labels = [(each.label, each.href) for each in bars]
        if labels != self._labels:
            self._labels = labels
            self._list.clear()
            with self._list:
                self._drawn = [_drawn(*each) for each in labels]
        whole, most = (
            sum(each.value for each in bars),
            max((each.value for each in bars), default=1),
        )
        for bar, (number, drawn) in zip(bars, self._drawn, strict=True):
            share = bar.value / whole if whole else 0.0
            set_text(number, f"{count(bar.value)} ({percent(share)})")
            drawn.style(replace=f"width: {100 * bar.value / max(1, most):.1f}%")


def _drawn(label: str, href: str | None) -> tuple[TextElement, Element]:
    with box("li"):
        link(label, href, "bar-label")
        number = text("", "span", "bar-count")
        with box("span", "bar-track", aria_hidden="true"):
            drawn = box("span", "bar")
    return number, drawn
