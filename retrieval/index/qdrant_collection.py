"""The collection that an index is on a Qdrant: how it is made, and whose it is.

Its metadata say the format and the model, as `index.json` does of an embedded index.
"""

import re
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from retrieval.index.fields import DENSE, KIND, SERVER, TERMS, TOOL, VERSION, WORKSPACE
from retrieval.index.protocol import IndexModelMismatchError, VectorIndexError
from retrieval.index.qdrant_connection import Connection

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
