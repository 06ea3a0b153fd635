"""The lines of an archive: a header, the records kind by kind, each kind closed, the end.

    {"aftercall":"archive","version":1,"id":...,"layout":...,"made_at":...,...}
    {"aftercall":"kind","kind":"executions"}
    {"content_hash":...,"data":...,...}                     one line per record
    {"aftercall":"end of kind","kind":"executions","count":...,"checksum":...}
    ...                                                     all kinds, in the order of KINDS
    {"aftercall":"end of archive","counts":{...},"checksum":...}

No record has a field `aftercall`, so what a line is can be seen from itself.
"""

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftercall.errors import AftercallError
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from mongo.archive import KINDS, ArchiveKind, FieldType
from service.moving.checksum import Tally, checksum_of_all

VERSION = 1
"""Of the form above. A reader takes this one and no other."""

MAX_LINE = 256 * 1024 * 1024
"""Bytes of one line. An execution has at most 8 MiB, which JSON's escapes may make six times as
long; what was learned of one tool is smaller."""

_MARK = "aftercall"


class ArchiveError(AftercallError):
    """The archive cannot be written or read, or the store cannot take it; names the cure."""


class DamagedFileError(ArchiveError):
    """The compressed data are damaged or cut off; raised while reading."""


class BadLineError(ArchiveError):
    """A line of the archive is not what it must be."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(
            f"line {number} of the archive {problem}. The file is damaged or was changed: fetch "
            "it again, or export again"
        )
        self.number = number


LATER_KINDS = frozenset({"answers"})
"""Kinds that archives of the layout before lack; such an archive has none of them."""


def layout(kinds: Sequence[ArchiveKind] = KINDS) -> str:
    """Which kinds and fields records have, in 12 hexadecimal digits."""
    told: JsonValue = [[kind.name, list(kind.key), dict(kind.fields)] for kind in kinds]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:12]


def kinds_of(told: str) -> tuple[ArchiveKind, ...] | None:
    """The kinds that an archive of a layout has, in order; None of one that is not known.

    A former layout is known by what it has in common with this one: should a kind that both have
    change its fields, it is not known any more.
    """
    former = tuple(kind for kind in KINDS if kind.name not in LATER_KINDS)
    return next((kinds for kinds in (KINDS, former) if layout(kinds) == told), None)


class Header(BaseModel):
    """The first line: what follows, where it comes from, and when it was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    aftercall: Literal["archive"] = "archive"
    version: int = VERSION
    id: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random: by it a half-done import knows its own archive again."""
    layout: str = Field(default_factory=layout)
    made_at: datetime
    made_by: str
    """Version of Aftercall."""
    store: str
    """What kind of store it was (`LogStore.name`)."""
    generation: int
    embedder: str | None = None
    """The model by which the store's vectors were made, as far as the store says so."""


def encode_header(header: Header) -> bytes:
    """The first line, without its end."""
    told: JsonObject = header.model_dump(mode="json")
    # The mark first, so that a person (and `file`) sees at once what it is.
    return json.dumps({_MARK: told.pop(_MARK), **told}, separators=(",", ":")).encode()


_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"aftercall"\s*:\s*"archive"')


def is_archive(beginning: bytes) -> bool:
    """Whether a file that begins so means to be an archive, of whatever version."""
    return _BEGINNING.match(beginning) is not None


def decode_header(line: bytes) -> Header:
    """The header.

    Raises:
        ArchiveError: it is none, or of a version that this one cannot read.
    """
    value = decode(1, line)
    if value.get(_MARK) != "archive":
        raise BadLineError(1, "is not the header of an archive")
    version = value.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ArchiveError(
            f"the archive is of version {version}, and this Aftercall reads version {VERSION}: "
            f"upgrade to the one that made it ({value.get('made_by')}) or a later one"
        )
    try:
        header = Header.model_validate(value)
    except ValidationError as error:
        places = ", ".join(
            sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]})
        )
        raise BadLineError(1, f"is no complete header ({places})") from None
    if header.version != VERSION or kinds_of(header.layout) is None:
        raise ArchiveError(
            f"the archive holds records of layout {header.layout}, and this Aftercall takes "
            f"{layout()}: import it with the version that made it ({header.made_by}), upgrade that "
            "store, and export again if need be"
        )
    return header


def encode_kind(kind: str) -> bytes:
    """The line that opens a kind."""
    return _control("kind", kind=kind)


def encode_end_of_kind(kind: str, tally: Tally) -> bytes:
    """The line that closes a kind."""
    return _control("end of kind", kind=kind, count=tally.count, checksum=tally.checksum)


def encode_end(tallies: Mapping[str, Tally]) -> bytes:
    """The last line."""
    counts: JsonObject = {kind: tally.count for kind, tally in tallies.items()}
    return _control("end of archive", counts=counts, checksum=checksum_of_all(tallies))


def _control(mark: str, **fields: JsonValue) -> bytes:
    return json.dumps({_MARK: mark, **fields}, separators=(",", ":")).encode()


def decode(number: int, line: bytes) -> JsonObject:
    """The JSON object of a line.

    Raises:
        BadLineError: it is none.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "no valid text"
        raise BadLineError(number, f"is not JSON ({problem})") from None
    if not isinstance(value, dict):
        raise BadLineError(number, "is not a JSON object")
    return value


def is_control(value: JsonObject, mark: str) -> bool:
    """Whether a line is one that opens or closes something."""
    return value.get(_MARK) == mark


def check_record(kind: ArchiveKind, fields: JsonObject) -> str | None:
    """What keeps a line from being a record of a kind; None when nothing does."""
    if fields.keys() != kind.fields.keys():
        missing = sorted(kind.fields.keys() - fields.keys())
        return f"lacks {', '.join(missing)}" if missing else "has fields that it must not have"
    for name, type_ in kind.fields.items():
        value = fields[name]
        if value is None:
            if name in kind.key:
                return f"has no value in {name}"
        elif not _fits(type_, value):
            return f"has no {type_} in {name}"
    return None


def _fits(type_: FieldType, value: JsonValue) -> bool:
    match type_:
        case "text":
            return isinstance(value, str)
        case "flag":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "real":
            return isinstance(value, float) and math.isfinite(value)
        case "bytes":
            return isinstance(value, str) and _is_base64(value)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
