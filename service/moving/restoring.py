"""Putting an archive into an empty store, checked on the way in and again at the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from mongo.archive import ArchiveKind
from mongo.protocol import LogStore
from mongo.upkeep import ArchiveRow
from service.moving.checksum import Tally
from service.moving.exporting import OnRecords, archived
from service.moving.lines import ArchiveError
from service.moving.reading import ArchiveReader
from service.moving.unfinished import Mark, read_mark, write_mark


@dataclass(frozen=True, slots=True)
class Compared:
    """What the archive holds and what the store holds, by kind."""

    archive: dict[str, Tally]
    store: dict[str, Tally]

    @property
    def differing(self) -> list[str]:
        """Kinds in which they differ."""
        return [kind for kind, tally in self.archive.items() if self.store[kind] != tally]


class AlreadyImportedError(ArchiveError):
    """This very archive was imported into the store before, whole and checked."""


async def begin(store: LogStore, archive_id: str) -> Mark:
    """Mark a store as the target of an archive, unless it is already.

    Raises:
        ArchiveError: it holds something else.
        StoreError: it cannot be read or written.
    """
    mark = await read_mark(store)
    if mark is not None and mark.archive == archive_id:
        if mark.is_done:
            raise AlreadyImportedError("this archive was imported into this store already")
        return mark
    if mark is not None and not mark.is_done:
        raise ArchiveError(
            f"another archive ({mark.archive}) was imported into this store and did not come to "
            "its end: go on with that file, or begin with an empty store"
        )
    workspaces = await store.workspaces()
    if workspaces:
        raise ArchiveError(
            f"the store holds something already ({_some(workspaces)}); an archive goes into an "
            "empty one: choose another data folder (--data-dir) or database "
            "(AFTERCALL_MONGO_DATABASE)"
        )
    mark = Mark(archive=archive_id)
    await write_mark(store, mark)
    return mark


def _some(workspaces: list[str]) -> str:
    named = ", ".join(workspaces[:3])
    return f"workspaces {named}{', ...' if len(workspaces) > 3 else ''}"


async def restore(
    store: LogStore,
    reader: ArchiveReader,
    *,
    on_records: OnRecords = lambda _kind, _done: None,
    on_compare: OnRecords = lambda _kind, _done: None,
) -> Compared:
    """Put every record of an archive into a store, or go on where it was left, and compare.

    Only when both agree the store says that the import is done. Vectors are no part of it: the
    documents are queued, and whoever learns makes them.

    Args:
        store: empty, or the same archive's half-done target.
        reader: the archive, from its beginning.
        on_records: told of the progress.
        on_compare: told of the progress of reading the store again.

    Raises:
        ArchiveError: the store holds something else, or a line is wrong; what was put there until
            then stays, marked as half.
        StoreError: the store cannot take it.
    """
    mark = await begin(store, reader.header.id)
    facts: set[str] = set()
    done: dict[str, int] = {}
    for batch in reader.batches():
        if batch.kind == "facts":
            facts.update(str(row.fields["name"]) for row in batch.rows)
        if batch.kind not in mark.kinds:
            await _put(store, batch.rows)
            done[batch.kind] = done.get(batch.kind, 0) + len(batch.rows)
            on_records(batch.kind, done[batch.kind])
            if batch.is_last:
                mark = mark.model_copy(update={"kinds": (*mark.kinds, batch.kind)})
                await write_mark(store, mark)
    compared = Compared(reader.tallies, await _tallied(store, reader.kinds, facts, on_compare))
    if not compared.differing:
        await write_mark(store, mark.model_copy(update={"is_done": True}))
    return compared


async def _put(store: LogStore, rows: list[ArchiveRow]) -> None:
    if not rows:
        return
    new = await store.restore(rows)
    if rows[0].kind == "facts" and new < len(rows):
        # A service that once started on the empty store has left facts of its own: these win.
        for row in rows:
            await store.put_fact(str(row.fields["name"]), str(row.fields["value"]))


async def _tallied(
    store: LogStore, kinds: Sequence[ArchiveKind], facts: set[str], on_compare: OnRecords
) -> dict[str, Tally]:
    """What the store holds now of these kinds; of its facts those that the archive has."""
    tallies = {kind.name: Tally() for kind in kinds}
    for kind in kinds:
        async for rows in archived(store, kind):
            for row in rows:
                if kind.name != "facts" or row.fields["name"] in facts:
                    tallies[kind.name].add(row.fields)
            on_compare(kind.name, tallies[kind.name].count)
    return tallies
