"""From pieces of a file to executions: a reader per format.

Executions come line by line, in our own form. Spans and transcripts come as JSON values, a line or
a document each. A log of MCP is one story: its lines, or elements, belong together.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pydantic import ValidationError

from aftercall.models import Execution
from ingest.formats.detecting import Format, Shape, look_at
from ingest.formats.mcp_messages import McpLog
from ingest.formats.mcp_messages_wrapped import Message, messages_in, messages_in_line
from ingest.formats.openai_chat import read_transcript
from ingest.formats.otlp import OtlpError, read_json
from ingest.formats.otlp.building import is_same_span
from ingest.formats.placed import Given, Placed, unreadable
from ingest.formats.reading import Unreadable
from service.explain import explain
from service.importing.pieces import (
    BOM,
    MAX_DOCUMENT,
    BadPieceError,
    Piece,
    document,
    lines,
    value_of,
)
from service.importing.sending import MAX_ENCODED, TOO_LONG

_TOO_LARGE = (
    f"is one JSON value of more than {MAX_DOCUMENT:,} bytes: make lines of its elements, such as "
    "by `jq -c '.[]'`"
)
_TOO_NESTED = "is nested too deep"

_LIKE_JSON = re.compile(rb'[{\[]\s*["{\[]')

_Reader = Callable[[object], Iterator[Placed]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a file is read; `was_told` is whether the format could be told by its beginning."""

    format: Format
    shape: Shape
    was_told: bool = True

    def is_told_again(self, stored: Execution, read: Execution) -> bool:
        """Whether an execution with the id of one that is stored, and other content, is the same.

        Ids of transcripts and logs are made of what the calls say, those of spans of the spans'.
        Not to be asked of executions, which bring their own.
        """
        return is_same_span(stored, read) if self.format == "otlp" else True


def choose(beginning: bytes, wanted: Format | None) -> Chosen:
    """The format that is wanted, or else shows; executions where none does."""
    look = look_at(beginning)
    return Chosen(
        wanted or look.format or "executions",
        look.shape,
        was_told=wanted is not None or look.format is not None,
    )


def read(stream: BinaryIO, chosen: Chosen, given: Given) -> Iterator[Placed]:
    """What a file says, in its order.

    Raises:
        AftercallError: the file cannot be read any further, such as where it is damaged.
    """
    match chosen.format:
        case "executions":
            yield from map(_execution, lines(stream, MAX_ENCODED))
        case "otlp":
            for piece in _pieces(stream, chosen.shape):
                yield from _each(piece, _spans)
        case "openai":
            for piece in _pieces(stream, chosen.shape):
                yield from _each(piece, lambda value: read_transcript(value, given))
        case "mcp":
            yield from _log(_pieces(stream, chosen.shape), McpLog(given))


def _pieces(stream: BinaryIO, shape: Shape) -> Iterator[Piece]:
    return iter([document(stream)]) if shape == "document" else lines(stream, MAX_DOCUMENT)


def _execution(piece: Piece) -> Placed:
    if piece.raw is None:
        return unreadable(piece.where, TOO_LONG)
    try:
        value = value_of(piece.raw)
    except BadPieceError as error:
        return unreadable(piece.where, str(error))
    if not isinstance(value, dict):
        return unreadable(piece.where, "must be a JSON object")
    try:
        return Placed(piece.where, Execution.model_validate(value))
    except ValidationError as error:
        return unreadable(piece.where, explain(error, Execution))


def _each(piece: Piece, reader: _Reader) -> Iterator[Placed]:
    """What a reader makes of a piece's value; its places become places in the piece."""
    if piece.raw is None:
        yield unreadable(piece.where, _TOO_LARGE)
        return
    try:
        for where, found in reader(value_of(piece.raw)):
            place = f"{piece.where}, {where}" if where else piece.where
            if isinstance(found, Unreadable):
                yield unreadable(place, found.message)
            else:
                yield Placed(place, found)
    except (BadPieceError, OtlpError) as error:
        yield unreadable(piece.where, str(error))
    except RecursionError:
        yield unreadable(piece.where, _TOO_NESTED)


def _spans(value: object) -> Iterator[Placed]:
    for found in read_json(value):
        yield Placed(found.where if isinstance(found, Unreadable) else "", found)


def _log(pieces: Iterator[Piece], log: McpLog) -> Iterator[Placed]:
    for piece in pieces:
        try:
            for message in _messages(piece):
                if isinstance(message, Message):
                    yield from log.feed(message)
                else:
                    yield message
        except RecursionError:
            yield unreadable(piece.where, _TOO_NESTED)
    yield from log.finish()


def _messages(piece: Piece) -> Iterator[Message | Placed]:
    if piece.raw is None:
        yield unreadable(piece.where, _TOO_LARGE)
        return
    text = piece.raw.removeprefix(BOM).strip()
    # A log's own notes may begin with a bracket too: only what looks like JSON has to be it.
    if not _LIKE_JSON.match(text):
        yield from messages_in_line(text.decode("utf-8", "replace"), piece.where)
        return
    try:
        value = value_of(text)
    except BadPieceError as error:
        yield unreadable(piece.where, str(error))
        return
    yield from messages_in(value, piece.where, len(text))
