"""Opening stores that may be away, and telling whether they agree."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from service.former_vectors import remove_former
from service.switching import IndexSwitch

from embeddings.hashing import HashingEmbedder
from mongo.errors import StoreDamagedError, StoreReadOnlyError, StoreUnavailableError
from mongo.records import StoreCounts
from retrieval.index.opening import CurrentIndex, EdgePlace, list_indexes, open_index
from retrieval.index.protocol import (
    IndexModelMismatchError,
    VectorIndex,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from service.lifecycle import when_it_answers
from service.readiness import StoreWatch, VectorCheck, disagreement
from service.settings import Settings
from service.stores import index_place, is_remote, where_index_is, where_store_is
from tests.service.running_service import hashing_settings

# Waiting for a server


def failing(times: int, error: Exception) -> Callable[[], Any]:
    """Opens something at last, after so many failures."""
    left = [error] * times

    async def opened() -> str:
        if left:
            raise left.pop()
        return "open"

    return opened


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailableError("away"),
        StoreReadOnlyError("no primary"),
        VectorIndexUnavailableError("away"),
    ],
)
async def test_what_is_away_is_waited_for(error: Exception) -> None:
    """Until it answers; and the phase says all the time what is being waited for."""
    phases: list[str] = []
    opened = failing(2, error)
    assert await when_it_answers(opened, "the store at db:27017", on_phase=phases.append) == "open"
    assert phases == ["waiting for the store at db:27017"] * 2


async def test_waiting_is_logged_once_and_not_with_every_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A night of waiting does not fill a disk."""
    with caplog.at_level(logging.INFO):
        await when_it_answers(failing(3, StoreUnavailableError("away")), "the store")
    assert [record.message for record in caplog.records] == ["waiting for the store"]


async def test_a_command_gives_up_in_the_end() -> None:
    """With the store's own words: whoever schedules it hears why."""
    with pytest.raises(StoreUnavailableError, match="db is away"):
        await when_it_answers(
            failing(99, StoreUnavailableError("db is away")), "the store", patience_s=0.3
        )


async def test_what_is_wrong_for_good_is_not_waited_for() -> None:
    """It would never come."""
    phases: list[str] = []
    with pytest.raises(StoreDamagedError):
        await when_it_answers(
            failing(1, StoreDamagedError("no store")), "the store", on_phase=phases.append
        )
    assert phases == []


# Where the stores are


def settings_for(tmp_path: Path, **environment: str) -> Settings:
    sections: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, field = name.partition("_")
        sections.setdefault(section, {})[field] = value
    return hashing_settings(tmp_path, **sections)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("mongodb://db:27017", "db:27017"),
        ("mongodb://ann:opensesame@db:27017/?tls=true", "db:27017"),
        ("mongodb://ann:open/sesame@a:1,b:2,c:3/other", "a:1,b:2,c:3"),
        ("mongodb+srv://ann:open@sesame@cluster.example", "cluster.example"),
    ],
)
def test_the_log_stores_address_is_shown_without_credentials(
    tmp_path: Path, uri: str, shown: str
) -> None:
    """Also where a password was not escaped as it should be."""
    assert where_store_is(settings_for(tmp_path, mongo_uri=uri)) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://qdrant:6333", "qdrant:6334"),
        ("https://ann:opensesame@qdrant.example", "qdrant.example:6334"),
        ("local:/somewhere", "/somewhere"),
    ],
)
def test_the_indexs_address_is_shown_without_credentials(
    tmp_path: Path, url: str, shown: str
) -> None:
    """Host and the port that is asked."""
    assert where_index_is(settings_for(tmp_path, qdrant_url=url)) == shown


def test_a_place_shows_no_key(tmp_path: Path) -> None:
    """Places turn up in tracebacks and messages."""
    place = index_place(
        settings_for(tmp_path, qdrant_url="https://qdrant", qdrant_api_key="opensesame")
    )
    assert "opensesame" not in repr(place)


def test_any_server_makes_it_remote(tmp_path: Path) -> None:
    """Any combination of stores can be chosen."""
    assert not is_remote(settings_for(tmp_path))
    assert is_remote(settings_for(tmp_path, mongo_uri="mongodb://db"))
    assert is_remote(settings_for(tmp_path, qdrant_url="http://qdrant"))


