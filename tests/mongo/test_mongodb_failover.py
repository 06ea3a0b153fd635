"""MongoDB fails at every single statement in every way: nothing acknowledged is lost or doubled."""

import gc
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from pymongo import AsyncMongoClient, common
from pymongo.errors import OperationFailure

from embeddings.embedders import HashingEmbedder
from ingest.indexer import Indexer
from ingest.leases import LeaseKeeper
from mongo.errors import (
    KeyChangedError,
    StateConflictError,
    StoreFencedError,
    StoreUnavailableError,
)
from mongo.mongodb import database, events, knowledge
from mongo.mongodb.control import open_mongo_control
from mongo.mongodb.database import UNKNOWN
from mongo.mongodb.requirements import INDEXES
from mongo.mongodb.store import MongoOptions, MongoStore, open_mongo_store
from mongo.protocol import ControlStore
from mongo.records import AuditHead, Commit, Event, Row, StateRow
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.memory import Memory
from tests.ingest.histories import WORKSPACE, held, history
from tests.ingest.shared_scenario import NoIndex
from tests.mongo import mongo_server
from tests.mongo.conftest import mongo_options
from tests.mongo.store_samples import SCHEMA_HASH, SEARCH, ids, make_command, make_event, read_all
from tests.mongo.test_control_contract import ENTRY, KEY
from tests.mongo.test_mongodb_faults import AFTER, fill, learned
from tests.mongo.wire_proxy import FAULTS, Document, Fault, WireProxy, wire_proxy_to

pytestmark = [
    pytest.mark.real,
    # As in test_mongodb_opening: a client that is closed while its monitor connects.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
]
T = TypeVar("T")
SHARE = 25
"""Of so many faults at all statements `make test` makes one; `make prove` makes all."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits longer than a test can, neither for others nor for the next hello."""
    monkeypatch.setattr(events, "GAP_S", 0.02)
    monkeypatch.setattr(database, "PATIENCE_S", 0.0)
    monkeypatch.setattr(common, "MIN_HEARTBEAT_INTERVAL", 0.005)
    yield
    gc.collect()


class Way:
    """A store behind a proxy, the same one directly, and a caller who insists."""

    def __init__(self, proxy: WireProxy, through: MongoOptions, straight: MongoOptions) -> None:
        self.proxy, self.through, self.straight = proxy, through, straight
        self.refusals: list[str] = []
        self.store: MongoStore
        self.other: MongoStore
        self.control: ControlStore
        self.other_control: ControlStore

    async def ask(self, call: Callable[[], Awaitable[T]], *done: type[Exception]) -> T | None:
        """What a call answers in the end; None where it says, sent again, that it was done."""
        is_again = False
        while True:
            try:
                return await call()
            except StoreUnavailableError as error:
                self.refusals.append(str(error))
                is_again = True
            except done:
                assert is_again
                return None


@asynccontextmanager
async def way_to(options: MongoOptions, *, as_set: bool, opened: bool = True) -> AsyncIterator[Way]:
    """The store and the control store, each through the proxy and straight."""
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(wire_proxy_to(options.uri, as_set=as_set))
        if found is None:
            pytest.skip("the server speaks TLS or has no address of its own: nothing to read")
        proxy, uri = found
        through = replace(options, uri=uri)
        way = Way(proxy, through, options)
        if opened:
            way.other = await open_mongo_store(options)
            stack.push_async_callback(way.other.close)
            way.other_control = await open_mongo_control(options)
            stack.push_async_callback(way.other_control.close)
            way.store = await open_mongo_store(through)
            stack.push_async_callback(way.store.close)
            way.control = await open_mongo_control(through)
            stack.push_async_callback(way.control.close)
        yield way
        proxy.fail_at(None)


# What is done, and what must be there afterwards. Each gets a name that is its own.


async def follow(way: Way, workspace: str, seen: list[Event]) -> None:
    """Read the log on to its end, as a learner does."""
    while True:
        position = seen[-1].position if seen else 0
        page = await way.ask(lambda at=position: way.store.events.read_after(workspace, at, 3))
        if not page:
            break
        seen += page


