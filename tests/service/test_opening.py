"""Opening stores that may be away, and telling whether they agree."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mongo.errors import StoreDamagedError, StoreReadOnlyError, StoreUnavailableError
from mongo.protocol import Store
from retrieval.index.protocol import VectorIndexUnavailableError
from retrieval.log import StoreCounts, counts
from service.lifecycle import when_it_answers
from service.metrics_page import disagreement
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
        (100, 0, 100, True),
        (100, 0, 99, False),
        (100, 1, 99, True),  # its vector is queued
        (100, 1, 98, False),
        (100, 5, 105, True),  # removed from the log, and still to be from the index
        (100, 0, 101, False),
    ],
)
def test_queues_are_allowed_for(documents: int, pending: int, vectors: int, agrees: bool) -> None:
    """And nothing else: the cure is named."""
    said = disagreement(StoreCounts(0, pending, documents), vectors)
    assert (said is None) == agrees
    if said is not None:
        assert "aftercall rebuild" in said


async def test_what_is_learned_between_two_looks_is_not_counted_below_zero() -> None:
    """The log grows and is learned while it is counted."""
    at = 4

    async def cursors() -> dict[str, SimpleNamespace]:
        nonlocal at
        at += 1
        return {"default": SimpleNamespace(position=at)}

    async def heads() -> dict[str, SimpleNamespace]:
        nonlocal at
        at += 1
        return {"default": SimpleNamespace(position=at, counts={})}

    async def count(_kind: str, _workspace: str | None) -> int:
        return 0

    store = SimpleNamespace(
        events=SimpleNamespace(heads=heads), knowledge=SimpleNamespace(cursors=cursors, count=count)
    )
    assert (await counts(cast("Store", store))).pending == 1
