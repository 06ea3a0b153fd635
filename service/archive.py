"""Archives: all that a store holds as one file of JSON lines, and back into an empty store.

    {"aftercall":"archive","version":1,"id":...,"made_at":...,"made_by":...,"store":...}
    {"event":{...}}          the log of each workspace, in its order
    {"state":{...}}          registered tools, promotions, reviews
    {"row":{...}}            the base: what expired events taught
    {"counter":{...}}        what they counted
    {"base":{...}}           how many of the events the base has learned
    {"aftercall":"end","counts":{...},"checksum":...}

An import appends the events and learns them anew; vectors are made by the service that starts on
the store. The checksum is SHA-256 over all lines before the last.
"""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, BinaryIO, get_args
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mongo.errors import StoreError
from mongo.protocol import CounterDimension, Generation, Metadata, Store
from mongo.records import (
    Commit,
    Counter,
    Event,
    Row,
    StateKind,
    StateRow,
    ToolKey,
    decoded,
    encoded,
)
from service.packing import ArchiveError
from service.version import VERSION

FORM = 1
"""Of the lines above. A reader takes this one and no other."""

MAX_LINE = 256 * 1024 * 1024
"""Bytes of one line. An execution has at most 8 MiB, which JSON's escapes may make longer."""

_PAGE = 500
_FACT = "import"
_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"aftercall"\s*:\s*"archive"')
_EVER = (-(2**40), 2**40)

OnRecords = Callable[[str, int], None]
"""Given, after each page, a kind of lines and how many of them were done."""


class HalfImportedError(StoreError):
    """An import into the store did not come to its end."""


class AlreadyImportedError(ArchiveError):
    """This very archive is in the store, whole."""


class Header(BaseModel):
    """The first line: where it comes from, and when it was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    aftercall: str = "archive"
    version: int = FORM
    id: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random: by it a half-done import knows its own archive again."""
    made_at: datetime
    made_by: str
    """Version of Aftercall."""
    store: str
    """What kind of store it was."""
    embedder: str | None = None
    """The model by which the store's vectors were made, as far as the store says so."""


class _Mark(BaseModel):
    """How far an import has come."""

    archive: str
    is_done: bool = False


def is_archive(beginning: bytes) -> bool:
    """Whether a file that begins so means to be an archive, of whatever version."""
    return _BEGINNING.match(beginning) is not None


async def refuse_half_imported(metadata: Metadata) -> None:
    """For everything that serves from a store, learns from it, or copies it.

    Raises:
        HalfImportedError: an import did not come to its end, so that what is there is only a part.
    """
    mark = await _read_mark(metadata)
    if mark is not None and not mark.is_done:
        raise HalfImportedError(
            f"an import into this store did not come to its end (archive {mark.archive}): run "
            "`aftercall import FILE` again with the same file, which goes on, or begin with an "
            "empty store: another data folder, or another database"
        )


async def _read_mark(metadata: Metadata) -> _Mark | None:
    value = await metadata.get(_FACT)
    return None if value is None else _Mark.model_validate_json(value)


# Writing


async def export_store(
    store: Store,
    stream: BinaryIO,
    *,
    embedder: str | None = None,
    on_records: OnRecords = lambda _kind, _done: None,
) -> tuple[Header, dict[str, int]]:
    """Write an archive, with memory for one page of records; its header, and counts of lines.

    What comes meanwhile belongs to the next export.

    Args:
        store: read only; it may be in use.
        stream: where to.
        embedder: the model of the store's vectors, for the header.
        on_records: given the progress.

    Raises:
        StoreError: the store cannot be read, or holds half an import.
        OSError: the stream cannot be written.
    """
    await refuse_half_imported(store.metadata)
    header = Header(
        id=uuid4().hex,
        made_at=datetime.now(UTC),
        made_by=VERSION,
        store=store.name,
        embedder=embedder,
    )
    digest = hashlib.sha256()

    def put(line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        digest.update(text)
        stream.write(text)

    put(header.model_dump(mode="json"))
    counts: dict[str, int] = {}
    async for kind, content in _contents(store):
        put({kind: content})
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] % _PAGE == 0:
            on_records(kind, counts[kind])
    put({"aftercall": "end", "counts": counts, "checksum": digest.hexdigest()})
    return header, counts


