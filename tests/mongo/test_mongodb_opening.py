"""Opening a MongoDB store, and what it says when MongoDB is away, foreign, newer or slow."""

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import BulkWriteError, NotPrimaryError, OperationFailure

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreTooNewError,
    StoreUnavailableError,
)
from mongo.mongodb import MongoOptions, faults, open_mongo_store
from mongo.mongodb.collections import Record
from tests.mongo import mongo_server
from tests.mongo.conftest import mongo_options
from tests.mongo.log_store_samples import WORKSPACE, make_executions
from tests.mongo.mongo_server import MongoServer

# A client that is closed while its monitor connects leaves that socket to the garbage collector:
# the driver closes it on OSError, not on cancellation (PyMongo 4.20, `_async_create_connection`).
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)

SECRET = "p4ss-w0rd"  # noqa: S105  # of nobody


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Such a socket is collected in the test that left it, not in a later one."""
    yield
    gc.collect()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MongoServer]:
    """A server of the test's own, to be stopped and frozen."""
    if mongo_server.executable() is None:
        pytest.skip("no server that a test may stop: nx-27017 is not installed (the extra `dev`)")
    started = MongoServer.start(tmp_path / "server")
    yield started
    started.stop()


def quick(server: MongoServer) -> MongoOptions:
    """Options that give up soon."""
    return MongoOptions(server.uri, "t", connect_timeout_s=0.3, timeout_s=0.6, retention_days=0)


async def test_the_password_is_never_shown() -> None:
    """Neither by the options nor by the error for a server that is away."""
    options = MongoOptions(
        f"mongodb://me:{SECRET}@127.0.0.1:1/?authSource=admin", connect_timeout_s=0.2, timeout_s=0.5
    )
    assert SECRET not in repr(options)
    assert options.where == "127.0.0.1:1/aftercall"
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1") as caught:
        await open_mongo_store(options)
    assert SECRET not in str(caught.value)
    assert "me" not in str(caught.value).split()


@pytest.mark.parametrize(
    "uri",
    [
        f"http://me:{SECRET}@host",
        f"mongodb://me:{SECRET}@",
        f"mongodb://me:{SECRET}@x@host",
        f"mongodb://me:{SECRET}@host:port",
        f"mongodb://me:{SECRET}@host/?maxPoolSize=many",
        f"mongodb://me:{SECRET}@host/?authMechanism=none",
    ],
)
async def test_an_address_that_is_none_is_refused(uri: str) -> None:
    """With the setting's name, and without the address."""
    with pytest.raises(StoreError, match="AFTERCALL_MONGO_URI") as caught:
        await open_mongo_store(MongoOptions(uri, connect_timeout_s=0.2))
    assert SECRET not in str(caught.value)


async def test_a_database_of_others_is_left_alone(tmp_path: Path) -> None:
    """Collections of our names without our mark are not ours."""
    options = await mongo_options(tmp_path)
    async with AsyncMongoClient[Record](options.uri) as client:
        database = client[options.database]
        await database["TOOLS"].insert_one({"_id": "theirs"})
        with pytest.raises(StoreDamagedError, match="TOOLS"):
            await open_mongo_store(options)
        assert await database.list_collection_names() == ["TOOLS"]


async def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """It is said which layout it has."""
    options = await mongo_options(tmp_path)
    async with await open_mongo_store(options):
        pass
    async with AsyncMongoClient[Record](options.uri) as client:
        await client[options.database]["STORE"].update_one({}, {"$set": {"layout": 99}})
    with pytest.raises(StoreTooNewError, match="99"):
        await open_mongo_store(options)


async def test_many_open_an_empty_database_at_once(tmp_path: Path) -> None:
    """Processes that start together find one store."""
    options = await mongo_options(tmp_path)
    stores = await asyncio.gather(*(open_mongo_store(options) for _ in range(4)))
    await stores[0].append(WORKSPACE, make_executions(2))
    assert len(await stores[3].pending(WORKSPACE, 10)) == 2
    for store in stores:
        await store.close()


async def test_the_log_expires_by_the_setting(tmp_path: Path) -> None:
    """From when something was learned from; 0 days takes the expiry away."""
    options = await mongo_options(tmp_path)
    async with AsyncMongoClient[Record](options.uri) as client:
        for days, expected in ((90.0, [90 * 86_400]), (0.0, []), (0.5, [43_200])):
            async with await open_mongo_store(replace(options, retention_days=days)):
                log = client[options.database]["TOOL_EXECUTION_LOG"]
                indexes = [index async for index in await log.list_indexes()]
            found = [each for each in indexes if "expireAfterSeconds" in each]
            assert [each["expireAfterSeconds"] for each in found] == expected
            assert all(list(each["key"]) == ["learned_since"] for each in found)


@pytest.mark.real
async def test_a_server_that_comes_back_is_used_again(server: MongoServer) -> None:
    """Killed or frozen, it is away; what was acknowledged is there when it returns."""
    async with await open_mongo_store(quick(server)) as store:
        assert await store.append(WORKSPACE, make_executions(2)) == ["accepted"] * 2
        server.kill()
        with pytest.raises(StoreUnavailableError, match=str(server.port)):
            await store.append(WORKSPACE, make_executions(1, first=5))
        with pytest.raises(StoreUnavailableError):
            await store.pending(WORKSPACE, 10)
        server.run()
        assert len(await store.pending(WORKSPACE, 10)) == 2
        server.pause()
        with pytest.raises(StoreUnavailableError, match=str(server.port)):
            await store.append(WORKSPACE, make_executions(1, first=6))
        server.resume()
        verdicts = await store.append(WORKSPACE, make_executions(3))
        assert verdicts == ["duplicate", "duplicate", "accepted"]


def test_every_fault_of_the_server_has_its_own_error() -> None:
    """Without what a record holds, which the server's own messages repeat."""
    cases: list[tuple[int, str, type[StoreError]]] = [
        (14031, "", StoreFullError),
        (8, "No space left on device", StoreFullError),
        (8, "attempt to write a readonly database", StoreReadOnlyError),
        (10107, "", StoreReadOnlyError),
        (13435, "", StoreReadOnlyError),
        (91, "", StoreUnavailableError),
        (133, "", StoreUnavailableError),
        (189, "", StoreUnavailableError),
        (18, "", StoreError),
        (13, "", StoreError),
        (11600, "", StoreUnavailableError),
        (50, "", StoreUnavailableError),
        (10334, "", StoreError),
        (121, "", StoreError),
    ]
    for code, text, kind in cases:
        for error in (
            OperationFailure(f"{text} {SECRET}", code),
            BulkWriteError({"writeErrors": [{"code": code, "errmsg": f"{text} {SECRET}"}]}),
        ):
            found = faults.from_driver(error, "host:1/db")
            assert type(found) is kind
            assert "host:1/db" in str(found)
            assert SECRET not in str(found)
    stepped_down = faults.from_driver(NotPrimaryError("x", {"code": 10107}), "host:1/db")
    assert type(stepped_down) is StoreReadOnlyError
    for code in (91, 189, 11600, 11602):
        stepping = faults.from_driver(NotPrimaryError("x", {"code": code}), "host:1/db")
        assert type(stepping) is StoreUnavailableError
