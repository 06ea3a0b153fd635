"""A service's life in short, and what a reader finds wrong with what is left of it."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from aftercall.recording.spool import Spool
from embeddings.embedders import HashingEmbedder
from ingest.indexer import Indexer
from ingest.nightly import NightlyJob, run_steps
from ingest.nightly_steps import STEPS
from mongo.records import Event
from retrieval.index.protocol import VectorIndexError
from retrieval.knowledge.memory import DOCUMENT
from service.archive import (
    AlreadyImportedError,
    ArchiveReader,
    ArchiveWriter,
    import_store,
    open_unpacked,
    open_written,
)
from service.cli.forget import forget_now
from service.databases import opened_store
from service.forget import Forgotten, state_of
from service.rebuild import rebuild_store
from service.settings import DataSettings, EmbeddingSettings, IndexingSettings, Settings
from service.stores import Stores, open_stores
from tests.ingest.histories import BEGIN, WORKSPACE, differences, history

DAYS, RETENTION = 40.0, timedelta(days=30)
EVE = Forgotten(workspace=WORKSPACE, agent="eve")
EVENTS = list(history(11, 72, DAYS))
Say = Callable[..., None]
REBUILD = "(asked for a rebuild)"
"""Not wrong: the vectors were gone, the message names the cure, and the cure helps."""


def settings(folder: Path) -> Settings:
    """Of a service on a folder, without a model."""
    return Settings(
        data=DataSettings(dir=folder),
        embedding=EmbeddingSettings(model="hashing"),
        indexing=IndexingSettings(lease_s=1),
    )


# The scenario: what is done, and what is said once it is acknowledged.


async def live(folder: Path, say: Say) -> None:
    """A service's life in short; `say` gets what was acknowledged, or is about to be taken away."""
    home = settings(folder / "home")
    async with open_stores(home) as stores:
        await _record(stores, EVENTS[:48], say)
        await _learn(stores)
        say("expiring")
        await run_steps(_night(stores), STEPS)
        await _record(stores, EVENTS[48:60], say)
        await _learn(stores)
    await rebuild_store(home, lambda _: None)
    say("forgetting")
    await forget_now(home, EVE)
    say("forgotten")
    async with open_stores(home) as stores:
        await _record(stores, [e for e in EVENTS[60:] if not EVE.is_of(e)], say)
        await _learn(stores)
        with open_written(str(folder / "archive")) as stream:
            async for line in ArchiveWriter(stores.store).write_lines():
                stream.write(line)
        say("exported")
    await bring(folder)
    say("imported")
    spool = Spool(folder / "spool", max_bytes=1 << 20, segment_bytes=300)
    for number in range(6):
        lines = [json.dumps({"id": number, "text": "x" * 90}).encode()]
        spool.append(lines)
        say("spooled", number)
    with spool.lock_oldest() as segment:
        assert segment is not None
        for line in segment.lines:
            say("sent", json.loads(line)["id"])
        segment.remove()


async def _record(stores: Stores, events: list[Event], say: Say) -> None:
    for some in (events[at : at + 3] for at in range(0, len(events), 3)):
        for event in some:
            state = state_of(WORKSPACE, event)
            if state is not None:  # a command, and what it leaves
                await stores.store.events.append(WORKSPACE, [event], [state])
                say("event", event.kind, event.id)
        calls = [event for event in some if state_of(WORKSPACE, event) is None]
        await stores.store.events.append(WORKSPACE, calls)
        for event in calls:
            say("event", event.kind, event.id)


async def _learn(stores: Stores) -> None:
    indexer = Indexer(
        store=stores.store, memory=stores.memory, index=stores.index, embedder=stores.embedder,
        batch=7, lease_s=1,
    )  # fmt: skip
    await indexer.catch_up()
    await indexer.close()


def _night(stores: Stores) -> NightlyJob:
    async def model() -> HashingEmbedder:
        return HashingEmbedder()

    return NightlyJob(
        store=stores.store, memory=stores.memory, open_model=model, keeper=None,
        knowledge=stores.store.knowledge, retention=RETENTION, expire_all=True,
        clock=lambda: BEGIN + timedelta(days=DAYS),
    )  # fmt: skip


async def bring(folder: Path) -> None:
    """Import the archive into a folder of its own, as often as it takes."""
    async with opened_store(settings(folder / "away")) as store:
        with open_unpacked(str(folder / "archive")) as stream:
            reader = ArchiveReader(stream)
            try:
                await import_store(store, reader)
            except AlreadyImportedError:
                return


# What is left after a death.


@dataclass
class Said:
    """What a process acknowledged before it died."""

    events: set[tuple[str, str]] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    spooled: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, text: str) -> "Said":
        """From its lines; the last one may be cut."""
        said = cls()
        for line in text.split("\n")[:-1]:
            match json.loads(line):
                case ["event", kind, name]:
                    said.events.add((kind, name))
                case ["spooled", number]:
                    said.spooled.add(number)
                case ["sent", number]:
                    said.sent.add(number)
                case [step]:
                    said.steps.add(step)
        return said


