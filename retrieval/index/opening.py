"""Where vectors are, the indexes there by name, and the one that answers at the moment.

An index's name states which generation of the log store it belongs to: `vectors`, then `vectors-g2`
and so on. A rebuild fills the next one and the store's fact `index` then names it.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from aftercall.explain import how_to_install
from retrieval.index.edge import EdgeIndex
from retrieval.index.edge_shard import check_folder_owner, owner_of, remove_folder
from retrieval.index.protocol import (
    EdgePlace,
    Hit,
    IndexPlace,
    IndexPoint,
    IndexQuery,
    VectorIndex,
    VectorIndexError,
    VectorIndexUnavailableError,
)

INDEX_FACT = "index"
"""The store's fact that names the index in use; absent for the first."""
FIRST_INDEX = "vectors"
_NAME = re.compile(rf"{FIRST_INDEX}(-g[1-9][0-9]{{0,8}})?")
_CLIENT = ("qdrant_client", "grpc")
SEARCH_WITHIN_S = 1.5
"""A search takes milliseconds. A question not answered by then will not be in time."""
_LOOK_AGAIN_S = 1.0
"""After one that was not answered the others are refused at once, but for one in so long, which
looks whether it is over."""
T = TypeVar("T")
log = logging.getLogger(__name__)


def index_name(fact: str | None) -> str:
    """Return the index that the fact `INDEX_FACT` names."""
    name = FIRST_INDEX if fact is None else fact
    if _NAME.fullmatch(name) is None:
        raise VectorIndexError(
            f"the log store names {name!r} as its vector index, which is none: "
            "`aftercall rebuild` makes the vectors anew"
        )
    return name


def next_index_name(generation: int) -> str:
    """Return the index of a generation of the store, 2 or later.

    `vectors-g2`. The first's differs.
    """
    return FIRST_INDEX if generation <= 1 else f"{FIRST_INDEX}-g{generation}"


async def open_index(
    place: IndexPlace, name: str, *, dimension: int, fingerprint: str
) -> VectorIndex:
    """Open an index, or make it; one of another store or model is refused. The caller closes it."""
    index_name(name)
    if isinstance(place, EdgePlace):
        return await EdgeIndex.open(
            place.folder / name, dimension=dimension, fingerprint=fingerprint, owner=place.owner
        )
    index: VectorIndex = await _load_adapter().QdrantIndex.open(
        place, name, dimension=dimension, fingerprint=fingerprint
    )
    return index


async def destroy_index(place: IndexPlace, name: str) -> None:
    """Remove an index for good; none there is no error, one of another store is refused."""
    index_name(name)
    if isinstance(place, EdgePlace):
        await asyncio.to_thread(remove_folder, place.folder / name, place.owner)
        return
    await _load_adapter().delete_collection(place, name)


async def list_indexes(place: IndexPlace) -> list[str]:
    """Return the names of the store's own indexes that are there, in order of their generations."""
    if isinstance(place, EdgePlace):
        names = await asyncio.to_thread(_own_folders, place)
    else:
        names = await _load_adapter().list_own_names(place, _NAME)
    return sorted(names, key=lambda name: (len(name), name))


async def refuse_another_store(place: IndexPlace) -> None:
    """Raises `IndexOfAnotherStoreError` where any index there, of whatever name, is another's.

    A later generation would have the same name as one of the other store. One that is damaged or of
    another version is no error.
    """
    if isinstance(place, EdgePlace):
        for path, made_for in (await asyncio.to_thread(_find_folders, place)).items():
            if made_for is not None:
                check_folder_owner(made_for, place.owner, path)
        return
    await _load_adapter().refuse_foreign_collection(place, _NAME)


def _own_folders(place: EdgePlace) -> list[str]:
    """Also those without a record: half made, or half removed, when a kill came."""
    own = (None, place.owner)
    return [path.name for path, made_for in _find_folders(place).items() if made_for in own]


def _find_folders(place: EdgePlace) -> dict[Path, str | None]:
    """Return the folders of indexes, and whose each is; None where nothing states it."""
    paths = (each for each in place.folder.glob(f"{FIRST_INDEX}*/") if _NAME.fullmatch(each.name))
    return {path: owner_of(path) for path in paths}