async def log_and_commands(way: Way, name: str) -> None:
    """Appends, some of them twice; a command after another; all ways to read; erasing."""
    log, batch = way.store.events, [make_event(n, with_schema=n == 0) for n in range(5)]
    seen: list[Event] = []
    for part in (batch[:3], batch[1:4]):
        verdicts = await way.ask(lambda part=part: log.append(name, part))
        assert verdicts is not None
        assert "conflict" not in verdicts
    await follow(way, name, seen)
    first, row = make_command(7, "old", expected=0)
    await way.ask(lambda: log.append(name, [first], [row]), StateConflictError)
    [held_row] = await way.ask(lambda: log.read_state(name, "tool")) or []
    second, row = make_command(8, "new", expected=0)
    state = [row, StateRow("tool", "old", None, expected=held_row.position)]
    await way.ask(lambda: log.append(name, [second], state), StateConflictError)
    await way.ask(lambda: log.append(name, batch[4:]))
    await follow(way, name, seen)
    assert sorted(ids(seen)) == [f"id-{n}" for n in (0, 1, 2, 3, 4, 7, 8)]
    assert seen == await read_all(way.other.events, name)
    found = await way.ask(lambda: log.find_events(name, "execution", ["id-4", "id-0"])) or []
    assert ids(found) == ["id-4", "id-0"]
    latest = await way.ask(lambda: log.latest_events(name, "execution", 9, sessions=["s-1"])) or []
    assert sorted(ids(latest)) == [f"id-{n}" for n in range(5)]
    assert await way.ask(lambda: log.read_schemas(name, [SCHEMA_HASH]))
    at = {event.id: event.position for event in seen}
    await way.ask(lambda: log.forget_events(name, [at["id-0"]]))
    late = max(event.received_at for event in seen).replace(year=9000)
    await way.ask(lambda: log.erase_events(name, at["id-1"], late, 10))
    left = [event for event in seen if event.position > max(at["id-0"], at["id-1"])]
    assert await read_all(way.other.events, name) == left
    assert [row.key for row in await way.other.events.read_state(name, "tool")] == ["new"]
    head = (await way.ask(log.read_heads) or {})[name]
    executions = sum(event.kind == "execution" for event in left)
    assert {k: n for k, n in head.counts.items() if n} == {"execution": executions, "tool": 2}


async def commits(way: Way, name: str) -> None:
    """What is learned moves the cursor once, with all rows and counters; all ways to read it."""
    commit = await fill(way.other, name)
    now = way.store.knowledge
    await way.ask(lambda: now.commit(commit), StoreFencedError)
    assert (await way.ask(now.read_cursors) or {})[name] == AFTER["cursor"]
    assert await learned(way.other, name) == AFTER
    assert len(await way.ask(lambda: now.get(name, "rule", ["b", "d", "a"])) or []) == 2
    for by in ("key", "rank", "serial"):
        assert await way.ask(lambda by=by: now.scan_rows(name, "rule", 9, by=by))
    assert len(await way.ask(lambda: now.scan_rows(name, None, 9, by="serial")) or []) == 4
    assert await way.ask(lambda: now.count_rows("rule", name)) == 3
    sums = (
        await way.ask(lambda: now.sum_counters(name, ["calls"], since=0, until=9, by=["hour"]))
        or []
    )
    assert {each.hour: each.number for each in sums} == AFTER["counts"]


