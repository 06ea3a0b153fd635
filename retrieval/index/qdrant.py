"""The vector index on a Qdrant server, or a cluster, for any number of processes.

It answers as the embedded index does, up to ties and what follows:

- Segments larger than Qdrant's `indexing_threshold` are ranked by int8 over a graph, so a document
  at the end of an answer may be missing that an exact search finds; smaller ones are searched
  exactly. Anything that is found has the same scores: the cosine of vectors in half precision,
  within 1e-3.
- Every shard counts the IDF over its own documents, so with several, BM25's scores differ from the
  embedded index's by what the shards' shares differ; small corpora feel it most.
- With `write_consistency` below `replicas`, a replica may answer without the last writes.

An address `local:DIR` names the client library's own store, which keeps everything in Python lists
and searches them one by one, on the event loop: for tests and trials of some thousand documents. A
folder can be open once, so all of this process share one client of it.

The collection's metadata say the format, the log store and the model, as `index.json` does of an
embedded index: a collection of another store, or of another program, is neither used nor deleted.
"""

import asyncio
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal

from retrieval.index import protocol as p

LOCAL = "local:"
"""What an address begins with that names a folder of the client's own store."""
FORMAT = 2
"""Of the collection: payload, BM25's settings, precision."""
OLDEST_SERVER = (1, 19)
"""The first with an IDF per question (`params.idf`). An older one ignores what it does not know, so
it would rank by other words than the embedded index, without a word."""
QUANTILE = 0.99
"""Share of a vector's components within int8's range; Qdrant's own example value."""
GRPC_OPTIONS = {
    # Tried again soon after an outage; gRPC's own pause grows to two minutes.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # A connection that a proxy has dropped without a word is noticed during the next call.
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 5_000,
}
_REBUILD = "if this persists, `aftercall rebuild` makes the vectors anew"
_ADDRESS = "write AFTERCALL_QDRANT_URL as in http://qdrant:6333"
_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
}
"""Not answering, not in time, or asking for patience."""
_CURES = {
    grpc.StatusCode.UNAUTHENTICATED: "check AFTERCALL_QDRANT_API_KEY, which must be able to write",
    grpc.StatusCode.PERMISSION_DENIED: "AFTERCALL_QDRANT_API_KEY must be a key that may write",
}
_LOCAL_GONE = re.compile(r"^Collection .* not found")
"""What the client's own store states of a collection that is not there."""
_GONE = "the collection is gone; `aftercall rebuild` makes the vectors anew from the log"
_FULL = re.compile(
    "no space left|disk (is )?full|not enough (disk )?space|out of disk", re.IGNORECASE
)
"""What Qdrant states of its disk, by one code or another."""
_local_clients: dict[str, tuple[AsyncQdrantClient, set["Connection"]]] = {}
"""Of this process, by folder, with their users; given up with the last one."""


class Connection:
    """A client of the Qdrant at an address; a server is not called yet."""

    def __init__(self, place: p.QdrantPlace) -> None:
        self._closed = False
        self._folder: str | None = None
        if place.url == LOCAL:
            raise p.VectorIndexError("the address of Qdrant names no folder: write local:DIR")
        if place.url.startswith(LOCAL):
            self._folder = str(Path(place.url.removeprefix(LOCAL)).absolute())
            self.where = f"{LOCAL}{self._folder}"
            """The address for messages: no credentials are in it."""
            # It warns of what it does without (approximation) and of its slowness with many points,
            # which that asks for it knows.
            warnings.filterwarnings("ignore", message="Local mode ", category=UserWarning)
            if self._folder not in _local_clients:
                try:
                    client = AsyncQdrantClient(
                        path=self._folder, force_disable_check_same_thread=True
                    )
                except Exception as error:
                    raise translate_error(
                        error, what="open the vectors", where=self.where
                    ) from error
                _local_clients[self._folder] = (client, set())
            self._client, users = _local_clients[self._folder]
            users.add(self)
            return
        self.where = f"{_host_of(place.url)}:{place.grpc_port}"
        key = place.api_key
        if key and not (key.isascii() and key.isprintable()):
            raise p.VectorIndexError(
                "the API key of Qdrant has characters that no header takes: look for a line break "
                "in AFTERCALL_QDRANT_API_KEY"
            )
        try:
            self._client = AsyncQdrantClient(
                url=place.url,
                grpc_port=place.grpc_port,
                prefer_grpc=True,
                # as a header: for `api_key=` without TLS the client warns each time
                headers={"api-key": key} if key else None,
                timeout=max(1, ceil(place.timeout_s)),
                grpc_options=dict(GRPC_OPTIONS),
                check_compatibility=False,  # asks in a thread and warns; `ensure_collection` asks
            )
        except Exception as error:
            raise translate_error(
                error, what="use the address of Qdrant", where=self.where
            ) from error

    @property
    def is_local(self) -> bool:
        """Return whether it is the client's own store."""
        return self._folder is not None

    @contextmanager
    def use_client(self, what: str) -> Iterator[AsyncQdrantClient]:
        """Yield the client, and whatever it raises as `VectorIndexError`."""
        if self._closed:
            raise p.VectorIndexError("this index is closed; open another")
        try:
            yield self._client
        except asyncio.CancelledError:
            # gRPC cancels the calls of a channel that is closed, which no one asked for
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise p.VectorIndexError("this index is closed; open another") from None
            raise
        except p.VectorIndexError:
            raise
        except Exception as error:
            raise translate_error(error, what=what, where=self.where) from error

    async def aclose(self) -> None:
        """Let go of the connections; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._folder is not None:
            _, users = _local_clients[self._folder]
            users.discard(self)
            if users:
                return
            del _local_clients[self._folder]
        await self._client.close()


def _host_of(url: str) -> str:
    """Return the host of an address, which may be shown; credentials in it may not."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise p.VectorIndexError(f"the address of Qdrant is none: {_ADDRESS}")
    if parts.username is not None or parts.password is not None:
        raise p.VectorIndexError(
            f"the address of Qdrant holds credentials, which it takes as a key: {_ADDRESS} and the "
            "key as AFTERCALL_QDRANT_API_KEY"
        )
    return f"[{host}]" if ":" in host else host