# Whether the vectors agree with the log


@pytest.mark.parametrize(
    ("documents", "pending", "vectors", "agrees"),
    [
        (100, 0, 180, True),
        (100, 0, 179, False),
        (100, 1, 179, True),  # its vector is queued
        (100, 1, 178, False),
        (100, 5, 185, True),  # removed from the log, and still to be from the index
        (100, 0, 200, True),  # a former corpus had further entries
        (100, 0, 261, False),
        (0, 0, 80, True),
        (0, 0, 0, False),  # even the corpus is gone
    ],
)
def test_queues_and_corpus_are_allowed_for(
    documents: int, pending: int, vectors: int, agrees: bool
) -> None:
    """And nothing else: the cure is named."""
    said = disagreement(StoreCounts(0, pending, 0, documents), vectors, seeds=80)
    assert (said is None) == agrees
    if said is not None:
        assert "aftercall rebuild" in said


class CountingStore:
    """Counts and generations, as they are told; the last holds on."""

    def __init__(self, *counts: StoreCounts | Exception) -> None:
        self.told = list(counts)

    async def counts(self) -> StoreCounts:
        told = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        if isinstance(told, Exception):
            raise told
        return told


class CountingIndex:
    def __init__(self, vectors: int | Exception) -> None:
        self.vectors = vectors
        self.asked = 0

    async def count(self) -> int:
        self.asked += 1
        if isinstance(self.vectors, Exception):
            raise self.vectors
        return self.vectors


def check_of(store: CountingStore, index: CountingIndex, clock: list[float]) -> VectorCheck:
    return VectorCheck(
        store=store,  # type: ignore[arg-type]  # what is asked of it
        index=index,  # type: ignore[arg-type]  # as above
        seeds=0,
        clock=lambda: clock[0],
        between_looks_s=0,
    )


async def test_vectors_that_are_missing_for_good_are_told() -> None:
    """With their number and the cure."""
    store, index = CountingStore(StoreCounts(9, 0, 0, 9)), CountingIndex(4)
    found = await check_of(store, index, [0.0]).look()
    assert (found.vectors, found.consistent) == (4, False)
    assert found.problem is not None
    assert found.problem.startswith("5 documents")


async def test_what_moves_meanwhile_is_no_disagreement() -> None:
    """Two counts are never of one moment."""
    moving = [StoreCounts(9, 0, 0, 9), StoreCounts(9, 0, 0, 9), StoreCounts(9, 1, 0, 9)]
    store = CountingStore(*moving)
    found = await check_of(store, CountingIndex(8), [0.0]).look()
    assert found.consistent


async def test_an_index_that_is_away_says_nothing_of_agreement() -> None:
    """It is a problem of its own, and the status page is there all the same."""
    index = CountingIndex(VectorIndexUnavailableError("away"))
    found = await check_of(CountingStore(StoreCounts(9, 0, 0, 9)), index, [0.0]).look()
    assert (found.vectors, found.consistent) == (None, True)
    assert found.problem is not None


async def test_vectors_are_not_counted_for_every_request() -> None:
    """Some seconds old will do, and then it is looked again."""
    clock = [0.0]
    index = CountingIndex(9)
    check = check_of(CountingStore(StoreCounts(9, 0, 0, 9)), index, clock)
    await check.look()
    clock[0] = 4.0
    await check.look()
    assert index.asked == 1
    clock[0] = 6.0
    await check.look()
    assert index.asked == 2


# Whether the log store answers


class AnsweringStore:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs = False
        self.asked = 0

    async def generation(self) -> int:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        return 1


async def test_a_store_that_comes_back_is_noticed() -> None:
    """By itself, as soon as it is asked again."""
    store, clock = AnsweringStore(), [0.0]
    watch = StoreWatch(store, clock=lambda: clock[0])  # type: ignore[arg-type]  # what is asked
    assert await watch.answers()
    store.error, clock[0] = StoreUnavailableError("away"), 1.0
    assert not await watch.answers()
    store.error, clock[0] = None, 2.0
    assert await watch.answers()


async def test_a_store_that_hangs_does_not_answer() -> None:
    """Whoever asks is told within the bound."""
    store = AnsweringStore()
    store.hangs = True
    watch = StoreWatch(store, within_s=0.01)  # type: ignore[arg-type]  # what is asked
    assert not await watch.answers()