async def large_commits(way: Way, name: str) -> None:
    """The same in pieces, of which none stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge, "INLINE_BYTES", 0)
        patch.setattr(database, "MAX_BYTES", 2_000)
        await commits(way, name)


async def generations(way: Way, name: str) -> None:
    """A rebuild that is begun until it can be, learned into and switched to; the former goes."""
    await way.other.refresh_generation()
    base = await way.other.open_generation(0)
    if not await base.read_cursors():  # all runs share a workspace: each copies the whole base
        await base.commit(Commit("w", [Row("rule", "of the base", tool=SEARCH)], moved=(0, 2)))
    store = await way.ask(lambda: open_mongo_store(way.through))
    assert store is not None
    try:
        number = store.knowledge.generation + 1
        made = await way.ask(lambda: store.open_generation(number))
        assert made is not None
        rows = Commit("w", [Row("rule", "new")], moved=(2, 4))
        await way.ask(lambda: made.commit(rows), StoreFencedError)
        await way.ask(lambda: store.switch_generation(number, {"index": name}), StoreFencedError)
        await way.ask(store.refresh_generation)
        assert store.knowledge.generation == number
    finally:
        await store.close()
    assert await way.other.refresh_generation()
    assert await way.other.metadata.get("index") == name
    rules = await way.other.knowledge.scan_rows("w", "rule", 9)
    assert [row.key for row in rules] == ["new", "of the base"]
    assert (await way.other.knowledge.read_cursors())["w"].position == 4


async def keys_and_audit(way: Way, name: str) -> None:
    """A key is there when it was said so; the audit has no gap and no fork."""
    key = replace(KEY, id=name)
    revoked = replace(key, revoked_at=key.created_at)
    entry = replace(ENTRY, subject=name)
    await way.ask(lambda: way.control.append(entry, key), KeyChangedError)
    await way.ask(lambda: way.control.append(entry, revoked, key), KeyChangedError)
    await way.ask(lambda: way.control.note_used({name: key.created_at}))
    assert len(await way.ask(lambda: way.control.list_entries(2)) or []) == 2
    found = {each.id: each for each in await way.other_control.list_keys()}
    assert found[name] == replace(revoked, used_at=key.created_at)
    entries = (await way.other_control.list_entries(10_000))[::-1]
    assert sum(each.subject == name for each in entries) >= 2
    heads = [AuditHead()]
    for each in entries:
        assert each == each.chain_to(heads[-1])
        heads.append(AuditHead(each.position, each.hash))
    # An entry whose writer was refused in between is caught up with by the next writer.
    assert await way.other_control.read_head() in heads[-2:]


async def leases_and_facts(way: Way, name: str) -> None:
    """A lease that was taken without an answer is taken up; one holder at a time."""
    keeper = LeaseKeeper(way.store.leases, name, ttl=30)
    rival = LeaseKeeper(way.other.leases, name, ttl=30)
    assert await way.ask(keeper.try_take)
    assert await way.ask(keeper.renew_lease)
    assert not await rival.try_take()
    lease = await way.other.leases.read(name)
    assert lease is not None
    await way.ask(lambda: way.store.leases.give_back(lease))
    assert await rival.try_take()
    await rival.close()
    await keeper.close()
    await way.ask(lambda: way.store.metadata.put(name, "x"))
    assert await way.ask(lambda: way.store.metadata.get(name)) == "x"


Room = Callable[[Way, str], Awaitable[None]]
ROOMS: list[Room] = [
    log_and_commands, commits, large_commits, generations, keys_and_audit, leases_and_facts
]  # fmt: skip


def points(statements: int, share: int) -> list[tuple[int, Fault]]:
    """Where to fail and how: one of so many, in turn at all places and in all ways."""
    return list(itertools.product(range(statements), FAULTS))[::share]


async def fail_everywhere(way: Way, room: Room, share: int) -> None:
    """First without a fault, to see what there is; then with one, again and again."""
    way.proxy.fail_at(None)
    await room(way, "undisturbed")
    statements = len(way.proxy.statements)
    assert statements > 3
    assert way.refusals == []
    for at, fault in points(statements, share):
        way.proxy.fail_at(at, fault)
        try:
            await room(way, f"{at} {fault}")
        except Exception as error:
            error.add_note(f"{fault} at statement {at}: {way.proxy.statements[at : at + 1]!r:.300}")
            raise


@pytest.mark.parametrize("as_set", [False, True], ids=["alone", "set"])
@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
@pytest.mark.parametrize(
    "share", [SHARE, pytest.param(1, marks=[pytest.mark.prove, pytest.mark.timeout(1800)])]
)
async def test_a_fault_at_any_statement_loses_and_doubles_nothing(
    tmp_path: Path, room: Room, as_set: bool, share: int
) -> None:
    """What was refused can be sent again; a set's driver sends most of it again by itself."""
    async with way_to(await mongo_options(tmp_path), as_set=as_set) as way:
        await fail_everywhere(way, room, share)
        assert as_set or way.refusals
        # Whoever was refused is told what to do.
        assert all("can be sent again" in each or "send the call" in each for each in way.refusals)


