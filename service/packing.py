"""The file around an archive: compressed, private, and there only when it is whole."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, cast

from aftercall.errors import AftercallError
from aftercall.files import sync_folder

STDIO = "-"


class ArchiveError(AftercallError):
    """The archive cannot be written or read, or the store cannot take it; names the cure."""


_GZIP = b"\x1f\x8b"
_GZIP_LEVEL = 4
"""A third faster than level 6 for 8 % more bytes, on 20,000 executions of `bench/history.py`."""
_BUFFER = 1024 * 1024


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """A stream; its content becomes the file `name` when the block ends well, and else nothing.

    Compressed by gzip; `-` is stdout. The file is
    private (0600) and takes its name in one step, over one that has the name already.
    """
    if name == STDIO:
        if sys.stdout.isatty():
            raise ArchiveError("an archive is no text for a terminal: name a file, or use a pipe")
        with _packed(sys.stdout.buffer) as stream:
            yield stream
        sys.stdout.buffer.flush()
        return
    target = Path(name)
    # Of this process: two exports to one name do not write into each other's file.
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with ExitStack() as stack:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            file = stack.enter_context(os.fdopen(descriptor, "wb"))
            stack.callback(_forget, part)
            with _packed(file) as stream:
                yield stream
            file.flush()
            os.fsync(descriptor)
            part.replace(target)
            sync_folder(target.parent)
    except OSError as error:
        raise ArchiveError(f"cannot write {name}: {error.strerror or error}") from error


def _forget(part: Path) -> None:
    with suppress(OSError):
        part.unlink(missing_ok=True)


def _packed(file: BinaryIO) -> BinaryIO:
    packer = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_GZIP_LEVEL)
    return cast("BinaryIO", packer)


@contextmanager
def unpacked(name: str) -> Iterator[io.BufferedReader]:
    """The content of a file (or of stdin, for `-`), whether it is gzip or plain.

    Reading raises `ArchiveError` where the compressed data are damaged or cut off.
    """
    with ExitStack() as stack:
        file = cast("io.BufferedReader", stack.enter_context(_opened(name)))
        if not file.peek(2).startswith(_GZIP):
            yield file
            return
        try:
            yield cast("io.BufferedReader", stack.enter_context(gzip.GzipFile(fileobj=file)))
        except EOFError:
            raise ArchiveError("the file ends too early: fetch it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ArchiveError(f"the file cannot be unpacked ({error}): fetch it again") from error


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STDIO:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb", _BUFFER)
    except OSError as error:
        raise ArchiveError(f"cannot read {name}: {error.strerror or error}") from error
