"""The collection that an index is on a Qdrant: how it is made, and whose it is.

Its metadata say the format and the model, as `index.json` does of an embedded index.
"""

import asyncio
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

from retrieval.index.protocol import (
    DENSE,
    KIND,
    SERVER,
    TERMS,
    TOOL,
    VERSION,
    WORKSPACE,
    IndexInUseError,
    IndexModelMismatchError,
    VectorIndexError,
    VectorIndexUnavailableError,
)

_REBUILD = "if this persists, `aftercall rebuild` makes the vectors anew"

_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
}
"""Not answering, not in time, or asking for patience."""

_REFUSED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}


def translate(error: Exception, *, what: str, where: str) -> VectorIndexError:
    """The error to raise for one of the client's.

    Args:
        error: what it raised.
        what: was to be done, such as "search the vectors".
        where: the address, without credentials.
    """
    failed = f"cannot {what} at {where}"
    if isinstance(error, ResourceExhaustedResponse):
        return VectorIndexUnavailableError(
            f"{failed}: Qdrant asks to wait {error.retry_after_s} s ({error}); try again then"
        )
    if not isinstance(error, grpc.aio.AioRpcError):
        return VectorIndexError(f"{failed}: {error}; {_REBUILD}")
    code, details = error.code(), error.details() or "no details"
    if code in _AWAY:
        return VectorIndexUnavailableError(
            f"{failed}: Qdrant does not answer ({code.name}: {details}); see that it runs and that "
            "AFTERCALL_QDRANT_URL and AFTERCALL_QDRANT_GRPC_PORT are right; it is tried again"
        )
    if code in _REFUSED:
        return VectorIndexError(
            f"{failed}: Qdrant refuses ({code.name}: {details}); check AFTERCALL_QDRANT_API_KEY, "
            "which must be one that may write"
        )
    if code is grpc.StatusCode.NOT_FOUND:
        return VectorIndexError(
            f"{failed}: the collection is gone ({details}); `aftercall rebuild` makes the vectors "
            "anew from the log"
        )
    return VectorIndexError(f"{failed}: {code.name}: {details}; see Qdrant's own log; {_REBUILD}")


LOCAL = "local:"
"""What an address begins with that names a folder, or `:memory:`, of the client's own store."""

GRPC_OPTIONS = {
    # Tried again soon after an outage; gRPC's own pause grows to two minutes.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # A connection that a proxy has dropped without a word is noticed during the next call.
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 5_000,
}


@dataclass
class _Shared:
    client: AsyncQdrantClient
    users: int = 0


_LOCAL_CLIENTS: dict[str, _Shared] = {}
"""Of this process, by folder; given up with their last user."""


