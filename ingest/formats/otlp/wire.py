"""Protobuf's wire format, read in place.

Not by protobuf's own parser: that builds every message of a request at once, and a span of two
bytes takes it some 180. 8 MiB of empty spans, a lawful body, would be 700 MiB of memory; here they
are never more than one at a time. The format: protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Iterator
from typing import Final

from ingest.formats.otlp.span import OtlpError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
_FIXED32: Final = 5

_DOUBLE = struct.Struct("<d")
_MAX_VARINT_BYTES = 10

Field = tuple[int, int, int, int]
"""Number, wire type, and: from where to where in the body; of a varint the value and 0."""


class WireError(OtlpError):
    """The bytes are no message, or end within one."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the body is no ExportTraceServiceRequest in protobuf: {problem}; "
            "nothing was stored, send it whole"
        )


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """The fields of the message that lies in `data[start:end]`.

    Raises:
        WireError: when there is no message.
    """
    at = start
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = _varint(data, at - 1)
            wire_type = tag & 7
            if wire_type == BYTES:
                length = data[at]
                at += 1
                if length > 0x7F:
                    length, at = _varint(data, at - 1)
                stop = at + length
            elif wire_type == VARINT:
                value, at = _varint(data, at)
                if at > end or not tag >> 3:
                    raise WireError(f"it ends within the field at byte {at}")
                yield tag >> 3, VARINT, value, 0
                continue
            elif wire_type == FIXED64:
                stop = at + 8
            elif wire_type == _FIXED32:
                stop = at + 4
            else:
                raise WireError(f"there is no field of wire type {wire_type} at byte {at - 1}")
            if stop > end:
                raise WireError(f"it ends within the field at byte {at}")
            if not tag >> 3:
                raise WireError(f"there is a field without a number at byte {at}")
            yield tag >> 3, wire_type, at, stop
            at = stop
    except IndexError:
        raise WireError("it ends too early") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(_MAX_VARINT_BYTES):
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + count + 1
    raise WireError(f"there is an endless number at byte {at}")


def fixed64(data: bytes, at: int) -> int:
    """An unsigned number."""
    return int.from_bytes(data[at : at + 8], "little")


def double(data: bytes, at: int) -> float:
    """A floating-point number; NaN and the infinities, too."""
    number: float = _DOUBLE.unpack_from(data, at)[0]
    return number


def signed(value: int) -> int:
    """The `int64` of a varint."""
    return value - (1 << 64) if value >> 63 else value


def text(data: bytes, start: int, end: int) -> str:
    """A string; what is not UTF-8 in it becomes U+FFFD, so that one byte loses no span."""
    return data[start:end].decode("utf-8", "replace")
