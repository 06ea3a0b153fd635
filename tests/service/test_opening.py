"""Opening stores that may be away, and telling whether they agree."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mongo.errors import StoreDamagedError, StoreReadOnlyError, StoreUnavailableError
from retrieval.index.protocol import VectorIndexUnavailableError
from retrieval.knowledge.rows.log import StoreCounts
from service.databases import where_store_is
from service.lifecycle import when_it_answers
from service.metrics_page import explain_difference
from service.settings import Settings
from service.stores import is_remote, where_index_is
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


@pytest.mark.parametrize(
    ("where", "address", "shown"),
    [
        (where_store_is, "mongodb://db:27017", "db:27017"),
        (where_store_is, "mongodb://ann:opensesame@db:27017/?tls=true", "db:27017"),
        (where_store_is, "mongodb://ann:open/sesame@a:1,b:2,c:3/other", "a:1,b:2,c:3"),
        (where_store_is, "mongodb+srv://ann:open@sesame@cluster.example", "cluster.example"),
        (where_index_is, "http://qdrant:6333", "qdrant:6334"),
        (where_index_is, "https://ann:opensesame@qdrant.example", "qdrant.example:6334"),
        (where_index_is, "local:/somewhere", "/somewhere"),
    ],
)
def test_the_address_of_a_store_is_shown_without_credentials(
    tmp_path: Path, where: Callable[[Settings], str], address: str, shown: str
) -> None:
    """Also where a password was not escaped as it should be; of the index, the port it asks."""
    at = {"mongo": {"uri": address}} if where is where_store_is else {"qdrant": {"url": address}}
    assert where(hashing_settings(tmp_path, **at)) == shown


def test_any_server_makes_it_remote(tmp_path: Path) -> None:
    """Any combination of stores can be chosen."""
    assert not is_remote(hashing_settings(tmp_path))
    for at in ({"mongo": {"uri": "mongodb://db"}}, {"qdrant": {"url": "http://qdrant"}}):
        assert is_remote(hashing_settings(tmp_path, **at))


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
    said = explain_difference(StoreCounts(0, pending, documents), vectors)
    assert (said is None) == agrees
    if said is not None:
        assert "aftercall rebuild" in said
