"""A store that is away, and figures that are not all in: what a page says in their place.

NiceGUI is one to a process, so each claim is made in a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.running_service import ROOT

pytestmark = pytest.mark.real

_HEAD = """
import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
import httpx2
from aftercall.models import Usage
from mongo.errors import StoreError
from service.context import open_context
from service.app import create_app, dashboard_of
from service.context import Lifecycle
from tests.service.running_service import hashing_settings

@asynccontextmanager
async def house():
    settings = hashing_settings(Path("one"))
    async with open_context(settings) as services:
        app = create_app(settings, Lifecycle(context=services))
        transport = httpx2.ASGITransport(app=app)
        async with (
            dashboard_of(app),
            httpx2.AsyncClient(
                transport=transport, base_url="http://localhost", headers={"accept": "text/html"}
            ) as client,
        ):
            yield client, services

async def away(*_, **__):
    raise StoreError("cannot open /somewhere/secret.db")
"""

_NO_WORKSPACES = """
async def main():
    async with house() as (client, services):
        services.store.workspaces = away
        answer = await client.get("/dashboard/tools")
        assert answer.status_code == 503, answer.status_code
        assert answer.headers["retry-after"] == "10"
        assert "The store cannot be read at the moment" in answer.text
        assert "secret" not in answer.text
        assert "script" not in answer.text

asyncio.run(main())
"""

_NO_FIGURES = """
async def main():
    async with house() as (client, services):
        services.statistics.tools = away
        answer = await client.get("/dashboard/tools")
        assert answer.status_code == 503, answer.status_code
        assert "This page cannot be shown at the moment." in answer.text
        assert "secret" not in answer.text

asyncio.run(main())
"""

_COUNTING = """
from nicegui import Client
from nicegui.elements.mixins.text_element import TextElement

def seen(element):
    while element is not None:
        if not element.visible:
            return False
        slot = element.parent_slot
        element = slot.parent if slot is not None else None
    return True

def empty_states():
    [client] = Client.instances.values()
    return [
        each.text for each in client.elements.values()
        if isinstance(each, TextElement) and "what" in each.classes and seen(each)
    ]

async def shown(client, path):
    for each in list(Client.instances.values()):
        each.delete()
    assert (await client.get(path)).status_code == 200
    return empty_states()

def not_all_in(read):
    async def reading(*given):
        return (await read(*given)).model_copy(update={"is_complete": False})
    return reading

def totals_not_all_in(read):
    async def reading(*given):
        found = await read(*given)
        windows = [each.model_copy(update={"is_complete": False}) for each in found.windows]
        return found.model_copy(update={"windows": windows})
    return reading

PAGES = {path: f"/dashboard/{path}" for path in ("", "failures", "tools", "agents")}

async def main():
    async with house() as (client, services):
        for path in PAGES.values():
            [what] = await shown(client, path)
            assert what.startswith("No "), (path, what)
        reports = services.statistics
        reports.totals = totals_not_all_in(reports.totals)
        reports.patterns = not_all_in(reports.patterns)
        reports.tools = not_all_in(reports.tools)
        reports.usage = not_all_in(reports.usage)
        await asyncio.sleep(1.2)  # what was read for the pages above is shown no longer
        for path in PAGES.values():
            assert await shown(client, path) == ["Still counting what was recorded."], path

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "script",
    [_NO_WORKSPACES, _NO_FIGURES, _COUNTING],
    ids=["no workspaces", "no figures", "counting"],
)
def test_a_page_says_what_is_the_matter(script: str, tmp_path: Path) -> None:
    """Without workspaces or figures: 503, and not a word of the store's own.

    Counting: it is not said that there is nothing.
    """
    ran = subprocess.run(
        [sys.executable, "-c", _HEAD + script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
