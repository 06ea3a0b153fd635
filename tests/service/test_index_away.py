"""A Qdrant server that hangs or is away: answers come from rules, soon, and in full afterwards."""

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from retrieval.index.opening import CurrentIndex, destroy_index, list_indexes
from retrieval.index.protocol import QdrantPlace, VectorIndex
from retrieval.index.qdrant import Connection, QdrantIndex
from service.rebuild import rebuild_store
from service.stores import index_place, open_named
from tests.mongo.mongo_server import free_port
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

pytestmark = pytest.mark.real

TIMEOUT_S = 20.0
"""Of a call to the server, as the settings have it; no answer may take anything like it."""


class Wavering:
    """The way to an index that may lead to another one, which never answers."""

    def __init__(self, index: VectorIndex, away: VectorIndex) -> None:
        self._index = index
        self._away = away
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._away if self.is_away else self._index, name)

    async def close(self) -> None:
        await self._away.close()
        await self._index.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections, and answers nothing: a machine that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def suggest(service: RunningService) -> list[str]:
    """The actions of what is suggested for a failure that was mended before."""
    response = service.client.post("/suggest", json={"execution": failure()}, timeout=TIMEOUT_S)
    assert response.status_code == 200
    return [each["action"] for each in response.json()["suggestions"]]


def mended(service: RunningService) -> list[str]:
    """What is suggested once three sessions have mended such a failure."""
    for number in range(3):
        session = {"sessionId": f"s-{number}"}
        assert service.record([failure(**session), execution(**session)]).status_code == 202
    service.learned()
    known = suggest(service)
    assert known
    return known


def problem(service: RunningService) -> str | None:
    """What `/status` says is wrong."""
    found: str | None = service.client.get("/status", timeout=TIMEOUT_S).json().get("problem")
    return found


@pytest.mark.parametrize("fault", ["hangs", "refuses"])
def test_suggestions_come_from_rules_while_the_index_is_away(
    tmp_path: Path, silent_port: int, fault: str
) -> None:
    """Twenty at once do not wait for it, `/status` says it, and it is used when it is back."""
    settings = hashing_settings(tmp_path, qdrant={"url": f"local:{tmp_path / 'qdrant'}"})
    port = silent_port if fault == "hangs" else free_port()
    with running(settings) as service:
        known = mended(service)

        async def waver() -> Wavering:
            current = cast("CurrentIndex", service.context.index)
            place = QdrantPlace(f"http://127.0.0.1:{port}", grpc_port=port, timeout_s=TIMEOUT_S)
            away = QdrantIndex(Connection(place), "vectors", dimension=384, shards=1)
            here = await index_place(settings, service.context.store)
            same = await open_named(here, current.opened, service.context.embedder)
            wavering = Wavering(same, away)
            await current.switch_index(cast("VectorIndex", wavering), current.opened)
            return wavering

        wavering = on_loop(service, waver())
        assert suggest(service) == known
        wavering.is_away = True
        began = time.monotonic()
        with ThreadPoolExecutor(20) as callers:
            answers = list(callers.map(lambda _: suggest(service), range(20)))
        answers += [suggest(service) for _ in range(20)]
        assert time.monotonic() - began < 5 * TIMEOUT_S  # each waiting by itself: 20 times as long
        assert all(answers)
        eventually(lambda: "does not answer" in (problem(service) or ""))
        assert service.record(execution(toolName="another")).status_code == 202
        if fault == "refuses":  # else it is known only when the time is over
            eventually(lambda: service.context.indexer.problem)
        assert service.client.get("/readyz").status_code == 200
        wavering.is_away = False
        eventually(lambda: problem(service) is None)
        assert suggest(service) == known


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["deleted", "recreated"])
def test_a_collection_that_somebody_deletes_is_told_with_its_cure(
    tmp_path: Path, is_made_anew: bool
) -> None:
    """Also when an empty one takes its place: rules answer, and a rebuild makes the vectors."""
    settings = hashing_settings(tmp_path, qdrant={"url": f"local:{tmp_path / 'qdrant'}"})
    with running(settings) as service:
        known = mended(service)

        async def disturb() -> None:
            current = cast("CurrentIndex", service.context.index)
            place = await index_place(settings, service.context.store)
            [name] = await list_indexes(place)
            await destroy_index(place, name)
            if is_made_anew:
                await (await open_named(place, current.opened, service.context.embedder)).close()

        on_loop(service, disturb())
        eventually(lambda: "aftercall rebuild" in (problem(service) or ""))
        eventually(lambda: not service.client.get("/status").json()["consistent"])
        assert suggest(service) == known
        assert service.client.get("/readyz").status_code == 200
    asyncio.run(rebuild_store(settings, lambda _: None))
    with running(settings) as service:
        assert problem(service) is None
        assert suggest(service) == known
