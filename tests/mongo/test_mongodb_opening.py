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
from mongo.mongodb import database
from mongo.mongodb.database import Record
from mongo.mongodb.store import MongoOptions, open_mongo_store
from mongo.records import Commit, Row
from tests.mongo.conftest import mongo_options
from tests.mongo.store_samples import WORKSPACE, closing, make_events, read_all

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
        await database["KNOWLEDGE"].insert_one({"_id": "theirs"})
        with pytest.raises(StoreDamagedError, match="KNOWLEDGE"):
            await open_mongo_store(options)
        assert await database.list_collection_names() == ["KNOWLEDGE"]


@pytest.mark.parametrize(
    ("layout", "error"), [(99, StoreTooNewError), (1, StoreDamagedError)], ids=["newer", "older"]
)
async def test_a_database_of_another_version_is_left_alone(
    tmp_path: Path, layout: int, error: type[StoreError]
) -> None:
    """It is said which layout it has."""
    options = await mongo_options(tmp_path)
    async with closing(await open_mongo_store(options)):
        pass
    async with AsyncMongoClient[Record](options.uri) as client:
        await client[options.database]["STORE"].update_one({}, {"$set": {"layout": layout}})
    with pytest.raises(error, match=str(layout)):
        await open_mongo_store(options)


async def test_many_open_an_empty_database_at_once(tmp_path: Path) -> None:
    """Processes that start together find one store."""
    options = await mongo_options(tmp_path)
    stores = await asyncio.gather(*(open_mongo_store(options) for _ in range(4)))
    await stores[0].events.append(WORKSPACE, make_events(2))
    assert len(await read_all(stores[3].events)) == 2
    for store in stores:
        await store.close()


async def test_what_is_too_large_is_refused_alone(tmp_path: Path) -> None:
    """What others append at the same moment is stored."""
    large = replace(make_events(1)[0], data=bytes(16 << 20))
    async with closing(await open_mongo_store(await mongo_options(tmp_path))) as store:
        answers = await asyncio.gather(
            store.events.append(WORKSPACE, make_events(2, first=1)),
            store.events.append(WORKSPACE, [large]),
            return_exceptions=True,
        )
        assert answers[0] == ["accepted", "accepted"]
        assert isinstance(answers[1], StoreError)
        assert "too large" in str(answers[1])
        with pytest.raises(StoreError, match="too large"):
            await store.knowledge.commit(Commit(WORKSPACE, [Row("rule", "a", bytes(17 << 20))]))
        assert await store.knowledge.read_cursors() == {}


async def test_closing_waits_for_what_was_begun(tmp_path: Path) -> None:
    """What was accepted is stored."""
    options = await mongo_options(tmp_path)
    store = await open_mongo_store(options)
    appends = [asyncio.create_task(store.events.append(WORKSPACE, [e])) for e in make_events(9)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*appends) == [["accepted"]] * 9
    async with closing(await open_mongo_store(options)) as again:
        assert len(await read_all(again.events)) == 9


def test_every_fault_of_the_server_has_its_own_error() -> None:
    """Without what a record holds, which the server's own messages repeat."""
    cases: list[tuple[int, str, type[StoreError]]] = [
        (14031, "", StoreFullError), (8, "No space left on device", StoreFullError),
        (8, "attempt to write a readonly database", StoreReadOnlyError),
        (10107, "", StoreReadOnlyError), (13435, "", StoreReadOnlyError),
        (91, "", StoreUnavailableError), (133, "", StoreUnavailableError),
        (189, "", StoreUnavailableError), (18, "", StoreError), (13, "", StoreError),
        (11600, "", StoreUnavailableError), (50, "", StoreUnavailableError),
        (10334, "", StoreError), (121, "", StoreError),
    ]  # fmt: skip
    for code, text, kind in cases:
        for error in (
            OperationFailure(f"{text} {SECRET}", code),
            BulkWriteError({"writeErrors": [{"code": code, "errmsg": f"{text} {SECRET}"}]}),
        ):
            found = database.from_driver(error, "host:1/db")
            assert type(found) is kind
            assert "host:1/db" in str(found)
            assert SECRET not in str(found)
    stepped_down = database.from_driver(NotPrimaryError("x", {"code": 10107}), "host:1/db")
    assert type(stepped_down) is StoreReadOnlyError
    for code in (91, 189, 11600, 11602):
        stepping = database.from_driver(NotPrimaryError("x", {"code": code}), "host:1/db")
        assert type(stepping) is StoreUnavailableError
