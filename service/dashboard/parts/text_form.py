"""A form of texts: nothing of it is sent while somebody types, all of it when it is asked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nicegui.element import Element
from nicegui.events import GenericEventArguments


@dataclass(frozen=True, slots=True)
class Field:
    """One field."""

    name: str
    """Ours, never a tool's."""
    label: str
    max_chars: int
    """Characters that the browser takes; it cuts off what is beyond."""
    rows: int = 0
    """Lines of a field for several; 0 for a single line."""
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Texts that are proposed; any other is taken too."""
    fills: tuple[str, tuple[tuple[str, str], ...]] | None = None
    """Another field, and what goes into it, when it is empty, with which text of this one."""


class _Form(Element, component=Path(__file__).parents[1] / "elements" / "text_form.js"):
    pass


class TextForm:
    """Fields with one button; Ctrl+Enter in any of them does the same.

    Args:
        fields: from top to bottom.
        action: what the button says.
        on_ask: given what the fields hold, by name; no other is asked until it returns.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        action: str,
        on_ask: Callable[[Mapping[str, str]], Awaitable[None]],
    ) -> None:
        self._names = [each.name for each in fields]
        self._on_ask = on_ask
        self._filled = 0
        self._is_asking = False
        self._form = _Form()
        props = self._form.props
        props["fields"] = [_prop(each) for each in fields]
        props["texts"] = dict.fromkeys(self._names, "")
        props["filled"] = 0
        props["faults"] = {}
        props["action"] = action
        props["waiting"] = False
        self._form.on("ask", self._ask)

    def fill(self, texts: Mapping[str, str]) -> None:
        """Put texts into the fields, an empty one where none is given."""
        self._filled += 1
        self._form.props["texts"] = {name: texts.get(name, "") for name in self._names}
        self._form.props["filled"] = self._filled
        self.tell({})

    def tell(self, faults: Mapping[str, str]) -> None:
        """Say at each field what is wrong with it, and go to the first; none where nothing is."""
        self._form.props["faults"] = {name: faults[name] for name in self._names if name in faults}

    async def _ask(self, event: GenericEventArguments) -> None:
        if self._is_asking:  # the button waits too, but a page need not be one of ours
            return
        given = event.args if isinstance(event.args, dict) else {}
        texts = {name: given.get(name) for name in self._names}
        self._is_asking = True
        self._form.props["waiting"] = True
        try:
            await self._on_ask(
                {name: each if isinstance(each, str) else "" for name, each in texts.items()}
            )
        finally:
            self._is_asking = False
            self._form.props["waiting"] = False


def _prop(field: Field) -> dict[str, object]:
    return {
        "name": field.name,
        "label": field.label,
        "max": field.max_chars,
        "rows": field.rows,
        "hint": field.hint,
        "choices": list(field.choices) or None,
        # Pairs, for a name may be one that objects have by themselves.
        "fills": field.fills and {"field": field.fills[0], "pairs": [*map(list, field.fills[1])]},
    }
