"""Every log store adapter behind one fixture, so that one suite claims the same of all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from mongo.mongodb import MongoLogStore, MongoOptions, open_mongo_store
from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store
from tests.mongo.mongo_server import SharedMongo

OpenLogStore = Callable[[Path], Awaitable[LogStore]]

_MONGO = SharedMongo()


async def mongo_options(folder: Path) -> MongoOptions:
    """How the MongoDB store of a folder is opened: a database of its own, nothing expires."""
    uri = await asyncio.to_thread(_MONGO.uri)
    return MongoOptions(uri, _MONGO.database(folder), pool_size=16, retention_days=0)


async def open_mongo(folder: Path) -> MongoLogStore:
    """A store on the MongoDB that all tests share."""
    return await open_mongo_store(await mongo_options(folder))


ADAPTERS: dict[str, OpenLogStore] = {
    "sqlite": open_sqlite_store,
    "mongodb": open_mongo,
}
"""How to open each adapter on what belongs to a folder: the same folder, the same content."""


@pytest.fixture(scope="session", autouse=True)
def shared_mongo() -> Iterator[SharedMongo]:
    """The MongoDB of this run of the tests; it goes away with it."""
    yield _MONGO
    _MONGO.close()


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
