"""NiceGUI is there when somebody looks, and not before; each claim in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.running_service import ROOT

pytestmark = pytest.mark.real

_HEAD = """
import asyncio, sys
from contextlib import asynccontextmanager
from pathlib import Path
import httpx2
from service.context import open_context
from service.app import create_app, dashboard_of
from service.context import Lifecycle
from tests.service.running_service import hashing_settings

@asynccontextmanager
async def house(folder):
    settings = hashing_settings(Path(folder))
    async with open_context(settings) as services:
        app = create_app(settings, Lifecycle(context=services))
        transport = httpx2.ASGITransport(app=app)
        async with (
            dashboard_of(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            yield client
"""

_UNSEEN = """
async def main():
    async with house("one") as client:
        for path in ("/status", "/docs", "/metrics", "/stats/totals"):
            assert (await client.get(path)).status_code == 200, path
        assert "nicegui" not in sys.modules
        assert "socketio" not in sys.modules
        assert (await client.get("/dashboard/")).status_code == 200
        assert "nicegui" in sys.modules

asyncio.run(main())
assert sorted(p.name for p in Path().iterdir()) == ["one"], list(Path().iterdir())
"""

_TURNS = """
async def main():
    async with house("one") as first, house("two") as second:
        assert (await first.get("/dashboard/")).status_code == 200
        refused = await second.get("/dashboard/")
        assert refused.status_code == 503, refused.text
        assert refused.json()["error"]["code"] == "dashboard_in_use", refused.text

async def again():
    async with house("two") as second:
        answer = await second.get("/dashboard/")
        assert answer.status_code == 200, answer.text
        assert "<title>Overview - Aftercall</title>" in answer.text

asyncio.run(main())
asyncio.run(again())
asyncio.run(again())
"""


_LEFT = """
import gc

async def main():
    async with house("one") as client:
        await client.get("/dashboard/")
        from nicegui import Client
        from service.dashboard.look import Look
        gc.collect()
        gc.disable()
        for _ in range(5):
            await client.get("/dashboard/tools")
        assert sum(isinstance(each, Look) for each in gc.get_objects()) == 6
        for each in list(Client.instances.values()):
            each.delete()
        async with asyncio.timeout(10):  # the tasks of the pages end
            while any(isinstance(each, Look) for each in gc.get_objects()):
                await asyncio.sleep(0.02)

asyncio.run(main())
"""


_COUNTING = """
from retrieval.usage.view import UsageView
from tests.service.running_service import failure

now = UsageView.__init__
UsageView.__init__ = lambda self, parts, at, *, is_complete: now(self, parts, at, is_complete=False)

async def main():
    async with house("one") as client:
        (await client.post("/executions", json=failure())).raise_for_status()
        about = ("/agents/librarian", "/tool?server=rag-server&name=rag_query")
        for path in ("/", "/failures", "/tools", "/agents", "/suggestions", *about):
            answer = await client.get("/dashboard" + path)
            assert answer.status_code == 200, path
            assert "still counting" in answer.text, path

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "script",
    [_UNSEEN, _TURNS, _LEFT, _COUNTING],
    ids=["unseen", "turns", "left", "counting"],
)
def test_it_is_opened_when_somebody_looks(script: str, tmp_path: Path) -> None:
    """Unseen: nothing is imported before, and no file written. Turns: one app after the other.

    Left: a page that was left needs no garbage collector to go. Counting: every page with figures
    of a window says so while what came lately is not in them.
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
