"""Every store adapter behind one fixture, so that one suite claims the same of all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from mongo.mongodb.store import MongoOptions, MongoStore, open_mongo_store
from mongo.protocol import Store
from mongo.sqlite.store import open_sqlite_store
from tests.mongo.mongo_server import SharedMongo

OpenStore = Callable[[Path], Awaitable[Store]]

_MONGO = SharedMongo()


async def mongo_options(folder: Path) -> MongoOptions:
    """How the MongoDB store of a folder is opened: a database of its own.

    The test server is slow, and on a busy machine it is no sign that it is away.
    """
    uri = await asyncio.to_thread(_MONGO.uri)
    name = _MONGO.database(folder)
    return MongoOptions(uri, name, pool_size=16, connect_timeout_s=200, timeout_s=200)


async def open_mongo(folder: Path) -> MongoStore:
    """A store on the MongoDB that all tests share."""
    return await open_mongo_store(await mongo_options(folder))


ADAPTERS: dict[str, OpenStore] = {"sqlite": open_sqlite_store, "mongodb": open_mongo}
"""How to open each adapter on what belongs to a folder: the same folder, the same content."""


@pytest.fixture(scope="session", autouse=True)
def shared_mongo() -> Iterator[SharedMongo]:
    """The MongoDB of this run of the tests; it goes away with it."""
    yield _MONGO
    _MONGO.close()


@pytest.fixture(params=ADAPTERS.values(), ids=list(ADAPTERS))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens a store of the adapter under test."""
    adapter: OpenStore = request.param
    return adapter


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store of the adapter under test."""
    opened = await open_store(tmp_path / "data")
    yield opened
    await opened.close()
