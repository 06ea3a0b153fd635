"""A preformatted text with a button that copies it."""

from pathlib import Path

from nicegui.element import Element

from service.dashboard.widgets import code, set_text

_ELEMENTS = Path(__file__).parent.parent / "elements"


class _CopyButton(Element, component=_ELEMENTS / "copy_button.js"):
    pass


class Copyable:
    """The text and its button.

    Args:
        label: what the button says.
    """

    def __init__(self, label: str) -> None:
        self._button = _CopyButton()
        self._shown = code("")
        name = f"c{self._shown.id}-text"
        self._shown.props["id"] = name
        for prop, value in (("label", label), ("text", ""), ("target", name)):
            self._button.props[prop] = value

    def set(self, value: str) -> None:
        """Show another text."""
        set_text(self._shown, value)
        if self._button.props["text"] != value:
            self._button.props["text"] = value
