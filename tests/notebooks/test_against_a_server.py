"""By one variable each notebook looks at a running service, and writes nothing to it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercall import AsyncClient
from service.demo.history import play_history
from tests.notebooks.executing import LONG, READING, complaints, execute, images
from tests.service.running_service import ServeProcess, serving

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jupyter")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service in a process of its own, filled as `aftercall demo --history` fills one."""
    with serving(tmp_path_factory.mktemp("server")) as started:
        asyncio.run(_fill(started.url))
        yield started


async def _fill(url: str) -> None:
    async with AsyncClient(url) as client:
        await play_history(client, calls_per_day=40)


def _held(server: ServeProcess) -> dict[str, object]:
    """What a write would change."""
    status = server.get("/status")
    return {
        **{name: status[name] for name in ("executions", "tools", "documents", "vectors")},
        "outcomes": server.get("/stats/confidence")["judged"],
        "namespaces": server.get("/namespaces"),
        "corrections": server.get("/corrections"),
        "promotions": server.get("/promotions"),
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.prove] * (name == LONG)) for name in READING]
)
def test_it_reads_from_a_server_and_writes_nothing(
    name: str, server: ServeProcess, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same cells run, and the service holds afterwards what it held before."""
    before = _held(server)
    played = execute(
        name, folder, monkeypatch,
        AFTERCALL_URL=server.url, AFTERCALL_EMBEDDING_MODEL="hashing",
    )  # fmt: skip
    assert complaints(played) == []
    assert images(played) >= 2
    assert f"the service at {server.url}" in str(played.cells)
    assert _held(server) == before
