"""The Qdrant adapter: how its collection is made and checked, and servers that fail."""

import asyncio
import logging
from contextlib import asynccontextmanager

import grpc
import pytest
from qdrant_client import models

from retrieval.index.protocol import (
    IndexMissingError,
    IndexModelMismatchError,
    IndexOfAnotherStoreError,
    QdrantPlace,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from retrieval.index.qdrant import (
    FORMAT,
    POINTS_PER_CALL,
    Connection,
    QdrantIndex,
    RequestMaker,
    check_collection_model,
    check_metadata,
    is_too_old,
    translate_error,
)
from tests.retrieval.index.documents import DIMENSION, document_id, point, question

CONFIG = {
    "format": FORMAT, "owner": "ours", "fingerprint": "hashing-1@96", "dimension": DIMENSION
}  # fmt: skip

SECRET = "sk-very-secret"  # noqa: S105 - of no server


async def _open(place: QdrantPlace, name: str = "made") -> QdrantIndex:
    return await QdrantIndex.open(place, name, dimension=DIMENSION, fingerprint="hashing-1@96")


def _server(port: int, **settings) -> QdrantPlace:
    return QdrantPlace("http://127.0.0.1:6333", grpc_port=port, **settings)


@pytest.fixture
def local(tmp_path):
    """The client's own store."""
    return QdrantPlace(f"local:{tmp_path}", prefix="our")


@pytest.fixture
async def client(local):
    """A client of that store, open while the test runs."""
    connection = Connection(local)
    with connection.use_client("look") as client:
        yield client
    await connection.aclose()


# Whose it is


@pytest.mark.parametrize(
    ("metadata", "error", "named"),
    [
        ({**CONFIG, "owner": "theirs"}, IndexOfAnotherStoreError, "theirs.*PREFIX"),
        ({**CONFIG, "format": 99}, VectorIndexError, "PREFIX.*aftercall rebuild"),
        ({"format": FORMAT}, VectorIndexError, "PREFIX.*aftercall rebuild"),
        ({}, VectorIndexError, "PREFIX.*aftercall rebuild"),
        (None, VectorIndexError, "PREFIX.*aftercall rebuild"),
        ({**CONFIG, "fingerprint": 7}, VectorIndexError, "PREFIX.*aftercall rebuild"),
    ],
)
def test_a_collection_of_another_store_or_version_is_refused(metadata, error, named):
    """The message names what is there, and what cures it."""
    with pytest.raises(error, match=rf"(?s){named}"):
        check_metadata(metadata, "ours", where="made at qdrant:6334")
    check_metadata(CONFIG, "ours", where="made at qdrant:6334")


@pytest.mark.parametrize("model", [("mini@1", DIMENSION), ("hashing-1@96", 384)])
def test_a_collection_of_another_model_is_refused(model):
    """The message names both models, and the rebuild that cures it."""
    with pytest.raises(IndexModelMismatchError, match=rf"(?s)96.*{model[0]}.*aftercall rebuild"):
        check_collection_model(CONFIG, model, where="made at qdrant:6334")


async def test_a_collection_of_somebody_else_is_left_alone(local, client):
    """It has the name and the vectors, but none of our metadata: nothing is written to it."""
    vectors = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
    await client.create_collection("our-made", vectors_config={"dense": vectors})
    with pytest.raises(VectorIndexError, match="not one that this version of Aftercall makes"):
        await _open(local)
    assert (await client.get_collection("our-made")).config.metadata is None


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("1.18.4", True), ("1.9.0", True), ("0.11.0", True), ("1.19.0", False),
        ("v1.20.1-dev", False), ("2.0.0", False), ("nightly", False), ("", False),
    ],
)  # fmt: skip
def test_a_server_that_would_rank_by_other_words_is_too_old(version, old):
    """Those before 1.19 know no IDF per question, and would ignore it silently."""
    assert is_too_old(version) is old


# How it is used


