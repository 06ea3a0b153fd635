"""The files of an import: paths, folders, globs; plain, gzip, zip, UTF-16.

PATH... ─ expand ─> files ─ open ─> streams with their names ─> `service.imports`
"""

import codecs
import glob
import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from service.archive import STDIO, ArchiveError, open_unpacked

MAX_RECODED = 512 * 1024 * 1024
"""Bytes of a file in UTF-16, which is held in memory as a whole."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP = b"PK\x03\x04"
_FIRST_BYTES = 4
_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or standard input."""

    name: str
    is_named: bool = True
    """Whether a person named this very file, and not a folder or a pattern."""


def expand_paths(paths: Sequence[str]) -> list[Source]:
    """Return the files that paths mean, each once: files, folders with all below them, globs.

    Raises:
        ArchiveError: a path means no file.
    """
    found: dict[str, Source] = {}
    for path in paths:
        if path == STDIO:
            found.setdefault(path, Source(path))
            continue
        place = Path(path).expanduser()
        if place.is_dir():
            matches = list(place.rglob("*"))
        elif place.exists() or not glob.has_magic(path):
            found.setdefault(str(place), Source(str(place)))
            continue
        else:
            names = glob.glob(str(place), recursive=True)  # noqa: PTH207  # also of a root
            matches = list(map(Path, names))
        files = sorted(each for each in matches if each.is_file())
        if not files:
            raise ArchiveError(f"{path} means no file")
        is_named = len(paths) == len(files) == 1
        for each in files:
            source = Source(str(each), is_named=is_named)
            found.setdefault(source.name, source)
    return list(found.values())


@contextmanager
def open_source(source: Source) -> Iterator[Iterator[tuple[str, io.BufferedReader]]]:
    """Open the contents of a file, each with its name: one, or the members of a zip."""
    with ExitStack() as stack:
        stream = stack.enter_context(open_unpacked(source.name))
        first = stream.peek(_FIRST_BYTES)[:_FIRST_BYTES]
        if first != _ZIP or source.name == STDIO:
            yield iter([(source.name, _recode_stream(stream, source.name))])
            return
        try:
            archive = stack.enter_context(zipfile.ZipFile(source.name))
            yield _open_members(archive, source.name)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise ArchiveError(f"{source.name} cannot be unpacked ({error})") from error


def _open_members(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, io.BufferedReader]]:
    for member in archive.infolist():
        if member.is_dir():
            continue
        with archive.open(member) as opened:
            raw = cast("io.RawIOBase", opened)
            stream = io.BufferedReader(raw, _BUFFER_BYTES)
            place = f"{name}!{member.filename}"
            yield place, _recode_stream(stream, place)


def _recode_stream(stream: "io.BufferedReader[Any]", name: str) -> "io.BufferedReader[Any]":
    """Return a stream as UTF-8, if its byte order mark shows UTF-16."""
    if not stream.peek(2).startswith(_UTF_16):
        return stream
    data = stream.read(MAX_RECODED + 1)
    if len(data) > MAX_RECODED:
        raise ArchiveError(f"{name} is UTF-16 of more than {MAX_RECODED:,} bytes: make it UTF-8")
    text = data.decode("utf-16", "replace")
    recoded = io.BytesIO(text.encode("utf-8", "replace"))
    return io.BufferedReader(cast("io.RawIOBase", recoded))
