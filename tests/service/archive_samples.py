"""Records of every kind, and archives made of them, for the tests of moving."""

import gzip
import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from mongo.archive import ArchiveKind
from mongo.upkeep import ArchiveRow

from aftercall.json_values import JsonObject, JsonValue
from retrieval.health.record import Tally
from service.archive import ArchiveReader, Header
from service.dashboard.html import lines
from service.packing import unpacked
from workbench.world import KINDS

HEADER = Header(
    id="0123456789abcdef" * 2,
    made_at=datetime(2026, 2, 20, 14, 30, tzinfo=UTC),
    made_by="0.1.0",
    store="sqlite",
    generation=1,
    embedder="hashing@1",
)


def sample(kind: ArchiveKind, number: int) -> JsonObject:
    """A record of a kind that no store would refuse to read."""
    values: dict[str, JsonValue] = {
        "text": f"téxt {number:03}",
        "integer": number,
        "real": number / 8,
        "bytes": "AP8=",
        "flag": number % 2 == 0,
    }
    return {name: values[type_] for name, type_ in kind.fields.items()}


def samples(count: int = 3) -> dict[str, list[JsonObject]]:
    """Some records of every kind."""
    return {kind.name: [sample(kind, number) for number in range(count)] for kind in KINDS}


def archive_lines(records: dict[str, list[JsonObject]], header: Header = HEADER) -> list[bytes]:
    """The lines of an archive, without their ends."""
    told = [lines.encode_header(header)]
    tallies: dict[str, Tally] = {}
    for kind, rows in records.items():
        tally = tallies[kind] = Tally()
        told.append(lines.encode_kind(kind))
        told += [tally.add(row) for row in rows]
        told.append(lines.encode_end_of_kind(kind, tally))
    return [*told, lines.encode_end(tallies)]


def write_lines(path: Path, told: Iterable[bytes]) -> Path:
    """A packed file of lines."""
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in told)))
    return path


def read(told: Iterable[bytes]) -> list[ArchiveRow]:
    """All records of an archive given by its lines."""
    stream = io.BytesIO(b"".join(line + b"\n" for line in told))
    reader = ArchiveReader(io.BufferedReader(stream))  # type: ignore[arg-type]
    return [row for batch in reader.batches() for row in batch.rows]


def read_file(path: Path) -> ArchiveReader:
    """A reader that has read a whole file and believes it."""
    with unpacked(str(path)) as stream:
        reader = ArchiveReader(stream)
        for _ in reader.batches():
            pass
        return reader


def changed(line: bytes, **fields: JsonValue) -> bytes:
    """A line in which some fields are others."""
    return json.dumps(json.loads(line) | fields).encode()
