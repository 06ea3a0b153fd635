"""Reading an archive line by line, believing nothing that its counts and checksums do not bear."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

from aftercall.json_values import JsonObject
from mongo.archive import ArchiveKind
from mongo.upkeep import ArchiveRow
from service.moving import lines
from service.moving.checksum import Tally, checksum_of_all
from service.moving.lines import BadLineError, DamagedFileError, Header

BATCH_ROWS = 500
BATCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind; the last of a kind comes when the kind's checksum has agreed."""

    kind: str
    rows: list[ArchiveRow]
    is_last: bool


@dataclass(slots=True)
class ArchiveReader:
    """Reads one archive, once. The header is read when it is made.

    Raises:
        ArchiveError: it is no archive that this version takes.
    """

    stream: io.BufferedReader
    header: Header = field(init=False)
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Counts and checksums of the kinds that were read; after the last batch of all `kinds`."""
    _number: int = 0

    def __post_init__(self) -> None:
        self.header = lines.decode_header(self._line())

    @property
    def kinds(self) -> tuple[ArchiveKind, ...]:
        """The kinds that the archive has, in order; fewer where it is of the layout before."""
        return lines.kinds_of(self.header.layout) or ()

    def batches(self) -> Iterator[Batch]:
        """All records, at most `BATCH_ROWS` and some `BATCH_BYTES` at a time.

        Raises:
            BadLineError: a line is wrong, or missing; names it.
        """
        for kind in self.kinds:
            yield from self._kind(kind)
        end = self._object()
        if not lines.is_control(end, "end of archive"):
            raise BadLineError(self._number, "is not the end of the archive, which is due here")
        counts = {kind: tally.count for kind, tally in self.tallies.items()}
        if end.get("counts") != counts or end.get("checksum") != checksum_of_all(self.tallies):
            raise BadLineError(
                self._number, "tells other counts or another checksum than what came"
            )
        self._number += 1
        if self._read(1):
            raise BadLineError(self._number, "follows the end of the archive")

    def _kind(self, kind: ArchiveKind) -> Iterator[Batch]:
        opening = self._object()
        if not lines.is_control(opening, "kind") or opening.get("kind") != kind.name:
            raise BadLineError(self._number, f"does not open the {kind.name}, which are due here")
        tally = self.tallies[kind.name] = Tally()
        rows: list[ArchiveRow] = []
        size = 0
        while not lines.is_control(fields := self._object(), "end of kind"):
            problem = lines.check_record(kind, fields)
            if problem is not None:
                raise BadLineError(self._number, f"is no record of {kind.name}: it {problem}")
            if len(rows) == BATCH_ROWS or size > BATCH_BYTES:
                yield Batch(kind.name, rows, is_last=False)
                rows, size = [], 0
            size += len(tally.add(fields))
            rows.append(ArchiveRow(kind.name, fields))
        if (fields.get("kind"), fields.get("count"), fields.get("checksum")) != (
            kind.name, tally.count, tally.checksum,
        ):  # fmt: skip
            raise BadLineError(
                self._number, f"tells another count or checksum of the {kind.name} than what came"
            )
        yield Batch(kind.name, rows, is_last=True)

    def _object(self) -> JsonObject:
        line = self._line()
        return lines.decode(self._number, line)

    def _line(self) -> bytes:
        self._number += 1
        line = self._read(lines.MAX_LINE + 1)
        if not line.endswith(b"\n"):
            problem = "is longer than any record" if len(line) > lines.MAX_LINE else "is cut off"
            raise BadLineError(self._number, problem if line else "is missing: the file is cut off")
        return line

    def _read(self, limit: int) -> bytes:
        try:
            return self.stream.readline(limit)
        except DamagedFileError as error:
            raise BadLineError(self._number, f"cannot be read: {error}") from error
        except OSError as error:
            raise BadLineError(
                self._number, f"cannot be read: {error.strerror or error}"
            ) from error
