"""Writing all that a store holds into an archive, while it may be in use."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO
from uuid import uuid4

from mongo.archive import KINDS, LOCAL_FACTS, ArchiveKind
from mongo.protocol import LogStore
from mongo.upkeep import ArchiveRow
from service.moving import lines
from service.moving.checksum import Tally
from service.moving.lines import ArchiveError, Header
from service.moving.reading import BATCH_ROWS
from service.moving.unfinished import refuse_half_imported
from service.version import VERSION

_SMALL = 64 * 1024
_CHASING = 50
"""A page that is neither full nor large is the last one, or the end grows as fast as it is read.
After so many in a row it does: what is still to come belongs to the next export."""

OnRecords = Callable[[str, int], None]
"""Told, after each batch, the kind and how many of its records were done."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    header: Header
    tallies: dict[str, Tally]
    is_still: bool
    """Whether the store stood still: nothing came, and nothing was learned from."""


async def export_store(
    store: LogStore,
    stream: BinaryIO,
    *,
    embedder: str | None = None,
    on_records: OnRecords = lambda _kind, _done: None,
) -> Exported:
    """Write an archive, kind by kind, with memory for one batch of records.

    Args:
        store: read only.
        stream: where to.
        embedder: the model of the store's vectors, for the header.
        on_records: told of the progress.

    Raises:
        ArchiveError: a rebuild has switched what was learned meanwhile.
        StoreError: the store cannot be read, or holds half an import.
        OSError: the stream cannot be written.
    """
    await refuse_half_imported(store)
    header = Header(
        id=uuid4().hex,
        made_at=datetime.now(UTC),
        made_by=VERSION,
        store=store.name,
        generation=await store.generation(),
        embedder=embedder,
    )
    before = await store.counts()
    tallies: dict[str, Tally] = {}
    _put(stream, [lines.encode_header(header)])
    for kind in KINDS:
        tally = tallies[kind.name] = Tally()
        _put(stream, [lines.encode_kind(kind.name)])
        chasing = 0
        async for rows in archived(store, kind):
            encoded = [tally.add(row.fields) for row in rows]
            _put(stream, encoded)
            on_records(kind.name, tally.count)
            is_short = len(rows) < BATCH_ROWS and sum(map(len, encoded)) < _SMALL
            chasing = chasing + 1 if is_short else 0
            if chasing == _CHASING:
                break
        _put(stream, [lines.encode_end_of_kind(kind.name, tally)])
    if await store.generation() != header.generation:
        raise ArchiveError(
            "a rebuild has switched what is known while it was written, so that one half would be "
            "of before and one of after; nothing was kept. Export again"
        )
    _put(stream, [lines.encode_end(tallies)])
    after = await store.counts()
    return Exported(header, tallies, is_still=before == after)


async def archived(store: LogStore, kind: ArchiveKind) -> AsyncIterator[list[ArchiveRow]]:
    """All records of a kind, a batch at a time, without facts that hold for one store alone."""
    after = None
    while rows := await store.scan_archive(kind.name, after, BATCH_ROWS):
        after = rows[-1].fields
        if kind.name == "facts":
            rows = [row for row in rows if row.fields["name"] not in LOCAL_FACTS]
        yield rows


def _put(stream: BinaryIO, encoded: list[bytes]) -> None:
    if encoded:
        stream.write(b"\n".join((*encoded, b"")))
