"""Archives: all that a store holds as one file of JSON lines, and back into an empty store.

    {"aftercall":"archive","version":2,"id":...,"made_at":...,"made_by":...,"store":...}
    {"event":{...}}          the log of each workspace, in its order
    {"state":{...}}          registered tools, promotions, reviews
    {"row":{...}}            the base: what expired events taught
    {"counter":{...}}        what they counted
    {"base":{...}}           how many of the events the base has learned
    {"aftercall":"end","counts":{...},"checksum":...}

An import appends the events and learns them again; vectors are made by the service that starts on
the store. The checksum is SHA-256 over all lines before the last.
"""

import gzip
import hashlib
import io
import json
import os
import re
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, cast, get_args
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftercall.errors import AftercallError
from aftercall.files import sync_folder
from aftercall.json_values import JsonObject
from mongo.errors import StoreError
from mongo.paging import all_events, all_rows
from mongo.protocol import CounterDimension, Generation, Metadata, Store
from mongo.records import (
    Commit,
    Counter,
    Event,
    Row,
    StateKind,
    StateRow,
    ToolKey,
    decode_json,
    encode_json,
)
from service.version import VERSION

# The file around an archive: compressed, private, and there only when it is whole.

STDIO = "-"


class ArchiveError(AftercallError):
    """The archive cannot be written or read, or the store cannot take it; names the cure."""


GZIP_LEVEL = 4
"""A third faster than level 6 for 8 % more bytes, on 20,000 executions of `bench/history.py`."""


