"""Where vectors are, and the indexes there by name.

An index's name says which generation of the log store it belongs to: `vectors`, then `vectors-g2`
and so on. A rebuild fills the next one and the store's fact `index` then names it.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndex, VectorIndexError

INDEX_FACT = "index"
"""The store's fact of which index holds; absent for the first."""

FIRST_INDEX = "vectors"

_NAME = re.compile(rf"{FIRST_INDEX}(-g[1-9][0-9]{{0,8}})?")

_CLIENT = ("qdrant_client", "grpc")


@dataclass(frozen=True, slots=True)
class EdgePlace:
    """Embedded indexes, each in a folder of this one, for one process."""

    folder: Path


@dataclass(frozen=True, slots=True)
class QdrantPlace:
    """Collections on a Qdrant server; shown without key and address, which may hold a password."""

    url: str = field(repr=False)
    """`http://host:port`, `https://...` for TLS, or `local:DIR` for the client's own slow store."""
    api_key: str | None = field(default=None, repr=False)
    grpc_port: int = 6334
    prefix: str = "aftercall"
    """What the collections' names begin with, before a hyphen."""
    shards: int = 1
    replicas: int = 1
    write_consistency: int = 1
    timeout_s: float = 20.0


IndexPlace = EdgePlace | QdrantPlace


def index_name(fact: str | None) -> str:
    """The index that the fact `INDEX_FACT` names.

    Raises:
        VectorIndexError: when it is no name of an index.
    """
    name = FIRST_INDEX if fact is None else fact
    if _NAME.fullmatch(name) is None:
        raise VectorIndexError(
            f"the log store names {name!r} as its vector index, which is none: "
            "`aftercall rebuild` makes the vectors anew"
        )
    return name


def next_index_name(generation: int) -> str:
    """The index of a generation of the store, 2 or later: `vectors-g2`. The first's differs."""
    return FIRST_INDEX if generation <= 1 else f"{FIRST_INDEX}-g{generation}"


async def open_index(
    place: IndexPlace, name: str, *, dimension: int, fingerprint: str
) -> VectorIndex:
    """Open an index, or make it. The caller closes it.

    Args:
        place: where.
        name: as `index_name` and `next_index_name` say.
        dimension: of the vectors.
        fingerprint: of the embedder, as `Embedder.fingerprint`.

    Raises:
        IndexModelMismatchError: its vectors are of another model; nothing is changed.
        IndexInUseError: another process has it open, and it is an embedded one.
        VectorIndexUnavailableError: the server does not answer.
        VectorIndexError: what else keeps it from being opened, with the cure.
    """
    index_name(name)
    if isinstance(place, EdgePlace):
        return await EdgeIndex.open(
            place.folder / name, dimension=dimension, fingerprint=fingerprint
        )
    with _extra():
        from retrieval.index.qdrant_opening import open_collection  # noqa: PLC0415 - see _extra
    return await open_collection(place, name, dimension=dimension, fingerprint=fingerprint)


async def destroy_index(place: IndexPlace, name: str) -> None:
    """Remove an index for good; none there is no error.

    Raises:
        IndexInUseError: a process has it open, and it is an embedded one.
        VectorIndexError: as `open_index`.
    """
    index_name(name)
    if isinstance(place, EdgePlace):
        folder = place.folder / name
        if await asyncio.to_thread(folder.is_dir):
            await EdgeIndex.destroy(folder)
        return
    with _extra():
        from retrieval.index.qdrant_opening import delete_collection  # noqa: PLC0415 - see _extra
    await delete_collection(place, name)


async def list_indexes(place: IndexPlace) -> list[str]:
    """The names of the indexes that are there, in order of their generations.

    Raises:
        VectorIndexError: as `open_index`.
    """
    if isinstance(place, EdgePlace):
        names = await asyncio.to_thread(_names_in, place.folder)
    else:
        with _extra():
            from retrieval.index.qdrant_opening import list_names  # noqa: PLC0415 - see _extra
        names = await list_names(place)
    ours = [name for name in names if _NAME.fullmatch(name)]
    return sorted(ours, key=lambda name: (len(name), name))


def _names_in(folder: Path) -> list[str]:
    # Also one without a record: of an index that was half made, or half removed, when a kill came.
    return [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


@contextmanager
def _extra() -> Iterator[None]:
    """Around imports of what needs the client: a second that only who uses a server waits for."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _CLIENT:
            raise
        raise VectorIndexError(
            "a Qdrant server is set, but its client is not installed: "
            "pip install 'aftercall-service[servers]'"
        ) from error
