"""Indexes on a Qdrant server by name: what `opening` does where the place is a server."""

import logging

from retrieval.index.opening import QdrantPlace
from retrieval.index.qdrant import QdrantIndex
from retrieval.index.qdrant_collection import Spread
from retrieval.index.qdrant_connection import Connection, connect

log = logging.getLogger(__name__)


async def open_collection(
    place: QdrantPlace, name: str, *, dimension: int, fingerprint: str
) -> QdrantIndex:
    """As `opening.open_index`."""
    if place.api_key and place.url.startswith("http://"):
        log.warning("the key of Qdrant is sent without TLS; use https outside of a private network")
    return await QdrantIndex.open(
        _connect(place),
        _collection(place, name),
        dimension=dimension,
        fingerprint=fingerprint,
        spread=Spread(place.shards, place.replicas, place.write_consistency),
    )


async def delete_collection(place: QdrantPlace, name: str) -> None:
    """As `opening.destroy_index`."""
    connection, collection = _connect(place), _collection(place, name)
    try:
        with connection.doing(f"delete the collection {collection}") as client:
            if await client.collection_exists(collection):
                await client.delete_collection(collection)
    finally:
        await connection.close()


async def list_names(place: QdrantPlace) -> list[str]:
    """What follows the prefix in the names of all collections that have it."""
    connection = _connect(place)
    try:
        with connection.doing("list the collections") as client:
            found = (await client.get_collections()).collections
    finally:
        await connection.close()
    prefix = _collection(place, "")
    return [each.name.removeprefix(prefix) for each in found if each.name.startswith(prefix)]


def _connect(place: QdrantPlace) -> Connection:
    return connect(
        place.url, api_key=place.api_key, grpc_port=place.grpc_port, timeout_s=place.timeout_s
    )


def _collection(place: QdrantPlace, name: str) -> str:
    return f"{place.prefix}-{name}"