async def _contents(store: Store) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    base = await store.open_generation(0)
    cursors = await base.cursors()
    for workspace, head in (await store.events.heads()).items():
        known: set[str] = set()
        position = learned = 0
        cursor = cursors[workspace].position if workspace in cursors else 0
        while events := await store.events.after(workspace, position, _PAGE):
            new = {each.schema_hash for each in events if each.schema_hash} - known
            schemas = await store.events.schemas(workspace, new)
            for event in events:
                if event.position <= head.position:
                    schema = schemas.pop(event.schema_hash or "", None)
                    yield "event", _json(replace(event, position=0, input_schema=schema))
                    learned += event.position <= cursor
            known |= new
            position = events[-1].position
        for kind in get_args(StateKind):
            for row in await store.events.state(workspace, kind):
                yield "state", {"workspace": workspace, **_json(row)}
        if workspace in cursors:
            async for line in _base_of(base, workspace, learned):
                yield line


async def _base_of(
    base: Generation, workspace: str, learned: int
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    after = 0
    while rows := await base.scan(workspace, None, _PAGE, by="serial", after=after):
        for row in rows:
            yield "row", {"workspace": workspace, **_json(row)}
        after = rows[-1].serial
    first, last = _EVER
    by: tuple[CounterDimension, ...] = ("hour", "tool", "what")
    for each in await base.sums(workspace, ["*"], since=first, until=last, by=by):
        yield "counter", {"workspace": workspace, **_json(each._asdict())}
    yield "base", {"workspace": workspace, "learned": learned}


def _json(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encoded(value))
    return found


# Reading


@dataclass(slots=True)
class ArchiveReader:
    """The lines of an archive, each checked; `counts` says what came so far."""

    stream: BinaryIO
    counts: dict[str, int] = field(default_factory=dict)
    _header: Header | None = field(default=None, init=False)
    _digest: Any = field(default_factory=hashlib.sha256, init=False)

    @property
    def header(self) -> Header:
        """The first line.

        Raises:
            ArchiveError: it is none, or of a version that this one cannot read.
        """
        if self._header is None:
            line = self._line()
            value = _object(1, line)
            if value.get("aftercall") != "archive":
                raise _bad(1, "is not the header of an archive")
            if value.get("version") != FORM:
                raise ArchiveError(
                    f"the archive is of version {value.get('version')}, and this Aftercall reads "
                    f"version {FORM}: use the Aftercall that made it ({value.get('made_by')})"
                )
            try:
                self._header = Header.model_validate(value)
            except ValidationError:
                raise _bad(1, "is no complete header") from None
            self._digest.update(line)
        return self._header

    def lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What each line holds, by its kind.

        Raises:
            ArchiveError: the file is damaged, cut off, or was changed.
        """
        self.header  # noqa: B018  # it comes first
        number = 1
        while line := self._line():
            number += 1
            value = _object(number, line)
            if value.get("aftercall") == "end":
                if value.get("counts") != self.counts or value.get("checksum") != self._hex:
                    raise _bad(number, "does not agree with the lines before it")
                if self._line():  # to the end, where what is compressed has its own checksum
                    raise _bad(number + 1, "follows the end")
                return
            self._digest.update(line)
            if len(value) != 1 or not isinstance(content := next(iter(value.values())), dict):
                raise _bad(number, "is no record")
            kind = next(iter(value))
            self.counts[kind] = self.counts.get(kind, 0) + 1
            yield kind, content
        raise _bad(number + 1, "is missing: the file ends too early")

    @property
    def _hex(self) -> str:
        return str(self._digest.hexdigest())

    def _line(self) -> bytes:
        line = self.stream.readline(MAX_LINE)
        if len(line) == MAX_LINE:
            raise ArchiveError("a line of the archive is too long: the file is damaged")
        return line


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise _bad(number, "is not JSON") from None
    if not isinstance(value, dict):
        raise _bad(number, "is not a JSON object")
    return value


def _bad(number: int, problem: str) -> ArchiveError:
    return ArchiveError(
        f"line {number} of the archive {problem}. The file is damaged or was changed: fetch it "
        "again, or export again"
    )


async def import_store(
    store: Store, reader: ArchiveReader, *, on_records: OnRecords = lambda _kind, _done: None
) -> dict[str, int]:
    """Put an archive into an empty store; what was interrupted goes on. Counts of lines by kind.

    Raises:
        AlreadyImportedError: this archive is in the store already.
        ArchiveError: the store is not empty, or the archive is damaged.
        StoreError: the store does not take it.
    """
    header, mark = reader.header, await _read_mark(store.metadata)
    if mark is not None and mark.archive == header.id and mark.is_done:
        raise AlreadyImportedError(f"archive {header.id} is in the store")
    if (mark is None or mark.archive != header.id) and await store.events.heads():
        raise ArchiveError(
            "the store is not empty: import into another data folder (--data-dir) or database"
        )
    await store.metadata.put(_FACT, _Mark(archive=header.id).model_dump_json())
    base = await store.open_generation(0)
    into = _Import(store, base)
    for kind, content in reader.lines():
        await into.put(kind, content)
        if reader.counts[kind] % _PAGE == 0:
            on_records(kind, reader.counts[kind])
    await into.flush()
    if await base.cursors():
        number = store.knowledge.generation + 1
        await store.open_generation(number)  # begins as a copy of the base
        await store.switch(number, {})
    done = _Mark(archive=header.id, is_done=True)
    await store.metadata.put(_FACT, done.model_dump_json())
    return reader.counts


class _Import:
    """Lines on their way into a store, a page at a time."""

    def __init__(self, store: Store, base: Generation) -> None:
        self._store = store
        self._base = base
        self._workspace = ""
        self._events: list[Event] = []
        self._state: list[StateRow] = []
        self._rows: list[Row] = []
        self._counters: dict[Counter, int] = {}

    async def put(self, kind: str, content: dict[str, Any]) -> None:
        """Take one line."""
        try:
            await self._put(kind, content)
        except (KeyError, TypeError, ValueError) as error:
            raise ArchiveError(
                f"a record of the archive ({kind}) cannot be read: {error}"
            ) from None

    async def _put(self, kind: str, content: dict[str, Any]) -> None:
        workspace = content.pop("workspace")
        if workspace != self._workspace:
            await self.flush()
            self._workspace = workspace
        data = json.dumps(
            {"workspace": workspace, **content} if kind == "event" else content
        ).encode()
        match kind:
            case "event":
                self._events.append(replace(decoded(Event, data), workspace=workspace))
            case "state":
                self._state.append(decoded(StateRow, data))
            case "row":
                self._rows.append(decoded(Row, data))
            case "counter":
                tool = content["tool"]
                key = Counter(content["what"], content["hour"], ToolKey(*tool) if tool else None)
                self._counters[key] = content["number"]
            case "base":
                await self._finish_base(content["learned"])
        if len(self._events) >= _PAGE or len(self._rows) >= _PAGE:
            await self.flush()

    async def flush(self) -> None:
        """Write what was taken."""
        if self._events or self._state:
            await self._store.events.append(self._workspace, self._events, self._state)
        if self._rows:
            await self._base.commit(Commit(self._workspace, put=self._rows))
        self._events, self._state, self._rows = [], [], []

    async def _finish_base(self, learned: int) -> None:
        await self.flush()
        if self._workspace in await self._base.cursors():
            known = (await self._base.cursors())[self._workspace]
            if known.position:
                return  # of the import that was interrupted
        await self._base.commit(
            Commit(self._workspace, counters=self._counters, moved=(0, learned))
        )
        self._counters = {}