def translate_error(error: Exception, *, what: str, where: str) -> p.VectorIndexError:
    """Return the error to raise for one of the client's; `where` is without credentials."""
    failed = f"cannot {what} at {where}"
    if isinstance(error, ResourceExhaustedResponse):
        return p.VectorIndexUnavailableError(
            f"{failed}: Qdrant asks to wait {error.retry_after_s} s ({error}); try again then"
        )
    if not isinstance(error, grpc.aio.AioRpcError):
        if isinstance(error, ValueError) and _LOCAL_GONE.search(str(error)):
            return p.IndexMissingError(f"{failed}: {error}: {_GONE}")
        return p.VectorIndexError(f"{failed}: {error}; {_REBUILD}")
    code = error.code()
    said = f"{failed}: {code.name}: {error.details() or 'no details'}"
    if _FULL.search(error.details() or ""):
        return p.VectorIndexError(
            f"{said}: the disk of Qdrant is full: free space on it, or add some; what waits for "
            "its vector gets it then"
        )
    if code == grpc.StatusCode.NOT_FOUND:
        return p.IndexMissingError(f"{said}: {_GONE}")
    if code in _AWAY:
        return p.VectorIndexUnavailableError(
            f"{said}: Qdrant does not answer; see that it runs and that AFTERCALL_QDRANT_URL and "
            "AFTERCALL_QDRANT_GRPC_PORT are right; it is tried again"
        )
    return p.VectorIndexError(f"{said}; {_CURES.get(code, f'see the log of Qdrant; {_REBUILD}')}")


def payload_indexes() -> dict[str, models.KeywordIndexParams]:
    """Fields by which questions are filtered. The vectors of one workspace lie side by side.

    What leaves some dozens of documents, a server's name, needs no links of its own.
    """
    links = {p.WORKSPACE: True, p.KIND: True, p.TOOL: True, p.SERVER: False}
    return {
        field: models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD,
            is_tenant=True if field == p.WORKSPACE else None,
            enable_hnsw=linked,
        )
        for field, linked in links.items()
    }


async def ensure_collection(
    connection: Connection, name: str, place: p.QdrantPlace, *, dimension: int, fingerprint: str
) -> int:
    """Make the collection, or what is missing of a half-made one; the number of its shards."""
    with connection.use_client("reach Qdrant") as client:
        version = (await client.info()).version
    if not connection.is_local and is_too_old(version):
        raise p.VectorIndexError(
            f"Qdrant at {connection.where} is {version}, {OLDEST_SERVER[0]}.{OLDEST_SERVER[1]} or "
            "newer is needed: update it, one minor version after the other"
        )
    info = await _read_collection(connection, name)
    if info is None:
        info = await _create_collection(connection, name, place, dimension, fingerprint)
    where = f"{name} at {connection.where}"
    check_metadata(info.config.metadata, place.owner, where=where)
    check_collection_model(info.config.metadata, (fingerprint, dimension), where=where)
    if not connection.is_local:  # which has no payload indexes
        for field, schema in payload_indexes().items():
            if field not in info.payload_schema:
                with connection.use_client(f"index {field} of the collection {name}") as client:
                    await client.create_payload_index(name, field, field_schema=schema, wait=True)
    return info.config.params.shard_number or 1


