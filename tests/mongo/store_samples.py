"""Events, rows and commits for the tests of stores."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from aftercall.json_values import JsonObject, content_hash
from mongo.protocol import EventLog, Knowledge, Store
from mongo.records import Commit, Event, EventKind, Lease, Row, StateRow, ToolKey

AnyStore = TypeVar("AnyStore", bound=Store)

WORKSPACE = "default"
SEARCH = ToolKey(WORKSPACE, "rag-server", "search")
LOCAL = ToolKey(WORKSPACE, None, "search")
"""A tool of the same name without a server."""
SCHEMA: JsonObject = {"type": "object", "properties": {"topK": {"maximum": 10}, "a": {}}}
SCHEMA_HASH = content_hash(SCHEMA)


def make_event(
    number: int,
    kind: EventKind = "execution",
    *,
    text: str = "",
    tool: ToolKey | None = SEARCH,
    session: str | None = "s-1",
    with_schema: bool = False,
) -> Event:
    """An event whose id follows from `number` and whose content from all arguments."""
    data = f'{{"number":{number},"text":"{text}"}}'
    return Event(
        kind,
        f"id-{number}",
        data.encode(),
        tool,
        session,
        principal=f"key-{number % 3}",
        content_hash=content_hash(data),
        schema_hash=SCHEMA_HASH if with_schema else None,
        input_schema=SCHEMA if with_schema else None,
    )


def make_events(count: int, *, first: int = 0) -> list[Event]:
    return [make_event(number) for number in range(first, first + count)]


def make_command(number: int, key: str, *, expected: int | None = None) -> tuple[Event, StateRow]:
    """A tool that is put, and the state that this leaves."""
    event = make_event(number, "tool")
    return event, StateRow("tool", key, event.data, expected)


def large(number: int) -> Event:
    """An event of a mebibyte that does not compress into nothing."""
    text = "".join(content_hash(f"{number}/{each}") for each in range(1 << 14))
    return make_event(number, text=text)


async def read_all(log: EventLog, workspace: str = WORKSPACE, limit: int = 100) -> list[Event]:
    """The whole log, page by page."""
    found: list[Event] = []
    while page := await log.read_after(workspace, found[-1].position if found else 0, limit):
        found += page
    return found


async def scan_all(
    knowledge: Knowledge, kind: str, workspace: str = WORKSPACE, *, limit: int = 3
) -> list[Row]:
    """All rows of a kind, page by page."""
    found: list[Row] = []
    while page := await knowledge.scan_rows(
        workspace, kind, limit, after=found[-1].key if found else None
    ):
        found += page
    return found


async def put(
    knowledge: Knowledge,
    *rows: Row,
    workspace: str = WORKSPACE,
    moved: tuple[int, int] | None = None,
    lease: Lease | None = None,
) -> int:
    """Commit rows."""
    return await knowledge.commit(Commit(workspace, list(rows), moved=moved, lease=lease))


def ids(events: Iterable[Event]) -> list[str]:
    return [event.id for event in events]


def keys(rows: Iterable[Row]) -> list[str]:
    return [row.key for row in rows]


async def lease_of(store: Store, name: str, holder: str = "host/1/a") -> Lease:
    """A lease, taken now from whatever holder it has."""
    lease = await store.leases.take_lease(name, holder, await store.leases.read(name))
    assert lease is not None
    return lease


@asynccontextmanager
async def closing(store: AnyStore) -> AsyncIterator[AnyStore]:
    """A store that is closed at the end of the block."""
    try:
        yield store
    finally:
        await store.close()


def stored(events: Sequence[Event], workspace: str = WORKSPACE) -> list[tuple[object, ...]]:
    """What has to come back of events that were appended."""
    return [
        (workspace, e.kind, e.id, e.data, e.tool, e.session, e.principal, e.content_hash,
         e.schema_hash, None)
        for e in events
    ]  # fmt: skip


def returned(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """The same of events that were read."""
    return [
        (e.workspace, e.kind, e.id, e.data, e.tool, e.session, e.principal, e.content_hash,
         e.schema_hash, e.input_schema)
        for e in events
    ]  # fmt: skip
