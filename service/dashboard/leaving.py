"""A page that was left gives its memory back at once.

Elements, what they call and what calls them hold one another in circles, some 1 MiB a page. The
garbage collector of a service looks at what is old only after many new objects, so a hundred dead
pages would wait for it.
"""

import asyncio
from collections.abc import Sequence

from nicegui import Client
from nicegui.element import Element

from service.dashboard.look import Look


def free_when_left(look: Look) -> None:
    """Cut the circles of a page once its client is deleted."""
    client = look.client

    def left() -> None:
        # Deleting the client goes through its elements, so they are cut after it.
        asyncio.get_running_loop().call_soon(_cut, look, client, list(client.elements.values()))

    client.on_delete(left)


def _cut(look: Look, client: Client, elements: Sequence[Element]) -> None:
    look.on_state = lambda _: None
    look.on_title = lambda _: None
    client.delete_handlers.clear()
    for element in elements:
        element._event_listeners.clear()  # noqa: SLF001  # there is no other way to them
        for its in (element.classes, element.props, element.style):
            its._change_handlers.clear()  # noqa: SLF001  # each calls a method of its own
        for slot in element.slots.values():
            slot.children.clear()