class Connection:
    """A client and what its errors are to say. Construct with `connect`."""

    def __init__(self, client: AsyncQdrantClient, *, where: str, shared: str | None = None) -> None:
        self._client = client
        self._shared = shared
        self._closed = False
        self.where = where
        """The address for messages: no credentials are in it."""

    @property
    def is_local(self) -> bool:
        """Whether it is the client's own store."""
        return self._shared is not None

    @contextmanager
    def doing(self, what: str) -> Iterator[AsyncQdrantClient]:
        """The client, and whatever it raises as `VectorIndexError`."""
        if self._closed:
            raise _closed_error()
        try:
            yield self._client
        except asyncio.CancelledError:
            # gRPC cancels the calls of a channel that is closed, which nobody asked for
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise _closed_error() from None
            raise
        except VectorIndexError:
            raise
        except Exception as error:
            raise translate(error, what=what, where=self.where) from error

    async def close(self) -> None:
        """Let go of the connections; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._shared is not None:
            shared = _LOCAL_CLIENTS[self._shared]
            shared.users -= 1
            if shared.users:
                return
            del _LOCAL_CLIENTS[self._shared]
        await self._client.close()


def connect(
    url: str, *, api_key: str | None = None, grpc_port: int = 6334, timeout_s: float = 20.0
) -> Connection:
    """A client of the Qdrant at an address; a server is not called yet.

    Args:
        url: `http://host:port`, `https://...` for TLS, or `local:DIR`. The port is the one of REST,
            which nothing uses; a path is ignored.
        api_key: Sent with every call; an empty one is none.
        grpc_port: Of the same host.
        timeout_s: Of one call; rounded up to whole seconds, which is what the client takes.

    Raises:
        IndexInUseError: when another process has the folder open.
        VectorIndexError: when the address, the key or the folder will not do.
    """
    if url.startswith(LOCAL):
        return _connect_local(url.removeprefix(LOCAL))
    host = _host(url)
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise VectorIndexError(
            "the API key of Qdrant has characters that no header takes: look for a line break in "
            "AFTERCALL_QDRANT_API_KEY"
        )
    where = f"{host}:{grpc_port}"
    try:
        client = AsyncQdrantClient(
            url=url,
            grpc_port=grpc_port,
            prefer_grpc=True,
            # as a header: for `api_key=` on a connection without TLS the client warns each time
            headers={"api-key": api_key} if api_key else None,
            timeout=_whole_seconds(timeout_s),
            grpc_options=dict(GRPC_OPTIONS),
            check_compatibility=False,  # asks in a thread and warns; `qdrant_collection` asks too
        )
    except Exception as error:
        raise translate(error, what="use the address of Qdrant", where=where) from error
    return Connection(client, where=where)


def _connect_local(folder: str) -> Connection:
    if not folder:
        raise VectorIndexError("the address of Qdrant names no folder: write local:DIR")
    key = folder if folder == ":memory:" else str(Path(folder).absolute())
    where = f"{LOCAL}{key}"
    # It warns of what it does without (approximation) and of its slowness with many points, which
    # who asks for it knows.
    warnings.filterwarnings("ignore", message="Local mode ", category=UserWarning)
    if key not in _LOCAL_CLIENTS:
        try:
            chosen: dict[str, Any] = {"location": key} if key == ":memory:" else {"path": key}
            client = AsyncQdrantClient(**chosen, force_disable_check_same_thread=True)
        except Exception as error:
            if "already accessed" in str(error):
                raise IndexInUseError(
                    f"another process has the vectors in {where} open: stop it first; only a "
                    "Qdrant server serves several"
                ) from error
            raise translate(error, what="open the vectors", where=where) from error
        _LOCAL_CLIENTS[key] = _Shared(client)
    _LOCAL_CLIENTS[key].users += 1
    return Connection(_LOCAL_CLIENTS[key].client, where=where, shared=key)


def _host(url: str) -> str:
    """The host of an address, which may be shown; credentials in it may not."""
    cure = "write AFTERCALL_QDRANT_URL as in http://qdrant:6333"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise VectorIndexError(f"the address of Qdrant is none: {cure}")
    if parts.username is not None or parts.password is not None:
        raise VectorIndexError(
            f"the address of Qdrant holds credentials, which it takes as a key: {cure} and the key "
            "as AFTERCALL_QDRANT_API_KEY"
        )
    return f"[{host}]" if ":" in host else host


def _whole_seconds(seconds: float) -> int:
    return max(1, -int(-seconds // 1))


def _closed_error() -> VectorIndexError:
    return VectorIndexError("this index is closed; open another")


FORMAT = 1
"""Of the collection: payload, BM25's settings, precision."""

OLDEST_SERVER = (1, 19)
"""The first with an IDF per question (`params.idf`). An older one ignores what it does not know, so
it would rank by other words than the embedded index, without a word."""

QUANTILE = 0.99
"""Share of a vector's components within int8's range; Qdrant's own example value."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a new collection lies over the servers of a cluster."""

    shards: int = 1
    replicas: int = 1
    write_consistency: int = 1
    """Replicas that must have taken a write before it counts."""


@dataclass(frozen=True, slots=True)
class Model:
    """Which model made the vectors."""

    fingerprint: str
    dimension: int


def collection_config(model: Model, spread: Spread) -> dict[str, Any]:
    """The arguments of `create_collection`, but for the name.

    The vectors lie on disk in half precision (the cosine of unit vectors changes by some 2e-5), one
    byte a component in RAM: a search ranks by those and takes the cosines of the best from the
    disk. The graph has links over everything (`m`), since a question sees its workspace *and* the
    shipped corpus, and further ones within each workspace, kind and tool (`payload_m`).
    """
    return {
        "vectors_config": {
            DENSE: models.VectorParams(
                size=model.dimension,
                distance=models.Distance.COSINE,
                datatype=models.Datatype.FLOAT16,
                memory=models.Memory.COLD,
            )
        },
        "sparse_vectors_config": {TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        "quantization_config": models.ScalarQuantization(
            scalar=models.ScalarQuantizationConfig(
                type=models.ScalarType.INT8, quantile=QUANTILE, memory=models.Memory.PINNED
            )
        ),
        "hnsw_config": models.HnswConfigDiff(m=16, payload_m=16, ef_construct=100),
        "payload": models.PayloadStorageParams(memory=models.Memory.COLD),
        "shard_number": spread.shards,
        "replication_factor": spread.replicas,
        "write_consistency_factor": spread.write_consistency,
        "metadata": {
            "format": FORMAT,
            "fingerprint": model.fingerprint,
            "dimension": model.dimension,
        },
    }


def payload_indexes() -> dict[str, models.KeywordIndexParams]:
    """Fields by which questions are filtered. The vectors of one workspace lie side by side.

    What leaves some dozens of documents, a server's name or a version, needs no links of its own.
    """
    links = {WORKSPACE: True, KIND: True, TOOL: True, SERVER: False, VERSION: False}
    return {
        field: models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD,
            is_tenant=True if field == WORKSPACE else None,
            enable_hnsw=linked,
        )
        for field, linked in links.items()
    }


