"""Importing calls from a file into a running service: executions, spans, transcripts, logs.

    stream ─ pieces ─> lines or a document ─ readers ─> executions, or why not ─ sending ─> service

Whatever the format, one bad piece is told of with its place and loses nothing else. Executions come
line by line, in our own form. Spans, observations and transcripts come as JSON values, a line or a
document each. A log of MCP and a session of Claude Code is one story: its lines belong together.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple, TextIO

from pydantic import ValidationError

from aftercall.client import Client
from aftercall.client.transport import MAX_BODY_BYTES, encode, record_encoded
from aftercall.errors import NotFoundError
from aftercall.explain import explain
from aftercall.models import Execution, RecordReceipt
from aftercall.redaction import Redactor
from ingest.formats.calls import Given, Noted, Placed, Unreadable, unreadable
from ingest.formats.detection import Format, Shape, look_at
from ingest.formats.mcp_messages import McpLog, Message, messages_in, messages_in_line
from ingest.formats.observations import ObservationReader
from ingest.formats.otlp.reading import is_same_span, read_json
from ingest.formats.otlp.spans import OtlpError
from ingest.formats.transcripts import ClaudeCodeSessions, read_transcript
from ingest.intake import InvalidExecutionError, check_time
from service.bodies import parse_json
from service.errors import ProblemError, safe_message

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one JSON value, be it a line or a document. It is held in memory as a whole."""
MAX_ENCODED = MAX_BODY_BYTES - 2
"""Bytes of one execution: what a request may carry, less the brackets of a list."""
_TOO_LONG = f"is longer than {MAX_ENCODED:,} bytes, which is all that one request may carry"
_TOO_LARGE = (
    f"is one JSON value of more than {MAX_DOCUMENT:,} bytes: make lines of its elements, such as "
    "by `jq -c '.[]'`"
)
_TOO_NESTED = "is nested too deep"
_BATCH_CALLS = 500
_BATCH_BYTES = 4 * 1024 * 1024
_BUFFER = 1024 * 1024
_ANY_NUMBER = 2**63
_BOM = b"\xef\xbb\xbf"
_LIKE_JSON = re.compile(rb'[{\[]\s*["{\[]')
_IN_FULL = 20
_SHOWN_TOOLS = 50


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a file is read; `is_recognised` is whether its beginning named the format."""

    format: Format
    shape: Shape
    is_recognised: bool = True


def choose(beginning: bytes, wanted: Format | None) -> Chosen:
    """The format that is wanted, or else shows; executions where none does."""
    look = look_at(beginning)
    known = wanted or look.format
    return Chosen(known or "executions", look.shape, is_recognised=known is not None)


def read(stream: BinaryIO, chosen: Chosen, given: Given) -> Iterator[Placed]:
    """What a file says, in its order."""
    if chosen.format == "executions":
        yield from (_execution(*piece) for piece in _lines(stream, MAX_ENCODED))
        return
    if chosen.shape == "lines":
        pieces = _lines(stream, MAX_DOCUMENT)
    else:
        raw = stream.read(MAX_DOCUMENT + 1)
        pieces = iter([("the document", raw if len(raw) <= MAX_DOCUMENT else None)])
    if chosen.format == "mcp":
        yield from _log(pieces, McpLog(given))
        return
    if chosen.format == "claude-code":
        yield from _sessions(pieces, ClaudeCodeSessions(given))
        return
    observations = ObservationReader(given)
    readers: dict[str, Callable[[object], Iterator[Placed]]] = {
        "otlp": _spans,
        "transcripts": lambda value: read_transcript(value, given),
    }
    for piece in pieces:
        yield from _each(*piece, readers.get(chosen.format, observations.read))
    if observations.others:
        counted = ", ".join(f"{n:,} {kind}" for kind, n in observations.others.most_common(10))
        yield Placed("", Noted(f"passed over, as they are no calls of tools: {counted}"))


def _lines(stream: BinaryIO, longest: int) -> Iterator[tuple[str, bytes | None]]:
    """The lines that are not blank, with their places; None for one longer than `longest` bytes."""
    number = 0
    while raw := stream.readline(longest + 1):
        number += 1
        where = f"line {number}"
        if len(raw) <= longest:
            if raw.strip():
                yield where, raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(_BUFFER)
        yield where, None


def _value_of(raw: bytes | None, too_large: str) -> object:
    if raw is None:
        raise _BadPieceError(too_large)
    try:
        return parse_json(raw.removeprefix(_BOM), max_elements=_ANY_NUMBER)
    except ProblemError as error:
        raise _BadPieceError(error.message) from None


class _BadPieceError(ValueError):
    """A piece that is no JSON; the message says what is wrong."""


def _execution(where: str, raw: bytes | None) -> Placed:
    try:
        value = _value_of(raw, _TOO_LONG)
        if not isinstance(value, dict):
            return unreadable(where, "must be a JSON object")
        return Placed(where, Execution.model_validate(value))
    except _BadPieceError as error:
        return unreadable(where, str(error))
    except ValidationError as error:
        return unreadable(where, explain(error, Execution))


def _each(
    where: str, raw: bytes | None, reader: Callable[[object], Iterator[Placed]]
) -> Iterator[Placed]:
    """What a reader makes of a piece's value; its places become places in the piece."""
    try:
        for inside, found in reader(_value_of(raw, _TOO_LARGE)):
            place = f"{where}, {inside}" if inside else where
            if isinstance(found, Unreadable):
                yield unreadable(place, found.message)
            else:
                yield Placed(place, found)
    except (_BadPieceError, OtlpError) as error:
        yield unreadable(where, str(error))
    except RecursionError:
        yield unreadable(where, _TOO_NESTED)