def check_metadata(metadata: dict[str, Any] | None, owner: str, *, where: str) -> None:
    """Raises `VectorIndexError` unless a collection is an index of ours, of this log store."""
    said = metadata or {}
    kinds = {"fingerprint": str, "dimension": int, "owner": str}
    is_whole = all(isinstance(said.get(name), kind) for name, kind in kinds.items())
    if said.get("format") != FORMAT or not is_whole:
        raise p.VectorIndexError(
            f"the collection {where} is not one that this version of Aftercall makes: choose "
            "another AFTERCALL_QDRANT_PREFIX, or delete the collection and `aftercall rebuild`"
            " makes the vectors anew"
        )
    _check_owner(said["owner"], owner, where)


def _check_owner(made_for: str, owner: str, where: str) -> None:
    p.check_owner(
        made_for,
        owner,
        what=f"the collection {where} is",
        cure="Give each store an AFTERCALL_QDRANT_PREFIX of its own; if that store is no more, "
        "delete the collection",
    )


def check_collection_model(
    metadata: dict[str, Any] | None, model: tuple[str, int], *, where: str
) -> None:
    """Raises `IndexModelMismatchError` unless the vectors of an index of ours are of this model."""
    said = metadata or {}
    p.check_model((said["fingerprint"], said["dimension"]), model, where=where)


def is_too_old(version: str) -> bool:
    """Return whether a server's version is before `OLDEST_SERVER`.

    A text that is no number is not older.
    """
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST_SERVER


async def _read_collection(connection: Connection, name: str) -> models.CollectionInfo | None:
    with connection.use_client(f"open the collection {name}") as client:
        return await client.get_collection(name) if await client.collection_exists(name) else None


async def _create_collection(
    connection: Connection, name: str, place: p.QdrantPlace, dimension: int, fingerprint: str
) -> models.CollectionInfo:
    """Return a new collection, or that which another process made at the same time.

    The vectors lie on disk in half precision (the cosine of unit vectors changes by some 2e-5), one
    byte a component in RAM: a search ranks by those and takes the cosines of the best from the
    disk. The graph has links over everything (`m`), since a question sees its workspace *and* the
    shipped corpus, and further ones within each workspace, kind and tool (`payload_m`).
    """
    failure = p.VectorIndexError(
        f"the collection {name} at {connection.where} was deleted meanwhile"
    )
    try:
        with connection.use_client(f"make the collection {name}") as client:
            await client.create_collection(
                name,
                vectors_config={
                    p.DENSE: models.VectorParams(
                        size=dimension,
                        distance=models.Distance.COSINE,
                        datatype=models.Datatype.FLOAT16,
                        memory=models.Memory.COLD,
                    )
                },
                sparse_vectors_config={
                    p.TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)
                },
                quantization_config=models.ScalarQuantization(
                    scalar=models.ScalarQuantizationConfig(
                        type=models.ScalarType.INT8, quantile=QUANTILE, memory=models.Memory.PINNED
                    )
                ),
                hnsw_config=models.HnswConfigDiff(m=16, payload_m=16, ef_construct=100),
                payload=models.PayloadStorageParams(memory=models.Memory.COLD),
                shard_number=place.shards,
                replication_factor=place.replicas,
                write_consistency_factor=place.write_consistency,
                metadata={
                    "format": FORMAT,
                    "owner": place.owner,
                    "fingerprint": fingerprint,
                    "dimension": dimension,
                },
            )
    except p.VectorIndexError as error:
        failure = error
    made = await _read_collection(connection, name)
    if made is None:
        raise failure
    return made


POINTS_PER_CALL = 64
"""A point takes 50 µs to encode, on the event loop, and 1.8 KiB on the wire (384 dimensions)."""
IDS_PER_CALL = 1_000
OVERSAMPLING = 2.0
"""Candidates by int8, as a multiple of those asked for; their cosines are taken then."""
NEAREST = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
)
EXACT = models.SearchParams(exact=True)
"""For scores of candidates that are found already."""
log = logging.getLogger(__name__)


