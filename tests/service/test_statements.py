"""How many statements MongoDB is sent for what a service does, so that they do not grow."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mongo.mongo_server import MongoServer, given_uri, missing
from tests.mongo.wire_proxy import WireProxy, wire_proxy_to
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
)

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore:Local mode:UserWarning"),
    pytest.mark.skipif(
        missing() is not None or given_uri() is not None,
        reason="needs a MongoDB of its own: nx-27017 (the extra `dev`)",
    ),
]

LOOKS = {"STORE", "CURSORS", "LOG_HEADS", "KEYS"}
"""What is read again and again, whatever is asked: of these an idle second is counted."""
IDLE_S = 10.0


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WireProxy, str]]:
    """A proxy that counts, in a thread, and the address through it."""
    mongo = MongoServer.start(tmp_path_factory.mktemp("mongo"))
    made: list[tuple[WireProxy, str]] = []
    ended = threading.Event()

    async def carry() -> None:
        async with wire_proxy_to(mongo.uri, as_set=False) as found:
            assert found is not None
            made.append(found)
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(carry()))
    thread.start()
    try:
        eventually(lambda: made)
        yield made[0]
    finally:
        ended.set()
        thread.join(timeout=60)
        mongo.stop()


@pytest.fixture(scope="module")
def service(
    proxy: tuple[WireProxy, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service whose workers learn elsewhere, on what another one has learned."""
    folder: Path = tmp_path_factory.mktemp("service")
    servers = {
        "mongo": {"uri": proxy[1]},
        "qdrant": {"url": f"local:{folder / 'qdrant'}"},
        "nightly": {"every_h": 0},
    }
    with running(hashing_settings(folder, **servers)) as learner:
        for number in range(3):
            said = {"sessionId": f"s-{number}"}
            assert learner.record([failure(**said), execution(**said)]).status_code == 202
        learner.learned()
    with running(hashing_settings(folder, **servers, indexing={"here": False})) as service:
        yield service


def statements(proxy: WireProxy, *, looks: bool) -> list[str]:
    """What was sent since the last call, by command and collection."""
    sent = [(next(iter(each)), each) for each in list(proxy.statements)]
    proxy.fail_at(None)
    named = [(command, str(each[command])) for command, each in sent]
    is_look = [command == "find" and name in LOOKS for command, name in named]
    return [" ".join(each) for each, is_one in zip(named, is_look, strict=True) if is_one == looks]


def test_one_execution_is_two_statements(
    service: RunningService, proxy: tuple[WireProxy, str]
) -> None:
    """A position is reserved, and the event inserted; that it was not there is seen by that."""
    service.record(execution())
    statements(proxy[0], looks=False)
    assert service.record(execution()).status_code == 202
    assert statements(proxy[0], looks=False) == [
        "findAndModify LOG_HEADS", "insert TOOL_EXECUTION_LOG"
    ]  # fmt: skip


def test_many_executions_are_three(service: RunningService, proxy: tuple[WireProxy, str]) -> None:
    """Which of them are known is asked first: a recorder may send all of them again."""
    records = [execution() for _ in range(50)]
    statements(proxy[0], looks=False)
    for _ in range(2):
        assert service.record(records).status_code == 202
    sent = statements(proxy[0], looks=False)
    assert sent == [
        "find TOOL_EXECUTION_LOG", "findAndModify LOG_HEADS", "insert TOOL_EXECUTION_LOG",
        "find TOOL_EXECUTION_LOG",
    ]  # fmt: skip


@pytest.mark.parametrize("session", [None, "s-1"])
def test_a_suggestion_is_three_statements_at_most(
    service: RunningService, proxy: tuple[WireProxy, str], session: str | None
) -> None:
    """Once the tool is known: the session's calls before the answer, the suggestion after it.

    The log is counted now and then, whatever is asked.
    """
    counting = {"aggregate TOOL_EXECUTION_LOG", "update LOG_HEADS"}
    question = {"execution": failure(sessionId=session)}
    for _ in range(2):
        assert service.client.post("/suggest", json=question).json()["suggestions"]
        eventually(lambda: any("insert" in each for each in named(proxy[0])))
        sent = [each for each in statements(proxy[0], looks=False) if each not in counting]
    assert len(sent) <= (3 if session else 2), sent
    assert sent[-2:] == ["findAndModify LOG_HEADS", "insert TOOL_EXECUTION_LOG"]


def named(proxy: WireProxy) -> list[str]:
    """The commands that were sent so far."""
    return [next(iter(each)) for each in list(proxy.statements)]


def test_an_idle_service_sends_two_statements_a_second(
    service: RunningService, proxy: tuple[WireProxy, str]
) -> None:
    """Once nobody has asked for a while; the first who does hears what was learned meanwhile."""
    eventually(lambda: service.context.attention.is_idle, 60)
    statements(proxy[0], looks=True)
    time.sleep(IDLE_S)  # what is claimed is of this time
    sent = statements(proxy[0], looks=True)
    assert len(sent) <= 2 * IDLE_S, sent
    assert service.client.get("/tools").status_code == 200
    woken = statements(proxy[0], looks=True)
    assert {"find STORE", "find CURSORS", "find LOG_HEADS"} <= set(woken)