async def ensure_collection(
    connection: Connection, name: str, *, model: Model, spread: Spread
) -> int:
    """Make the collection if there is none, and what is missing of a half-made one.

    Returns:
        The number of its shards.

    Raises:
        IndexModelMismatchError: when its vectors are of another model; nothing is changed.
        VectorIndexError: when it is not ours, or of a newer version, or Qdrant too old.
        VectorIndexUnavailableError: when Qdrant does not answer.
    """
    await _check_version(connection)
    info = await _read(connection, name)
    if info is None:
        info = await _create(connection, name, collection_config(model, spread))
    check_metadata(info.config.metadata, model, where=f"{name} at {connection.where}")
    if not connection.is_local:  # which has no payload indexes
        await _add_indexes(connection, name, set(info.payload_schema))
    return info.config.params.shard_number or 1


def check_metadata(metadata: dict[str, Any] | None, model: Model, *, where: str) -> None:
    """Raises as `ensure_collection` unless the metadata are those of an index of this model."""
    cure = "`aftercall rebuild` makes the vectors anew"
    match metadata:
        case {"format": int(number)} if number > FORMAT:
            raise VectorIndexError(
                f"the collection {where} has the format {number}, this version knows {FORMAT}: "
                f"update aftercall, or {cure}"
            )
        case {"format": int(), "fingerprint": str(fingerprint), "dimension": int(dimension)}:
            if (fingerprint, dimension) != (model.fingerprint, model.dimension):
                raise IndexModelMismatchError(
                    f"the vectors in {where} are of the model {fingerprint} ({dimension} "
                    f"dimensions), the configured one is {model.fingerprint} ({model.dimension}): "
                    f"configure the former, or make the vectors anew with `aftercall rebuild`"
                )
        case _:
            raise VectorIndexError(
                f"the collection {where} is not one of Aftercall's, or was changed: choose another "
                f"AFTERCALL_QDRANT_PREFIX, or delete the collection and {cure}"
            )


def is_too_old(version: str) -> bool:
    """Whether a server's version is before `OLDEST_SERVER`; one that is no number is none."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST_SERVER


async def _check_version(connection: Connection) -> None:
    with connection.doing("reach Qdrant") as client:
        version = (await client.info()).version
    if not connection.is_local and is_too_old(version):
        raise VectorIndexError(
            f"Qdrant at {connection.where} is {version}, {OLDEST_SERVER[0]}.{OLDEST_SERVER[1]} or "
            "newer is needed: update it, one minor version after the other"
        )


async def _read(connection: Connection, name: str) -> models.CollectionInfo | None:
    with connection.doing(f"open the collection {name}") as client:
        if not await client.collection_exists(name):
            return None
        return await client.get_collection(name)


async def _create(
    connection: Connection, name: str, config: dict[str, Any]
) -> models.CollectionInfo:
    try:
        with connection.doing(f"make the collection {name}") as client:
            await client.create_collection(name, **config)
    except VectorIndexError:
        # another process that opens it at the same time was faster, or it really cannot be made
        if (made := await _read(connection, name)) is None:
            raise
        return made
    made = await _read(connection, name)
    if made is None:
        raise VectorIndexError(f"the collection {name} at {connection.where} was deleted meanwhile")
    return made


async def _add_indexes(connection: Connection, name: str, present: set[str]) -> None:
    for field, schema in payload_indexes().items():
        if field not in present:
            with connection.doing(f"index {field} of the collection {name}") as client:
                await client.create_payload_index(name, field, field_schema=schema, wait=True)