class RequestMaker:
    """Makes requests to a collection of so many shards, and reads what they brought."""

    def __init__(self, *, shards: int) -> None:
        self._shards = shards
        self._terms = p.TermEncoder()

    def make_point(self, point: p.IndexPoint) -> models.PointStruct:
        """Return a document as it is stored."""
        vectors: dict[str, list[float] | models.SparseVector] = {p.DENSE: point.vector.tolist()}
        if (terms := self._terms.encode_document(point.terms)) is not None:
            vectors[p.TERMS] = models.SparseVector(indices=terms.indices, values=terms.values)
        return models.PointStruct(id=point.document_id, vector=vectors, payload=p.payload_of(point))

    def make_requests(self, query: p.IndexQuery) -> list[models.QueryRequest]:
        """Return one request, or two where both sides' scores are asked for.

        Cosines, then BM25's.
        """
        only = _make_filter(query)
        dense: dict[str, Any] = {"query": query.vector.tolist(), "using": p.DENSE}
        answer: dict[str, Any] = {
            "with_payload": p.OF_A_HIT, "score_threshold": query.least_similarity
        }  # fmt: skip
        encoded = self._terms.encode_query(query.terms)
        if encoded is None:
            return [
                models.QueryRequest(
                    **dense, filter=only, params=NEAREST, limit=query.limit, **answer
                )
            ]
        terms: dict[str, Any] = {
            "query": models.SparseVector(indices=encoded.indices, values=encoded.values),
            "using": p.TERMS,
            "params": models.SearchParams(
                idf=models.IdfCorpusParams(corpus=_make_filter(query.idf_corpus()))
            ),
        }
        sides = [
            models.Prefetch(**dense, filter=only, params=NEAREST, limit=query.limit),
            models.Prefetch(**terms, filter=only, limit=query.limit),
        ]
        # Every shard has its own best of each side: all are asked for, with both scores, and
        # `hits` keeps what is among the best of all shards.
        limit = 2 * query.limit * self._shards
        return [
            models.QueryRequest(**dense, prefetch=sides, params=EXACT, limit=limit, **answer),
            models.QueryRequest(**terms, prefetch=sides, limit=limit, with_payload=False),
        ]

    def read_hits(
        self, query: p.IndexQuery, answers: Sequence[Sequence[models.ScoredPoint]]
    ) -> list[p.Hit]:
        """Return what the requests of a question brought, nearest first, ties by document id."""
        hits = p.to_hits(query, *answers)
        if self._shards == 1 or len(answers) == 1:
            return hits
        by_terms = sorted(answers[1], key=lambda row: (-row.score, str(row.id)))
        kept = {hit.document_id for hit in hits[: query.limit]}
        kept.update(str(row.id) for row in by_terms[: query.limit] if row.score > 0)
        return [hit for hit in hits if hit.document_id in kept]


def _make_filter(query: p.IndexQuery) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=field, match=models.MatchAny(any=values))
        for field, values in query.field_conditions().items()
    ]
    if query.document_ids is not None:
        must.append(models.HasIdCondition(has_id=list(dict.fromkeys(query.document_ids))))
    return models.Filter(must=must)