async def open_and_learn(way: Way, folder: Path, log: Sequence[Event]) -> Document:
    """An empty database is opened, recorded into and learned; what is known then.

    Without ranks, which are positions: those that were reserved for nothing are not used again.
    """
    options = await mongo_options(folder)
    through = replace(way.through, database=options.database)
    store = await way.ask(lambda: open_mongo_store(through))
    assert store is not None
    indexer = Indexer(
        store=store, memory=Memory(store), index=cast("VectorIndex", NoIndex()),
        embedder=HashingEmbedder(), is_shared=True, batch=9,
    )  # fmt: skip
    try:
        for first in range(0, len(log), 9):
            batch = log[first : first + 9]
            await way.ask(lambda batch=batch: store.events.append(WORKSPACE, batch))
            while await way.ask(indexer.learn_step) or await way.ask(indexer.embed_step):
                pass
        assert [e.id for e in await read_all(store.events)] == [event.id for event in log]
        known = await held(store.knowledge)
        return {"counters": known.pop("counters"), **{k: row[:2] for k, row in known.items()}}
    finally:
        await indexer.close()
        await store.close()


@pytest.mark.parametrize("as_set", [False, True], ids=["alone", "set"])
@pytest.mark.parametrize(
    "share", [175, pytest.param(7, marks=[pytest.mark.prove, pytest.mark.timeout(3600)])]
)
async def test_the_learner_goes_on_after_a_fault_at_any_statement(
    tmp_path: Path, as_set: bool, share: int
) -> None:
    """From the empty database on; it knows the same as if nothing had been."""
    log = list(history(5, 24, 1.0))
    async with way_to(await mongo_options(tmp_path), as_set=as_set, opened=False) as way:
        expected = await open_and_learn(way, tmp_path / "undisturbed", log)
        assert way.refusals == []
        for at, fault in points(len(way.proxy.statements), share):
            way.proxy.fail_at(at, fault)
            found = await open_and_learn(way, tmp_path / f"{at} {fault}", log)
            assert found == expected, (at, fault, way.proxy.statements[at])


async def test_an_election_is_waited_for(tmp_path: Path) -> None:
    """As long as a server may count as away; a longer one is said, with what to do."""
    async with way_to(await mongo_options(tmp_path), as_set=True) as way:
        way.proxy.election_length = 20
        way.proxy.fail_at(0, "stepped down")
        assert await way.store.events.append("w", [make_event(0)]) == ["accepted"]
        assert way.proxy.elections == 0
        way.proxy.elections = 10**9
        quick = replace(way.through, connect_timeout_s=0.2)
        with pytest.raises(StoreUnavailableError, match=r"takes writes.*sent again"):
            await open_mongo_store(quick)
        way.proxy.elections = 0
        assert await way.store.events.append("w", [make_event(0)]) == ["duplicate"]
        assert ids(await read_all(way.other.events, "w")) == ["id-0"]


# Indexes.

LARGE = set(INDEXES) - {"LOG_HEADS", "CURSORS", "LEASES", "KEYS"}
"""Collections that grow; of the others there is a record for each workspace or process."""
FORGETTING = {"workspace", "schema_hash"}
"""Who forgets has read the whole log of the workspace before; an index for it would cost more."""
NAMED = {"_id", "position", "serial"}
"""By which few records are found, and what stands beside one of them in a filter is looked at."""