def _sessions(
    pieces: Iterator[tuple[str, bytes | None]], sessions: ClaudeCodeSessions
) -> Iterator[Placed]:
    for where, raw in pieces:
        try:
            yield from sessions.feed(_value_of(raw, _TOO_LARGE), where)
        except _BadPieceError as error:
            yield unreadable(where, str(error))
        except RecursionError:
            yield unreadable(where, _TOO_NESTED)
    yield from sessions.finish()


def _spans(value: object) -> Iterator[Placed]:
    for found in read_json(value):
        yield Placed(found.where if isinstance(found, Unreadable) else "", found)


def _log(pieces: Iterator[tuple[str, bytes | None]], log: McpLog) -> Iterator[Placed]:
    for where, raw in pieces:
        try:
            for message in _messages(where, raw):
                yield from log.feed(message) if isinstance(message, Message) else [message]
        except _BadPieceError as error:
            yield unreadable(where, str(error))
        except RecursionError:
            yield unreadable(where, _TOO_NESTED)
    yield from log.finish()


def _messages(where: str, raw: bytes | None) -> Iterator[Message | Placed]:
    text = None if raw is None else raw.removeprefix(_BOM).strip()
    # A log's own notes may begin with a bracket too: only what looks like JSON has to be it.
    if text is not None and not _LIKE_JSON.match(text):
        return messages_in_line(text.decode("utf-8", "replace"), where)
    return messages_in(_value_of(text, _TOO_LARGE), where)


