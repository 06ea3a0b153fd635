"""Every log store adapter behind one fixture, so that one suite claims the same of all."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store

OpenLogStore = Callable[[Path], Awaitable[LogStore]]

ADAPTERS: dict[str, OpenLogStore] = {
    "sqlite": open_sqlite_store,
}
"""How to open each adapter on what belongs to a folder: the same folder, the same content."""


@pytest.fixture(params=ADAPTERS.values(), ids=list(ADAPTERS))
def open_log_store(request: pytest.FixtureRequest) -> OpenLogStore:
    """Opens a store of the adapter under test."""
    adapter: OpenLogStore = request.param
    return adapter


@pytest.fixture
async def log_store(open_log_store: OpenLogStore, tmp_path: Path) -> AsyncIterator[LogStore]:
    """An empty store of the adapter under test."""
    store = await open_log_store(tmp_path / "data")
    yield store
    await store.close()
