"""The file around an archive: compressed, private, and there only when it is whole."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from aftercall.errors import AftercallError
from aftercall.files import sync_folder

STDIO = "-"


class ArchiveError(AftercallError):
    """The archive cannot be written or read, or the store cannot take it; names the cure."""


_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GZIP_LEVEL = 4
"""A third faster than level 6 for 8 % more bytes, on 20,000 executions of `bench/history.py`."""
_ZSTD_LEVEL = 3
_BUFFER = 1024 * 1024


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415  # optional
        else:
            from backports import zstd  # noqa: PLC0415  # optional
    except ImportError:
        raise ArchiveError(
            "this Python has no zstd: name the file .gz, or install it with "
            "pip install 'aftercall-service[servers]'"
        ) from None
    return zstd


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """A stream; its content becomes the file `name` when the block ends well, and else nothing.

    Compressed by zstd where the name ends in `.zst`, else by gzip; `-` is stdout. The file is
    private (0600) and takes its name in one step, over one that has the name already.
    """
    if name == STDIO:
        if sys.stdout.isatty():
            raise ArchiveError("an archive is no text for a terminal: name a file, or use a pipe")
        with _packed(sys.stdout.buffer, zstd=False) as stream:
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
            with _packed(file, zstd=target.suffix == ".zst") as stream:
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


@contextmanager
def _packed(file: BinaryIO, *, zstd: bool) -> Iterator[BinaryIO]:
    packer: Any
    if zstd:
        packer = _zstd().ZstdFile(file, "wb", level=_ZSTD_LEVEL)
    else:
        packer = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_GZIP_LEVEL)
    with packer:
        yield cast("BinaryIO", packer)


@contextmanager
def unpacked(name: str) -> Iterator[io.BufferedReader]:
    """The content of a file (or of stdin, for `-`), whether it is gzip, zstd or plain.

    Reading raises `ArchiveError` where the compressed data are damaged or cut off.
    """
    with ExitStack() as stack:
        file = cast("io.BufferedReader", stack.enter_context(_opened(name)))
        begin = file.peek(4)[:4]
        raw: Any = file
        if begin.startswith(_GZIP):
            raw = stack.enter_context(gzip.GzipFile(fileobj=file))
        elif begin.startswith(_ZSTD):
            raw = stack.enter_context(_zstd().ZstdFile(file))
        yield file if raw is file else io.BufferedReader(ReadBy(partial(_read, raw)), _BUFFER)


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STDIO:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb", _BUFFER)
    except OSError as error:
        raise ArchiveError(f"cannot read {name}: {error.strerror or error}") from error


def _read(source: io.BufferedIOBase, most: int) -> bytes:
    try:
        # What comes before the damage is given first: so the right line is named.
        return source.read1(most)
    except EOFError:
        raise ArchiveError("the file ends too early: fetch it again") from None
    except Exception as error:
        # zstd's own error is known only where zstd is.
        if not isinstance(error, OSError | zlib.error | ValueError) and (
            type(error).__name__ != "ZstdError"
        ):
            raise
        raise ArchiveError(f"the file cannot be unpacked ({error}): fetch it again") from error


class ReadBy(io.RawIOBase):
    """A stream of what a function gives, which is asked for at most so many bytes at a time."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read_some = read

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; how many bytes of it."""
        data = self._read_some(len(buffer))
        buffer[: len(data)] = data
        return len(data)
