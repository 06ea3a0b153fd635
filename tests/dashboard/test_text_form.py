"""A form of texts asks one question at a time, whatever its page sends."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from nicegui.events import GenericEventArguments

from service.dashboard.parts.text_form import TextForm


async def test_no_other_is_asked_until_one_returned() -> None:
    """The button waits as well, but what comes through the socket need not come from a button."""
    asked: list[Mapping[str, str]] = []
    answered = asyncio.Event()

    async def ask(texts: Mapping[str, str]) -> None:
        asked.append(texts)
        await answered.wait()

    form = TextForm.__new__(TextForm)  # without a page to put it on
    form._names, form._on_ask, form._is_asking = ["tool"], ask, False
    form._form = cast("Any", SimpleNamespace(props={}))

    def sent(args: object) -> GenericEventArguments:
        return cast("GenericEventArguments", SimpleNamespace(args=args))

    first = asyncio.create_task(form._ask(sent({"tool": "search", "other": "x"})))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await form._ask(sent({"tool": "search"}))
    assert asked == [{"tool": "search"}]
    answered.set()
    await first
    await form._ask(sent(["no texts"]))
    assert asked == [{"tool": "search"}, {"tool": ""}]