async def test_points_go_in_batches_and_the_last_of_an_id_stands(local, client):
    """Also where the two are in different batches."""
    index = await _open(local)
    count = 2 * POINTS_PER_CALL + 1
    points = [point(f"document {number}") for number in range(count)]
    await index.upsert_points(
        [point("document 0", "superseded"), *points, point("document 1", "last")]
    )
    assert await index.count_points() == count
    (hits,) = await index.search_points([question("last", terms="", limit=1)])
    assert hits[0].document_id == document_id("document 1")
    await index.close()


def test_the_best_of_several_shards_are_the_best_of_all():
    """Every shard has its own best; of all of them only the best of each side are kept."""
    maker = RequestMaker(shards=3)
    query = question("open a file", limit=2)
    dense, sparse = maker.make_requests(query)
    assert dense.limit == sparse.limit == 12  # two of each side of three shards
    ids = [document_id(f"{number}") for number in range(8)]
    cosines = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    terms = {ids[7]: 9.0, ids[0]: 8.0, ids[5]: 7.0, ids[3]: 0.0}
    rows = [
        [_row(each, cosine) for each, cosine in zip(ids, cosines, strict=True)],
        [_row(each, score) for each, score in terms.items()],
    ]
    hits = maker.read_hits(query, rows)
    assert [(hit.document_id, hit.score) for hit in hits] == [
        (ids[0], 8.0),
        (ids[1], 0.0),
        (ids[7], 9.0),
    ]


def _row(point_id: str, score: float) -> models.ScoredPoint:
    payload = {"workspace": "default", "tool_name": "", "server_name": "", "version": ""}
    return models.ScoredPoint(id=point_id, version=1, score=score, payload=payload)


async def test_a_write_that_the_server_puts_off_is_no_success(local, client, monkeypatch):
    """Acknowledged into its log, or not done in time: the queue must keep it."""
    index = await _open(local)
    for status in (models.UpdateStatus.ACKNOWLEDGED, models.UpdateStatus.WAIT_TIMEOUT):

        async def put_off(*_, status=status, **__):
            return models.UpdateResult(operation_id=1, status=status)

        monkeypatch.setattr(client, "upsert", put_off)
        monkeypatch.setattr(client, "delete", put_off)
        with pytest.raises(VectorIndexUnavailableError, match="sent again"):
            await index.upsert_points([point("a")])
        with pytest.raises(VectorIndexUnavailableError, match="sent again"):
            await index.delete([document_id("a")])
    await index.close()


# The client's own store


async def test_a_damaged_folder_is_an_error(tmp_path):
    """What the client cannot read is reported as ours."""
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(VectorIndexError, match="cannot open the vectors"):
        await _open(QdrantPlace(f"local:{tmp_path}"))


# Servers that fail


async def test_a_server_that_is_away_is_unavailable(unused_tcp_port):
    """Not an error of the vectors: the address is named, and it may be tried again."""
    with pytest.raises(VectorIndexUnavailableError, match=f"127.0.0.1:{unused_tcp_port}.*runs"):
        await _open(_server(unused_tcp_port, timeout_s=2))


@asynccontextmanager
async def silence():
    """A server that takes connections and says nothing: its port, and whether it was asked."""
    asked, released = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader, writer):
        asked.set()
        await released.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked
        released.set()


async def test_a_server_that_hangs_is_unavailable_when_the_time_is_over():
    """It takes connections, and says nothing."""
    async with silence() as (port, _):
        with pytest.raises(VectorIndexUnavailableError, match="not answer"):
            await _open(_server(port, timeout_s=0.5))


async def test_a_call_under_way_ends_with_our_error_when_the_index_is_closed():
    """Its channel cancels it, which must not look as if somebody had cancelled the caller."""
    async with silence() as (port, asked):
        index = QdrantIndex(Connection(_server(port)), "made", dimension=DIMENSION, shards=1)
        counting = asyncio.create_task(index.count_points())
        await asked.wait()
        await index.close()
        with pytest.raises(VectorIndexError):
            await counting


