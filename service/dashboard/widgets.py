"""The few things that pages are made of. Whatever is given is shown as text, never as markup.

NiceGUI evaluates properties whose name begins with a colon, and parses the strings given to
`.props()`: so names of properties are always ours, and values are set one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias, TypeVar

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from service.dashboard.tone import SIGNS, Tone

Value: TypeAlias = "str | tuple[str, str | None]"
"""Text, or text and where it leads to."""


def box(tag: str = "div", classes: str = "", /, **attributes: str) -> Element:
    """An HTML element to put others into; `_` in names of attributes stands for `-`."""
    return _dressed(Element(tag), classes, attributes)


def text(value: str, tag: str = "p", classes: str = "", /, **attributes: str) -> TextElement:
    """Text; `.set_text` changes it."""
    return _dressed(TextElement(tag=tag, text=value), classes, attributes)


def heading(value: str, level: int = 2) -> TextElement:
    """A heading; the page's own is of level 1."""
    return text(value, f"h{level}")


def code(value: str) -> TextElement:
    """Preformatted text, which can be scrolled when it is long, with the keyboard too."""
    return text(value, "pre", "code", tabindex="0")


def link(value: str, href: str | None, classes: str = "") -> TextElement:
    """A link within the service; plain text when `href` is none or leads elsewhere."""
    if href is None or not is_local(href):
        return text(value, "span", classes)
    return text(value, "a", classes, href=href)


def is_local(href: str) -> bool:
    """Whether an address is a path of this service, or a place on this page."""
    if not href.isprintable():  # browsers leave out what is not: `/` and a tab before `/` are `//`
        return False
    return href.startswith("#") or (href.startswith("/") and not href.startswith(("//", "/\\")))


def badge(value: str, tone: Tone = "plain") -> TextElement:
    """A short word about a state."""
    return text(SIGNS[tone] + value, "span", f"badge {tone}")


@contextmanager
def section(title: str, *, note: str = "", classes: str = "") -> Iterator[Element]:
    """A card with a heading and, below it, what it is about."""
    with box("section", f"card {classes}") as card:
        name = f"s{card.id}"
        card.props["aria-labelledby"] = name
        text(title, "h2", id=name)
        if note:
            text(note, "p", "note")
        yield card


@contextmanager
def grid(classes: str = "") -> Iterator[Element]:
    """Cards beside one another, as many as the window has room for."""
    with box("div", f"grid {classes}") as element:
        yield element


def empty(what: str, cure: str, command: str | None = None) -> Element:
    """An empty state: what is missing, and what to do about it."""
    with box("div", "empty") as element:
        text(what, "p", "what")
        text(cure)
        if command is not None:
            code(command)
    return element


def still_counting() -> Element:
    """What stands in the place of an empty state while it is not known whether it is one."""
    return empty(
        "Still counting what was recorded.",
        "Nothing has to be done: this page fills by itself in a moment.",
    )


class Stat:
    """One number with what it is and a note."""

    def __init__(self, label: str) -> None:
        with box("div", "stat"):
            text(label, "p", "label")
            self._value = text("-", "p", "value")
            self._note = text("", "p", "note")

    def set(self, value: str, note: str = "") -> None:
        """Show a number, formatted, and a note below it."""
        set_text(self._value, value)
        set_text(self._note, note)


class Facts:
    """Names with values."""

    def __init__(self, pairs: Iterable[tuple[str, Value]] = ()) -> None:
        self._list = box("dl", "facts")
        self._shown: list[tuple[str, Value]] = []
        self.set(pairs)

    def set(self, pairs: Iterable[tuple[str, Value]]) -> None:
        """Show these."""
        pairs = list(pairs)
        if pairs == self._shown:
            return
        self._shown = pairs
        self._list.clear()
        with self._list:
            for name, value in pairs:
                text(name, "dt")
                with box("dd"):
                    _shown(value)


def facts(pairs: Iterable[tuple[str, Value]] = ()) -> Facts:
    """A list of names with values; `.set` shows other ones."""
    return Facts(pairs)


class Lines:
    """A list of sentences or links that may become another one."""

    def __init__(self, tag: Literal["ul", "ol"] = "ul", classes: str = "") -> None:
        self._list = box(tag, f"lines {classes}")
        self._shown: Sequence[Value] = ()

    def set(self, lines: Sequence[Value]) -> None:
        """Show these."""
        if list(lines) == list(self._shown):
            return
        self._shown = list(lines)
        self._list.clear()
        with self._list:
            for line in lines:
                with box("li"):
                    _shown(line)


def set_text(element: TextElement, value: str) -> None:
    """Change a text; nothing is sent when it is that already."""
    if element.text != value:
        element.set_text(value)


def set_visible(element: Element, visible: bool) -> None:  # noqa: FBT001  # a setter
    """Show or hide, for screen readers too."""
    if element.visible != visible:
        element.set_visibility(visible)


def _shown(value: Value) -> None:
    if isinstance(value, str):
        text(value, "span")
    else:
        link(*value)


ElementT = TypeVar("ElementT", bound=Element)


def _dressed(element: ElementT, classes: str, attributes: dict[str, str]) -> ElementT:
    if classes:
        element.classes(classes)
    for name, value in attributes.items():
        element.props[name.replace("_", "-")] = value
    return element