@contextmanager
def open_written(name: str, *, packed: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream whose content becomes the file `name` if the block ends well.

    It is compressed by gzip if `packed`; `-` is stdout. The file is private (0600) and takes its
    name in one step. If the block fails, no file is left.
    """
    if name == STDIO:
        if packed and sys.stdout.isatty():
            raise ArchiveError("an archive is no text for a terminal: name a file, or use a pipe")
        with (
            _open_packed(sys.stdout.buffer) if packed else nullcontext(sys.stdout.buffer) as stream
        ):
            yield stream
        sys.stdout.buffer.flush()
        return
    target = Path(name)
    # The process id keeps two exports to one name apart.
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with ExitStack() as stack:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            file = stack.enter_context(os.fdopen(descriptor, "wb"))
            stack.callback(part.unlink, missing_ok=True)
            with _open_packed(file) if packed else nullcontext(file) as stream:
                yield stream
            file.flush()
            os.fsync(descriptor)
            part.replace(target)
            sync_folder(target.parent)
    except OSError as error:
        raise ArchiveError(f"cannot write {name}: {error.strerror or error}") from error


def _open_packed(file: BinaryIO) -> BinaryIO:
    packer = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=GZIP_LEVEL)
    return cast("BinaryIO", packer)


@contextmanager
def open_unpacked(name: str) -> Iterator[io.BufferedReader]:
    """Yield the content of a file (or of stdin, for `-`), whether it is gzip or plain.

    Reading raises `ArchiveError` where the compressed data are damaged or cut off.
    """
    with ExitStack() as stack:
        file = cast("io.BufferedReader", stack.enter_context(_open_file(name)))
        if not file.peek(2).startswith(b"\x1f\x8b"):
            yield file
            return
        try:
            yield cast("io.BufferedReader", stack.enter_context(gzip.GzipFile(fileobj=file)))
        except EOFError:
            raise ArchiveError("the file ends too early: fetch it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ArchiveError(f"the file cannot be unpacked ({error}): fetch it again") from error


def _open_file(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STDIO:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb", 1024 * 1024)
    except OSError as error:
        raise ArchiveError(f"cannot read {name}: {error.strerror or error}") from error


FORM = 2
"""Version of the lines above. A reader accepts this version only."""
MAX_LINE = 256 * 1024 * 1024
"""Bytes of one line. An execution has at most 8 MiB, which JSON's escapes may make longer."""
_PAGE = 500
_FACT = "import"
"""A fact of the store: the id of the archive that is being imported; `_DONE` follows it at the
end."""
_DONE = " done"
_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"aftercall"\s*:\s*"archive"')
_EVER = 2**40
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
    """The kind of store it came from."""


def is_archive(beginning: bytes) -> bool:
    """Return whether a file with this beginning claims to be an archive, of any version."""
    return _BEGINNING.match(beginning) is not None


async def refuse_half_imported(metadata: Metadata) -> None:
    """Refuse a store whose import did not come to its end.

    Whatever serves from a store, learns from it or copies it calls this first.

    Raises:
        HalfImportedError: an import was interrupted; the message names its archive.
    """
    if (mark := await metadata.get(_FACT)) is not None and not mark.endswith(_DONE):
        raise HalfImportedError(
            f"an import into this store did not come to its end (archive {mark}): run "
            "`aftercall import FILE` again with the same file, which goes on, or begin with an "
            "empty store: another data folder, or another database"
        )


# Writing


class ArchiveWriter:
    """Makes an archive of one `workspace` or of all, with memory for one page of records.

    The store is only read and may be in use; what comes meanwhile belongs to the next export.
    """

    def __init__(self, store: Store, *, workspace: str | None = None) -> None:
        self._store, self._workspace = store, workspace
        self._digest = hashlib.sha256()
        self.counts: dict[str, int] = {}
        """Lines so far, by kind."""
        self.header = Header(
            id=uuid4().hex, made_at=datetime.now(UTC), made_by=VERSION, store=store.name
        )

    async def write_lines(
        self, on_records: OnRecords = lambda _kind, _done: None
    ) -> AsyncIterator[bytes]:
        """Yield all lines, in order."""
        await refuse_half_imported(self._store.metadata)
        yield self._write_line(self.header.model_dump(mode="json"))
        async for kind, content in _read_contents(self._store, self._workspace):
            yield self._write_line({kind: content})
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if self.counts[kind] % _PAGE == 0:
                on_records(kind, self.counts[kind])
        end = {"aftercall": "end", "counts": self.counts, "checksum": self._digest.hexdigest()}
        yield self._write_line(end)

    def _write_line(self, value: Mapping[str, Any]) -> bytes:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        self._digest.update(text)
        return text


async def _read_contents(
    store: Store, only: str | None
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    base = await store.open_generation(0)
    cursors = await base.read_cursors()
    for workspace, head in (await store.events.read_heads()).items():
        if only not in (None, workspace):
            continue
        known: set[str] = set()
        learned, cursor = 0, cursors[workspace].position if workspace in cursors else 0
        async for event in all_events(store.events, workspace):
            if event.position > head.position:
                break
            new, schemas = event.schema_hash or "", dict[str, JsonObject]()
            if new and new not in known:
                schemas = await store.events.read_schemas(workspace, [new])
                known.add(new)
            yield "event", _as_json(replace(event, position=0, input_schema=schemas.get(new)))
            learned += event.position <= cursor
        for kind in get_args(StateKind):
            for row in await store.events.read_state(workspace, kind):
                yield "state", {"workspace": workspace, **_as_json(row)}
        if workspace in cursors:
            async for line in _read_base(base, workspace, learned):
                yield line


async def _read_base(
    base: Generation, workspace: str, learned: int
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async for row in all_rows(base, workspace, None, by="serial"):
        yield "row", {"workspace": workspace, **_as_json(row)}
    by: tuple[CounterDimension, ...] = ("hour", "tool", "what")
    for each in await base.sum_counters(workspace, ["*"], since=-_EVER, until=_EVER, by=by):
        yield "counter", {"workspace": workspace, **_as_json(each._asdict())}
    yield "base", {"workspace": workspace, "learned": learned}


def _as_json(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(encode_json(value)))


# Reading


class ArchiveReader:
    """The lines of an archive, each checked; `counts` has the lines so far by kind.

    Raises:
        ArchiveError: the file is no archive, or one that this version cannot read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._number = 0
        self.counts: dict[str, int] = {}
        line, value = self._read_line()
        if value.get("aftercall") != "archive":
            raise self._explain_fault("is not the header of an archive")
        if value.get("version") != FORM:
            raise ArchiveError(
                f"the archive is of version {value.get('version')}, and this Aftercall reads "
                f"version {FORM}: it is whole; use the Aftercall that made it "
                f"({value.get('made_by')})"
            )
        try:
            self.header = Header.model_validate(value)
        except ValidationError:
            raise self._explain_fault("is no complete header") from None
        self._digest.update(line)

    def read_lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the kind and the content of each line."""
        while True:
            line, value = self._read_line()
            if value.get("aftercall") == "end":
                break
            self._digest.update(line)
            if len(value) != 1 or not isinstance(content := next(iter(value.values())), dict):
                raise self._explain_fault("is no record")
            kind = next(iter(value))
            self.counts[kind] = self.counts.get(kind, 0) + 1
            yield kind, content
        if (value.get("counts"), value.get("checksum")) != (self.counts, self._digest.hexdigest()):
            raise self._explain_fault("does not agree with the lines before it")
        self._number += 1
        if self._stream.read(1):  # to the end, where what is compressed has its own checksum
            raise self._explain_fault("follows the end")

    def _read_line(self) -> tuple[bytes, dict[str, Any]]:
        self._number += 1
        line = self._stream.readline(MAX_LINE)
        if len(line) == MAX_LINE:
            raise ArchiveError("a line of the archive is too long: the file is damaged")
        if not line:
            raise self._explain_fault("is missing: the file ends too early")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise self._explain_fault("is not JSON") from None
        if not isinstance(value, dict):
            raise self._explain_fault("is not a JSON object")
        return line, value

    def _explain_fault(self, problem: str) -> ArchiveError:
        return ArchiveError(
            f"line {self._number} of the archive {problem}. The file is damaged or was changed: "
            "fetch it again, or export again"
        )


async def import_store(
    store: Store, reader: ArchiveReader, *, on_records: OnRecords = lambda _kind, _done: None
) -> dict[str, int]:
    """Put an archive into an empty store, or continue; return the lines by kind."""
    archive, mark = reader.header.id, await store.metadata.get(_FACT)
    if mark == archive + _DONE:
        raise AlreadyImportedError(f"archive {archive} is in the store")
    if mark != archive and await store.events.read_heads():
        raise ArchiveError(
            "the store is not empty: import into another data folder (--data-dir) or database"
        )
    await store.metadata.put(_FACT, archive)
    base = await store.open_generation(0)
    counters: dict[Counter, int] = {}
    alike = groupby(reader.read_lines(), key=lambda line: (line[0], str(line[1].get("workspace"))))
    for (kind, workspace), lines in alike:
        while page := list(islice(lines, _PAGE)):
            records = [_read_record(*line, reader.header.made_by) for line in page]
            match kind:
                case "event":
                    await store.events.append(workspace, records)
                case "state":
                    await store.events.append(workspace, [], records)
                case "row":
                    await base.commit(Commit(workspace, put=records))
                case "counter":
                    counters |= dict(records)
                case "base":
                    known = (await base.read_cursors()).get(workspace)
                    if known is None or not known.position:  # else an interrupted import did it
                        await base.commit(
                            Commit(workspace, counters=counters, moved=(0, records[0]))
                        )
                    counters = {}
            on_records(kind, reader.counts[kind])
    if await base.read_cursors():
        number = store.knowledge.generation + 1
        await store.open_generation(number)  # begins as a copy of the base
        await store.switch_generation(number, {})
    await store.metadata.put(_FACT, archive + _DONE)
    return reader.counts


def _read_record(kind: str, content: dict[str, Any], made_by: str) -> Any:
    """Return the content of a line: an event, a row, a counter with its count, or a number."""
    try:
        if kind == "event":
            return decode_json(Event, json.dumps(content).encode())
        del content["workspace"]
        if kind == "counter":
            tool = content["tool"]
            key = Counter(content["what"], content["hour"], ToolKey(*tool) if tool else None)
            return key, content["number"]
        if kind == "base":
            return content["learned"]
        return decode_json(StateRow if kind == "state" else Row, json.dumps(content).encode())
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveError(
            f"a record of the archive ({kind}) cannot be read: {error}. The archive was made by "
            f"Aftercall {made_by}, and this is {VERSION}: where its lines agree with their "
            "checksum, it is whole, and can be read by the version that made it"
        ) from None
