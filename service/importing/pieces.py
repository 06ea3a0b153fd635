"""A stream in pieces: its lines, or all of it as one document. Bounded either way."""

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from ingest.formats.detecting import LOOK_BYTES
from service.bodies import TooDeep, parse_json
from service.errors import ProblemError

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one JSON value, be it a line or a document. It is held in memory as a whole."""

_BUFFER = 1024 * 1024
_ANY_NUMBER = 2**63
BOM = b"\xef\xbb\xbf"


class Piece(NamedTuple):
    """A line or a document; `raw` is None where it is longer than its bound."""

    where: str
    raw: bytes | None


class BadPieceError(ValueError):
    """A piece that is no JSON; the message says what is wrong."""


def begun(
    stream: io.BufferedReader, enough: Callable[[bytes], bool]
) -> tuple[bytes, io.BufferedReader]:
    """How a stream begins, and a stream of all of it, the beginning included.

    No more is waited for than it takes to be `enough`, as somebody may be writing at the other end
    of a pipe.
    """
    head, looked_at = b"", 0
    while len(head) < LOOK_BYTES:
        more = stream.read1(LOOK_BYTES - len(head))
        if not more:
            break
        head += more
        # At twice the length at the earliest: the work stays in proportion.
        if len(head) >= 2 * looked_at:
            looked_at = len(head)
            if enough(head):
                break
    return head, io.BufferedReader(_Rewound(head, stream), _BUFFER)


def lines(stream: BinaryIO, longest: int) -> Iterator[Piece]:
    """The lines of a stream that are not blank; None for one of more than `longest` bytes."""
    number = 0
    while raw := stream.readline(longest + 1):
        number += 1
        where = f"line {number}"
        if len(raw) <= longest:
            if raw.strip():
                yield Piece(where, raw)
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(_BUFFER)
        yield Piece(where, None)


def document(stream: BinaryIO) -> Piece:
    """All of a stream; None where it is longer than `MAX_DOCUMENT`."""
    raw = stream.read(MAX_DOCUMENT + 1)
    return Piece("the document", raw if len(raw) <= MAX_DOCUMENT else None)


def value_of(raw: bytes) -> object:
    """The JSON value of a piece.

    Raises:
        BadPieceError: what is wrong with it.
    """
    try:
        value = parse_json(raw.removeprefix(BOM), max_elements=_ANY_NUMBER)
    except ProblemError as error:
        raise BadPieceError(error.message) from None
    if isinstance(value, TooDeep):
        raise BadPieceError(value.message)
    return value


class _Rewound(io.RawIOBase):
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, rest: io.BufferedReader) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; how many bytes of it."""
        data: bytes | memoryview
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            data = self._rest.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)