def asked(statement: Document) -> Iterator[tuple[str, Document, list[str]]]:
    """The collection, the filter and the order of what a statement looks for."""
    name = next(iter(statement))
    which: list[Any] = [statement.get("filter", statement.get("query"))]
    match name:
        case "update":
            which = [dict(each)["q"] for each in statement["updates"]]
        case "delete":
            which = [dict(each)["q"] for each in statement["deletes"]]
        case "aggregate":
            stages = statement["pipeline"]
            which = [{k: v for each in stages for k, v in each.get("$match", {}).items()}]
    for each in which:
        if each is not None and statement[name] in LARGE:
            yield statement[name], dict(each), list(statement.get("sort", {}))


def is_served(which: Document, sort: list[str], index: Sequence[str]) -> bool:
    """Whether an index leads to what a filter asks for, in its order, and to little else."""
    ranges = {name for name, value in which.items() if isinstance(value, Mapping)}
    if "$or" in which:  # of one field
        ranges |= {name for each in which["$or"] for name in each}
    points = {name for name in ranges if "$in" in (which.get(name) or {})}
    same = set(which) - ranges | points
    used = list(itertools.takewhile(same.__contains__, index))
    rest = [name for name in index if name not in used]
    wanted = [name for name in sort if name not in same]
    if wanted != rest[: len(wanted)]:
        return False
    found = {*used, *rest[: max(1, len(wanted))]}
    left = set(which) - found - {"$or"} | (ranges - found)
    is_named = bool(found & NAMED & set(which))
    return is_named or not left - ({"hour"} if "what" in found else set())  # hours of each counter


async def test_every_query_is_served_by_an_index(tmp_path: Path) -> None:
    """Of those definitions that a server is given; one that explains says so itself."""
    async with way_to(await mongo_options(tmp_path), as_set=False) as way:
        way.proxy.fail_at(None)
        for room in ROOMS:
            await room(way, room.__name__)
        await way.store.knowledge.scan_rows("w", "rule", 9, by="rank", tool=SEARCH)
        await way.store.events.latest_events("w", "execution", 9, tool=SEARCH, before=7)
        await way.store.counters.sum_counters("w", ["a", "b*"], since=0, until=9, tools=[SEARCH])
        await way.control.list_entries(3, workspace="w")
        statements = [dict(each) for each in way.proxy.statements]
        shapes = {repr(shape_of(each)): each for each in statements if list(asked(each))}
        assert len(shapes) > 20
        for each in statements:  # durable on a majority, and read of what a majority has
            if next(iter(each)) in ("insert", "update", "delete", "findAndModify"):
                assert each["writeConcern"] == {"w": "majority", "j": True}
            elif next(iter(each)) in ("find", "aggregate", "count", "distinct"):
                assert each["readConcern"] == {"level": "majority"}
        for statement in shapes.values():
            for name, which, sort in asked(statement):
                indexes = [["_id"], *(list(each.document["key"]) for each in INDEXES[name])]
                served = any(is_served(which, sort, each) for each in indexes)
                assert served or set(which) == FORGETTING, (name, which, sort)
            if mongo_server.given_uri():
                await explained(way, statement)


def shape_of(value: Any) -> Any:
    """A statement without its values."""
    if isinstance(value, Mapping):
        return {name: shape_of(each) for name, each in value.items() if name != "lsid"}
    return sorted({repr(shape_of(each)) for each in value}) if isinstance(value, list) else None


async def explained(way: Way, statement: Document) -> None:
    """A real server neither reads a whole collection for it, nor sorts."""
    known = {"find", "aggregate", "count", "delete", "update", next(iter(statement))}
    kept = {"filter", "query", "sort", "pipeline", "cursor", "updates", "deletes", "limit"}
    command = {k: v for k, v in statement.items() if k in known | kept}
    for several in {"updates", "deletes"} & set(command):
        command[several] = command[several][:1]  # more than one is not explained
    async with AsyncMongoClient[Document](way.straight.uri) as client:
        try:
            plan = await client[way.straight.database].command("explain", command)
        except OperationFailure as error:
            if error.code in UNKNOWN:
                pytest.skip(f"the server explains no {next(iter(command))} ({error.code})")
            raise
    stages = set(re.findall(r"'stage': '(\w+)'", repr(plan)))
    assert not stages & {"COLLSCAN", "SORT"}, (statement, stages)