class QdrantIndex:
    """`VectorIndex` on a collection. Construct with `await QdrantIndex.open(connection, ...)`.

    A write is acknowledged when the replicas that `write_consistency` asks for have it in their
    logs and answer by it. Qdrant leaves it to the system when a log reaches the disk, so a power
    cut can take the last seconds of the only replica.
    """

    def __init__(
        self, connection: Connection, collection: str, *, dimension: int, shards: int
    ) -> None:
        self._connection = connection
        self.name = "qdrant-local" if connection.is_local else "qdrant"
        self._collection = collection
        self._dimension = dimension
        self._maker = RequestMaker(shards=shards)

    @classmethod
    async def open(
        cls, place: p.QdrantPlace, name: str, *, dimension: int, fingerprint: str
    ) -> "QdrantIndex":
        """Open the index in a collection, or make it. The caller closes it."""
        if place.api_key and place.url.startswith("http://"):
            log.warning("Qdrant's key is sent without TLS; use https outside of a private network")
        connection, collection = Connection(place), f"{place.prefix}-{name}"
        model: dict[str, Any] = {"dimension": dimension, "fingerprint": fingerprint}
        try:
            shards = await ensure_collection(connection, collection, place, **model)
        except BaseException:
            await connection.aclose()
            raise
        return cls(connection, collection, dimension=dimension, shards=shards)

    async def upsert_points(self, points: Sequence[p.IndexPoint]) -> None:
        """See `VectorIndex.upsert_points`. One call a batch, in order."""
        for point in points:
            p.check_vector(point.vector, self._dimension)
        last = {point.document_id: point for point in points}  # as one after the other would do
        for batch in p.make_batches(list(last.values()), POINTS_PER_CALL):
            with self._connection.use_client("add to the vectors") as client:
                done = await client.upsert(
                    self._collection,
                    [self._maker.make_point(point) for point in batch],
                    wait=True,
                    ordering=models.WriteOrdering.STRONG,
                )
            self._require_completed(done)
            await asyncio.sleep(0)  # the local store never yields

    async def delete(self, document_ids: Sequence[str]) -> None:
        for batch in p.make_batches(document_ids, IDS_PER_CALL):
            with self._connection.use_client("delete from the vectors") as client:
                done = await client.delete(
                    self._collection,
                    models.PointIdsList(points=[*batch]),
                    wait=True,
                    ordering=models.WriteOrdering.STRONG,
                )
            self._require_completed(done)

    async def search_points(self, queries: Sequence[p.IndexQuery]) -> list[list[p.Hit]]:
        """See `VectorIndex.search_points`. One call for all of them."""
        for query in queries:
            p.check_vector(query.vector, self._dimension)
        with self._connection.use_client("search the vectors") as client:
            asked = [
                [] if query.finds_nothing else self._maker.make_requests(query) for query in queries
            ]
            flat = [request for several in asked for request in several]
            if not flat:
                return [[] for _ in queries]
            found = iter(await client.query_batch_points(self._collection, flat))
            brought = [[next(found).points for _ in several] for several in asked]
            return [
                self._maker.read_hits(query, rows) if rows else []
                for query, rows in zip(queries, brought, strict=True)
            ]

    async def count_points(self) -> int:
        with self._connection.use_client("count the vectors") as client:
            return (await client.count(self._collection, exact=True)).count

    async def close(self) -> None:
        """See `VectorIndex.close`. Calls that are under way end with `VectorIndexError`."""
        await self._connection.aclose()

    def _require_completed(self, done: models.UpdateResult) -> None:
        if done.status != models.UpdateStatus.COMPLETED:
            raise p.VectorIndexUnavailableError(
                f"Qdrant at {self._connection.where} has taken a write but not done it in time "
                f"({done.status}); the write is sent again, which changes nothing if it is done by "
                "then"
            )


async def delete_collection(place: p.QdrantPlace, name: str) -> None:
    """Delete a collection; see `opening.destroy_index`."""
    collection = f"{place.prefix}-{name}"
    async with aclosing(Connection(place)) as connection:
        if (info := await _read_collection(connection, collection)) is None:
            return
        check_metadata(
            info.config.metadata, place.owner, where=f"{collection} at {connection.where}"
        )
        with connection.use_client(f"delete the collection {collection}") as client:
            store = client._client  # noqa: SLF001  # it drops a collection with its file open
            if isinstance(store, AsyncQdrantLocal):
                store.collections[collection].close()
            await client.delete_collection(collection)


async def list_names(place: p.QdrantPlace) -> list[str]:
    """Return what follows the prefix in the names of all collections that have it."""
    prefix = f"{place.prefix}-"
    async with aclosing(Connection(place)) as connection:
        with connection.use_client("list the collections") as client:
            found = (await client.get_collections()).collections
    return [each.name.removeprefix(prefix) for each in found if each.name.startswith(prefix)]


async def refuse_foreign_collection(place: p.QdrantPlace, pattern: re.Pattern[str]) -> None:
    """Refuse a collection of another store, among the names that match a pattern."""
    async with aclosing(Connection(place)) as connection:
        for name, made_for in (await _collection_owners(connection, place, pattern)).items():
            if isinstance(made_for, str):
                where = f"{place.prefix}-{name} at {connection.where}"
                _check_owner(made_for, place.owner, where)


async def list_own_names(place: p.QdrantPlace, pattern: re.Pattern[str]) -> list[str]:
    """Return those of the names that match a pattern whose collections are of the place's store."""
    async with aclosing(Connection(place)) as connection:
        owners = await _collection_owners(connection, place, pattern)
    return [name for name, made_for in owners.items() if made_for == place.owner]


async def _collection_owners(
    connection: Connection, place: p.QdrantPlace, pattern: re.Pattern[str]
) -> dict[str, object]:
    """Return what each collection states of whose it is, by its name behind the prefix."""
    owners: dict[str, object] = {}
    for name in await list_names(place):
        if pattern.fullmatch(name):
            info = await _read_collection(connection, f"{place.prefix}-{name}")
            owners[name] = (info.config.metadata or {}).get("owner") if info else None
    return owners
