"""Bodies in gzip, unpacked piece by piece and never beyond a bound.

A megabyte of zeros is a kilobyte in gzip, so the bound on what arrives says nothing about what
comes out. Unpacking stops at the first byte too many; no more than the bound is ever in memory.
"""

import zlib

from starlette.requests import ClientDisconnect, Request

from service.http.problems import ProblemError, TooLargeError

_GZIP_WINDOW = 31  # zlib's way to say: gzip, largest window
_PIECE = 64 * 1024
_MAX_MEMBERS = 64
"""Members of one gzip body. Senders write one; each further one costs a start, however small."""


async def read_packed_body(request: Request) -> tuple[bytes, bool]:
    """The body as it came, and whether it is in gzip. `BodyLimits` has bounded what came.

    Raises:
        ProblemError: 415 for another encoding; 400 when the client went away.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", ""}:
        raise ProblemError(
            415,
            "unsupported_media_type",
            "send the body with Content-Encoding: gzip, or without one",
        )
    try:
        return await request.body(), encoding == "gzip"
    except ClientDisconnect:
        # Nobody reads this answer; the log line shows it.
        raise ProblemError(
            400, "disconnected", "the client went away before its body arrived"
        ) from None


def gunzip(packed: bytes, most: int) -> bytes:
    """What is packed, at most `most` bytes of it.

    Raises:
        TooLargeError: there is more.
        ProblemError: 400 for what is no gzip, or ends within it.
    """
    unpacked = bytearray()
    view = memoryview(packed)
    at = members = 0
    while at < len(packed):
        members += 1
        if members > _MAX_MEMBERS:
            raise _broken(f"holds more than {_MAX_MEMBERS} members; pack it as one")
        at = _member(view, at, unpacked, most)
    if not members:
        raise _broken("is empty")
    return bytes(unpacked)


def _member(view: memoryview, at: int, unpacked: bytearray, most: int) -> int:
    """Append what the gzip member at `at` holds; where it ends."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    waiting = b""
    while not unpacker.eof:
        if not waiting:
            if at >= len(view):
                raise _broken("ends too early; send it whole")
            waiting = bytes(view[at : at + _PIECE])
            at += len(waiting)
        try:
            # One byte more than may be, so that exactly as much as may be is still taken.
            unpacked += unpacker.decompress(waiting, most + 1 - len(unpacked))
        except zlib.error:
            raise _broken("is none, or damaged") from None
        if len(unpacked) > most:
            raise TooLargeError(
                f"the body is larger than {most:,} bytes when unpacked; nothing was stored, "
                "send it in several requests"
            )
        waiting = unpacker.unconsumed_tail
    return at - len(unpacker.unused_data)


def _broken(problem: str) -> ProblemError:
    return ProblemError(400, "malformed_gzip", f"the gzip body {problem}; nothing was stored")