async def wrong_with(folder: Path, said: Said, shipped: int) -> list[str]:
    """What a reader of the folder would find wrong; empty where all is as acknowledged."""
    home, wrong = settings(folder / "home"), []
    if "forgetting" in said.steps and "forgotten" not in said.steps:
        await forget_now(home, EVE)  # what somebody does whose command was killed
    try:
        async with open_stores(home) as stores:
            await _learn(stores)
    except VectorIndexError:
        wrong.append(REBUILD)
        await rebuild_store(home, lambda _: None)
    async with open_stores(home) as stores:
        await _learn(stores)
        wrong += await _wrong_log(stores, said)
        wrong += await _wrong_knowledge(stores, shipped)
    archive = folder / "archive"
    if "exported" in said.steps and not archive.exists():
        wrong.append("the export is gone")
    if archive.exists():
        await bring(folder)
        async with opened_store(settings(folder / "away")) as away:
            with open_unpacked(str(archive)) as stream:
                reader = ArchiveReader(stream)
                ids = [content["id"] for kind, content in reader.read_lines() if kind == "event"]
            got = [event.id for event in await away.events.read_after(WORKSPACE, 0, 1_000)]
            if got != ids:
                wrong.append(f"imported {len(got)} events of {len(ids)}")
    spool = Spool(folder / "spool", max_bytes=1 << 20, segment_bytes=300)
    waiting = []
    while True:
        with spool.lock_oldest() as segment:
            if segment is None:
                break
            waiting += [json.loads(line)["id"] for line in segment.lines]
            segment.remove()
    if lost := said.spooled - said.sent - set(waiting):
        wrong.append(f"the spool lost {sorted(lost)}")
    if len(set(waiting)) < len(waiting):
        wrong.append("the spool holds something twice")
    return wrong


async def _wrong_log(stores: Stores, said: Said) -> list[str]:
    store = stores.store
    events = await store.events.read_after(WORKSPACE, 0, 1_000)
    found = Counter[tuple[str, str]]((e.kind, e.id) for e in events)
    known: dict[tuple[str, str], Event] = {(e.kind, e.id): e for e in EVENTS}
    edge = BEGIN + timedelta(days=DAYS) - RETENTION
    wrong = [f"{each} is there {n} times" for each, n in found.items() if n > 1]
    positions = [e.position for e in events]
    if positions != sorted(set(positions)):
        wrong.append("positions are not in order")
    forgets = "forgetting" in said.steps
    eves: set[tuple[str, str]] = {(e.kind, e.id) for e in EVENTS if EVE.is_of(e)}
    if forgets and eves & set(found):
        wrong.append("what was forgotten is there")
    for each in said.events - set(found):
        expired = "expiring" in said.steps and known[each].received_at < edge
        if not expired and not (forgets and (each in eves or _quotes(known[each], eves))):
            wrong.append(f"{each} is lost")
    wrong += [f"{e.id} has changed" for e in events if e.data != known[e.kind, e.id].data]
    return wrong + await _wrong_state(stores, events, said)


async def _wrong_state(stores: Stores, events: list[Event], said: Said) -> list[str]:
    """The state is what the commands left that are in the log, and those that have expired."""
    there = {(event.kind, event.id) for event in events} | said.events
    left: dict[tuple[str, str], bytes | None] = {}
    for event in EVENTS:
        gone = "forgetting" in said.steps and EVE.is_of(event)
        state = state_of(WORKSPACE, event)
        if state is not None and not gone and (event.kind, event.id) in there:
            left[state.kind, state.key] = state.data
    rows = {
        (kind, row.key): row.data
        for kind in ("tool", "promotion", "pattern")
        for row in await stores.store.events.read_state(WORKSPACE, kind)
    }
    wanted = {each: data for each, data in left.items() if data is not None}
    return [f"the state of {each} is wrong" for each in wanted.items() ^ rows.items()]


def _quotes(event: Event, eves: set[tuple[str, str]]) -> bool:
    names = {name for _, name in eves}
    return event.kind in ("outcome", "mark", "correction", "suggestion") and any(
        name.encode() in event.data for name in names
    )


async def _wrong_knowledge(stores: Stores, shipped: int) -> list[str]:
    """Knowledge is that of a generation which learns base and log anew, and vectors follow it."""
    store = stores.store
    wrong = [f"{kind} differs from a rebuild" for kind in await differences(store)]
    documents = await store.knowledge.count_rows(DOCUMENT.name)
    if (extra := await stores.index.count_points() - documents) != shipped:
        wrong.append(f"{extra - shipped:+} vectors beside {documents} documents")
    return wrong


async def shipped_vectors(folder: Path) -> int:
    """Vectors of the shipped corpus."""
    async with open_stores(settings(folder)) as stores:
        return await stores.index.count_points()