def _load_adapter() -> Any:
    """Return the module for servers.

    Only its users wait the second that its client takes to import.
    """
    try:
        return import_module("retrieval.index.qdrant")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _CLIENT:
            raise
        raise VectorIndexError(
            "a Qdrant server is set, but its client is not installed: "
            + how_to_install("servers", of_service=True)
        ) from error


class Patience:
    """Bounds calls in time, and in number while none is answered: one wait, and then none.

    A server that does not answer at all keeps every call until its timeout, which is long, since
    writes may take long. A question is answered without the index instead.
    """

    def __init__(
        self, within_s: float = SEARCH_WITHIN_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._within_s = within_s
        self._clock = clock
        self._looked_at: float | None = None
        """When the latest look began, while nothing is answered; None while all is well."""

    async def wait_for(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what a call returns, if it does in time; it is cancelled else."""
        if self._looked_at is not None:
            if self._clock() - self._looked_at < self._within_s + _LOOK_AGAIN_S:
                raise _unanswered_error()
            self._looked_at = self._clock()
        try:
            async with asyncio.timeout(self._within_s):
                result = await call()
        except TimeoutError:
            self._looked_at = self._clock() - self._within_s
            raise _unanswered_error() from None
        self._looked_at = None
        return result


def _unanswered_error() -> VectorIndexUnavailableError:
    return VectorIndexUnavailableError(
        "the vector index takes a connection and does not answer: see that Qdrant runs and is not "
        "overloaded; it is asked again every second"
    )


class CurrentIndex:
    """`VectorIndex` that delegates to another, which can be replaced while calls are under way.

    A call that began with an index ends with it. The index belongs to this from now on.

    `on_error` is called with each error of a search: answers do without the index when it fails,
    so that nothing else shows it.
    """

    on_error: Callable[[VectorIndexError], None] = staticmethod(lambda _: None)

    def __init__(
        self, index: VectorIndex, opened: str = FIRST_INDEX, *, patience: Patience | None = None
    ) -> None:
        self._use = _Use(index, opened)
        self._patience = patience
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """Present index's."""
        return self._use.index.name

    @property
    def opened(self) -> str:
        """Name that the present index was opened by, as `index_name` states."""
        return self._use.opened

    async def upsert_points(self, points: Sequence[IndexPoint]) -> None:
        with self._use_present() as index:
            await index.upsert_points(points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        with self._use_present() as index:
            await index.delete(document_ids)

    async def search_points(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        with self._use_present() as index:
            try:
                return await self._in_time(lambda: index.search_points(queries))
            except VectorIndexError as error:
                self.on_error(error)
                raise

    async def count_points(self) -> int:
        with self._use_present() as index:
            return await self._in_time(index.count_points)

    async def switch_index(self, index: VectorIndex, opened: str = FIRST_INDEX) -> None:
        """Put another index instead of the present one, which is closed.

        Every call from now on goes to the new one. Returns when those that were under way in the
        former one are done and it is closed, which goes on even where the caller is cancelled.
        """
        if self._closed:
            await index.close()
            raise _closed_error()
        former = self._use
        self._use = _Use(index, opened)
        leaving = asyncio.create_task(_close_when_idle(former))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)

    async def close(self) -> None:
        """See `VectorIndex.close`. Former indexes that are still in use are waited for."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._use.index.close()
        finally:
            await asyncio.gather(*self._leaving)

    async def _in_time(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await (call() if self._patience is None else self._patience.wait_for(call))

    @contextmanager
    def _use_present(self) -> Iterator[VectorIndex]:
        if self._closed:
            raise _closed_error()
        use = self._use
        use.calls += 1
        try:
            yield use.index
        finally:
            use.calls -= 1
            if not use.calls:
                use.idle.set()


@dataclass(slots=True)
class _Use:
    index: VectorIndex
    opened: str
    calls: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a call ends and no other is under way."""


async def _close_when_idle(former: _Use) -> None:
    """Close an index that was replaced, so that a failure to do it harms no one."""
    while former.calls:
        former.idle.clear()
        await former.idle.wait()
    try:
        await former.index.close()
    except VectorIndexError as error:
        log.warning("the former vector index was not closed properly: %s", error)


def _closed_error() -> VectorIndexError:
    return VectorIndexError("this index is closed; open another")