@pytest.mark.parametrize(
    ("code", "error", "cure"),
    [
        ("UNAVAILABLE", VectorIndexUnavailableError, "AFTERCALL_QDRANT_URL"),
        ("DEADLINE_EXCEEDED", VectorIndexUnavailableError, "tried again"),
        ("RESOURCE_EXHAUSTED", VectorIndexUnavailableError, "tried again"),
        ("UNAUTHENTICATED", VectorIndexError, "AFTERCALL_QDRANT_API_KEY"),
        ("PERMISSION_DENIED", VectorIndexError, "AFTERCALL_QDRANT_API_KEY"),
        ("NOT_FOUND", IndexMissingError, "aftercall rebuild"),
        ("INTERNAL", VectorIndexError, "the log of Qdrant"),
        ("INVALID_ARGUMENT", VectorIndexError, "aftercall rebuild"),
    ],
)
def test_every_error_of_a_server_names_its_cure(code, error, cure):
    """By gRPC's codes."""
    metadata = grpc.aio.Metadata()
    raised = grpc.aio.AioRpcError(grpc.StatusCode[code], metadata, metadata, details="because")
    translated = translate_error(raised, what="search the vectors", where="qdrant:6334")
    assert type(translated) is error
    for part in ("cannot search the vectors at qdrant:6334", "because", cure):
        assert part in str(translated)


@pytest.mark.parametrize("code", ["INTERNAL", "UNKNOWN", "INVALID_ARGUMENT"])
@pytest.mark.parametrize(
    "details",
    [
        "Service internal error: Wal error: No space left on device (os error 28)",
        "Disk is full, writes are refused", "Not enough space available for optimization",
    ],
)  # fmt: skip
def test_a_full_disk_is_told_to_free_space(code, details):
    """Neither its log nor a rebuild would help; whatever code it has."""
    metadata = grpc.aio.Metadata()
    raised = grpc.aio.AioRpcError(grpc.StatusCode[code], metadata, metadata, details=details)
    translated = str(translate_error(raised, what="add to the vectors", where="qdrant:6334"))
    assert "free space" in translated
    assert "rebuild" not in translated


# Addresses and keys


@pytest.mark.parametrize(
    ("url", "cure"),
    [
        ("qdrant:6333", "http://qdrant:6333"),
        ("local:", "local:DIR"),
        ("", "http://qdrant:6333"),
        ("ftp://qdrant", "http://qdrant:6333"),
        ("http://", "http://qdrant:6333"),
        ("http://qdrant:none", "http://qdrant:6333"),
        (f"https://user:{SECRET}@qdrant:6333", "AFTERCALL_QDRANT_API_KEY"),
        (f"https://{SECRET}@qdrant:x", "http://qdrant:6333"),
    ],
)
def test_an_address_that_will_not_do_is_refused_without_showing_it(url, cure):
    """It may hold a password."""
    with pytest.raises(VectorIndexError, match=cure) as caught:
        Connection(QdrantPlace(url))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", [f"{SECRET}\n", f"{SECRET}é"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(key):
    """The channel would say so with the key in its message."""
    with pytest.raises(VectorIndexError, match="AFTERCALL_QDRANT_API_KEY") as caught:
        Connection(QdrantPlace("https://qdrant:6333", api_key=key))
    assert SECRET not in str(caught.value)


async def test_the_key_is_in_no_error_and_no_log(unused_tcp_port, caplog):
    """With the whole chain of causes printed."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(VectorIndexUnavailableError) as caught:
        await _open(_server(unused_tcp_port, api_key=SECRET, timeout_s=2))
    chain: list[BaseException] = [caught.value]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    shown = "\n".join([*(f"{error!r} {error}" for error in chain), caplog.text])
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("url", "where", "tls"),
    [
        ("http://qdrant:6333", "qdrant:7000", False),
        ("https://qdrant.example", "qdrant.example:7000", True),
        ("http://[::1]:6333", "[::1]:7000", False),
    ],
)
async def test_the_scheme_says_whether_it_is_tls(url, where, tls):
    """A key alone does not: it is sent over what the address says."""
    connection = Connection(QdrantPlace(url, api_key=SECRET, grpc_port=7000))
    assert connection.where == where
    with connection.use_client("look") as client:
        assert client._client._https is tls
    await connection.aclose()