async def test_many_who_ask_at_once_are_one_question() -> None:
    """A page of probes is no load."""
    store = AnsweringStore()
    watch = StoreWatch(store, clock=lambda: 0.0)  # type: ignore[arg-type]  # what is asked
    assert await asyncio.gather(*(watch.answers() for _ in range(20))) == [True] * 20
    assert store.asked == 1


# Switching to rebuilt vectors


class ToldIndexer:
    def __init__(self) -> None:
        self.generations: list[int] = []
        self.is_closed = False

    def switched(self, generation: int) -> None:
        self.generations.append(generation)

    async def close(self) -> None:
        self.is_closed = True


async def opened_at(folder: Path, name: str) -> VectorIndex:
    embedder = HashingEmbedder()
    return await open_index(
        EdgePlace(folder),
        name,
        dimension=embedder.dimension,
        fingerprint=embedder.fingerprint,
    )


def switch_of(
    index: CurrentIndex, indexer: ToldIndexer, folder: Path, names: list[str], **changes: Any
) -> IndexSwitch:
    async def named() -> str:
        return names[0]

    async def opened(name: str) -> VectorIndex:
        return await opened_at(folder, name)

    arguments: dict[str, Any] = {
        "index": index,
        "place": EdgePlace(folder),
        "named": named,
        "opened": opened,
        "indexer": indexer,
        "claims": ToldIndexer(),
    }
    return IndexSwitch(**arguments | changes)


async def test_a_switch_opens_the_new_vectors_and_removes_the_former(tmp_path: Path) -> None:
    """The process that had them open is the only one that can."""
    index = CurrentIndex(await opened_at(tmp_path, "vectors"))
    indexer, names = ToldIndexer(), ["vectors"]
    switch = switch_of(index, indexer, tmp_path, names)
    try:
        await switch.on_generation(1)
        names[0] = "vectors-g2"
        await switch.on_generation(2)
        assert index.opened == "vectors-g2"
        assert indexer.generations == [1, 2]
        assert await list_indexes(EdgePlace(tmp_path)) == ["vectors-g2"]
        assert switch.problem is None
    finally:
        await index.close()


async def test_vectors_of_another_model_are_not_switched_to(tmp_path: Path) -> None:
    """It goes on answering from its own, learns nothing, and says what to do."""
    index = CurrentIndex(await opened_at(tmp_path, "vectors"))
    indexer = ToldIndexer()

    async def of_another_model(name: str) -> VectorIndex:
        raise IndexModelMismatchError(name)

    switch = switch_of(index, indexer, tmp_path, ["vectors-g2"], opened=of_another_model)
    try:
        await switch.on_generation(2)
        assert index.opened == "vectors"
        assert await index.count() == 0
        assert indexer.is_closed
        assert indexer.generations == []
        assert switch.problem is not None
        assert "restart" in switch.problem
    finally:
        await index.close()


async def test_a_switch_that_fails_is_to_be_told_again(tmp_path: Path) -> None:
    """Until then the former vectors answer."""
    index = CurrentIndex(await opened_at(tmp_path, "vectors"))
    indexer = ToldIndexer()

    async def away(name: str) -> VectorIndex:
        raise VectorIndexUnavailableError(name)

    switch = switch_of(index, indexer, tmp_path, ["vectors-g2"], opened=away)
    try:
        with pytest.raises(VectorIndexError):
            await switch.on_generation(2)
        assert index.opened == "vectors"
        assert indexer.generations == []
    finally:
        await index.close()


async def test_what_a_rebuild_is_making_is_left_alone(tmp_path: Path) -> None:
    """Only what is older than the current vectors is a leftover for sure."""
    for name in ("vectors", "vectors-g2", "vectors-g3", "vectors-g4"):
        await (await opened_at(tmp_path, name)).close()
    held = await opened_at(tmp_path, "vectors-g2")  # by a process that has not switched yet
    try:
        assert await remove_former(EdgePlace(tmp_path), "vectors-g3") == ["vectors"]
        left = ["vectors-g2", "vectors-g3", "vectors-g4"]
        assert await list_indexes(EdgePlace(tmp_path)) == left
    finally:
        await held.close()