@dataclass(slots=True)
class ImportReport:
    """Counts what became of the calls, and tells of those that could not be taken.

    `file` gets each of them as a line `{"where": ..., "reason": ...}`.
    """

    say: Callable[[str], None]
    file: TextIO | None = None
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    _tools: dict[str, list[int]] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """Calls, or pieces that were none, that were looked at."""
        return self.accepted + self.duplicates + self.rejected

    def count(self, execution: Execution) -> None:
        """Count a call by its tool and outcome."""
        self._tools.setdefault(execution.tool_name, [0, 0])[execution.outcome == "failure"] += 1

    def by_tool(self) -> Iterator[str]:
        """A line per tool, those with most calls first."""
        ranked = sorted(self._tools.items(), key=lambda item: (-sum(item[1]), item[0]))
        for tool, (succeeded, failed) in ranked[:_SHOWN_TOOLS]:
            yield _shown(f"{tool}: {succeeded:,} succeeded, {failed:,} failed")
        if len(ranked) > _SHOWN_TOOLS:
            yield f"and {len(ranked) - _SHOWN_TOOLS:,} more tools"

    def reject(self, where: str, message: str) -> None:
        """Tell of one that could not be taken; beyond the first few only of how many there are."""
        self.rejected += 1
        place, reason = _shown(where), _shown(message)
        if self.file is not None:
            line = {"where": place, "reason": reason}
            self.file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if self.rejected <= _IN_FULL:
            self.say(f"{place}: {reason}")

    def note(self, message: str) -> None:
        """Tell a remark once, whatever its figures."""
        if (kind := _kind(message)) not in self._noted and len(self._noted) < _IN_FULL:
            self._noted.add(kind)
            self.say(f"note: {_shown(message)}")

    def finish(self) -> None:
        """Tell how many there were beyond those that were told in full, and what was counted."""
        if (more := self.rejected - _IN_FULL) > 0:
            self.say(f"and {more:,} more; --report writes all of them to a file")
        for line in self.by_tool():
            self.say(line)


def _shown(text: str) -> str:
    """Text of a file as a terminal may get it: no secrets, one line, nothing that steers it."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in safe_message(text)
    )


def _kind(reason: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", reason[:200])


class _Encoded(NamedTuple):
    where: str
    read: Execution
    encoded: bytes


def send(
    pieces: Iterable[Placed],
    chosen: Chosen,
    *,
    client: Client | None,
    report: ImportReport,
    on_progress: Callable[[], None],
) -> None:
    """Send what a reader gives, without secrets; without a client it is only checked.

    What became of the pieces is counted in the report. As `chosen` tells, one with an id that is
    known and other content may be the same call, such as another agent's.
    """
    batch: list[_Encoded] = []

    def flush() -> None:
        receipt = RecordReceipt(accepted=len(batch))
        if client is not None:
            receipt = client.send(record_encoded([each.encoded for each in batch]))
        report.accepted += receipt.accepted
        report.duplicates += receipt.duplicates
        for rejection in receipt.rejected:
            rejected = batch[rejection.index]
            if client is not None and _is_recognised(client, chosen, rejected.read):
                report.duplicates += 1
            else:
                report.reject(rejected.where, rejection.message)
        batch.clear()
        on_progress()

    for each in _encoded(pieces, report):
        if client is None:
            try:
                check_time(each.read.timestamp, datetime.now(UTC))  # as the service will
            except InvalidExecutionError as error:
                report.reject(each.where, str(error))
                continue
            report.count(each.read)
        size = sum(len(one.encoded) for one in batch) + len(each.encoded)
        if batch and (len(batch) == _BATCH_CALLS or size > _BATCH_BYTES):
            flush()
        batch.append(each)
    if batch:
        flush()


def _encoded(pieces: Iterable[Placed], report: ImportReport) -> Iterator[_Encoded]:
    redactor = Redactor()
    for where, read in pieces:
        if isinstance(read, Noted):
            report.note(read.message)
        elif isinstance(read, Unreadable):
            report.reject(read.where, read.message)
        # Masking and absent fields written out make it longer or shorter than it was.
        elif len(encoded := encode(read, redactor)) > MAX_ENCODED:
            report.reject(where, _TOO_LONG)
        else:
            yield _Encoded(where, read, encoded)


def _is_recognised(client: Client, chosen: Chosen, read: Execution) -> bool:
    if chosen.format == "executions":  # they bring their own ids
        return False
    try:
        stored = client.get_execution(read.execution_id)
    except NotFoundError:
        return False
    # Ids of transcripts and logs are made of what the calls say, those of spans of the spans'.
    return chosen.format != "otlp" or is_same_span(stored, read)
