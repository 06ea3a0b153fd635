"""Importing calls from a file into a running service: executions, spans, transcripts, logs.

    stream ─ pieces ─> lines or a document ─ readers ─> executions, or why not ─ sending ─> service

In every format, one bad piece is reported with its place and loses nothing else. Executions come
line by line, in our own form. Spans, observations and transcripts come as JSON values, each a line
or a document. A log of MCP and a session of Claude Code are one story: their lines belong together.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import BinaryIO, TypeAlias

from pydantic import ValidationError

from aftercall.client import Client
from aftercall.client.transport import MAX_BODY_BYTES, encode_execution, in_groups, record_encoded
from aftercall.errors import NotFoundError
from aftercall.explain import explain_error
from aftercall.models import Execution, RecordReceipt
from aftercall.redaction import Redactor
from ingest.formats.calls import (
    Given,
    LeftOut,
    Noted,
    PassedOver,
    Placed,
    Unreadable,
    passed_over,
    unreadable_at,
)
from ingest.formats.detection import Detection, Format
from ingest.formats.mcp_messages import McpLog, Message, messages_in, messages_in_line
from ingest.formats.observations import ObservationReader
from ingest.formats.otlp.reading import is_same_span, read_otlp_json
from ingest.formats.otlp.spans import OtlpError
from ingest.formats.transcripts import Transcripts, is_half
from ingest.intake import InvalidExecutionError, check_age
from service.errors import ProblemError, safe_message
from service.requests import parse_json

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one JSON value, be it a line or a document. It is held in memory as a whole."""
MAX_ENCODED = MAX_BODY_BYTES - 2
"""Bytes of one execution: what a request may carry, less the brackets of a list."""
_TOO_LONG = f"is longer than {MAX_ENCODED:,} bytes, which is all that one request may carry"
_TOO_LARGE = (
    f"is one JSON value of more than {MAX_DOCUMENT:,} bytes: make lines of its elements, such as "
    "by `jq -c '.[]'`"
)
_BOM = b"\xef\xbb\xbf"
_NEXT_VALUE = re.compile(r"[\s,]*(?=[{\[])")
_LIKE_JSON = re.compile(rb'[{\[]\s*["{\[]')
Piece: TypeAlias = tuple[str, bytes | None]
"""A line or a document with its place; None for one that is too long."""
Reader: TypeAlias = Callable[[str, bytes | None], Iterator[Placed]]


@dataclass(slots=True)
class Kinds:
    """Counts of what files are, as far as their readers know only at the end."""

    forms: Counter[str] = field(default_factory=Counter)
    """Calls by the titles of the forms that transcripts have."""
    guessed: Counter[str] = field(default_factory=Counter)
    """Results that were taken for failures, by how they begin."""


def read_calls(
    stream: BinaryIO,
    chosen: Detection,
    given: Given,
    kinds: Kinds | None = None,
    halves: Transcripts | None = None,
) -> Iterator[Placed]:
    """Yield what a file holds, in its order, and count on in `kinds`.

    A document that is half a call, from an agent that writes one file for each event, goes to
    `halves`.
    """
    longest = MAX_ENCODED if chosen.format == "executions" else MAX_DOCUMENT
    if chosen.shape == "lines" or chosen.format == "executions":
        pieces = _read_lines(stream, longest)
    else:
        raw = stream.read(longest + 1)
        pieces = iter([("the document", raw if len(raw) <= longest else None)])
    reader, finish = _reader_of(chosen, given, kinds or Kinds(), halves)
    for where, raw_piece in pieces:
        try:
            yield from reader(where, raw_piece)
        except (_BadPieceError, OtlpError) as error:
            values = _split_values(raw_piece) if chosen.shape == "document" else []
            for place, value in values:
                yield from _read_value(reader, place, value)
            if not values:
                yield unreadable_at(where, str(error))
        except RecursionError:
            yield unreadable_at(where, "is nested too deep")
    yield from finish()


def _read_value(reader: Reader, where: str, raw: bytes) -> Iterator[Placed]:
    try:
        yield from reader(where, raw)
    except (_BadPieceError, OtlpError) as error:
        yield unreadable_at(where, str(error))
    except RecursionError:
        yield unreadable_at(where, "is nested too deep")


def _split_values(raw: bytes | None) -> list[tuple[str, bytes]]:
    """Return the values of a document that holds several, one after the other; else nothing.

    OpenTelemetry's exporter to the console writes such documents.
    """
    if raw is None:
        return []
    text = raw.removeprefix(_BOM).decode("utf-8", "replace")
    values: list[tuple[str, bytes]] = []
    decoder, place = json.JSONDecoder(), 0
    while (found := _NEXT_VALUE.match(text, place)) is not None:
        start = found.end()
        try:
            _, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            place = len(text)
        value = text[start:place]
        number = len(values) + 1
        values.append((f"value {number}", value.encode("utf-8", "replace")))
    return values if len(values) > 1 else []


def _reader_of(
    chosen: Detection, given: Given, kinds: Kinds, halves: Transcripts | None
) -> tuple[Reader, Callable[[], Iterable[Placed]]]:
    """Return the function that reads pieces of a format, and the one that ends the reading."""
    kind = chosen.format
    if kind == "executions":
        return _read_execution, tuple
    if kind == "mcp":
        log = McpLog(given)
        return partial(_read_logged, log), log.finish_log
    if kind == "transcripts":
        transcripts = Transcripts(given, kinds.forms)
        transcripts.guesses.beginnings = kinds.guessed

        def feed_piece(where: str, raw: bytes | None) -> Iterator[Placed]:
            value = _text_of(raw) if chosen.shape == "text" else _value_of(raw, _TOO_LARGE)
            if halves is not None and is_half(value):
                halves.forms = kinds.forms
                return halves.feed_value(value, f"{where}, ")
            return transcripts.feed_value(value, f"{where}, ")

        return feed_piece, transcripts.finish_file
    observations = ObservationReader(given)
    readers: dict[Format, Callable[[object], Iterator[Placed]]] = {"otlp": read_otlp_json}

    def list_others() -> Iterator[Placed]:
        if observations.others:
            counted = ", ".join(f"{n:,} {kind}" for kind, n in observations.others.most_common(10))
            yield Placed("", Noted(f"passed over, as they are no calls of tools: {counted}"))

    return partial(_read_each, readers.get(kind, observations.read)), list_others


def _read_lines(stream: BinaryIO, longest: int) -> Iterator[Piece]:
    """Yield the lines that are not blank, with their places.

    A line longer than `longest` bytes comes as None.
    """
    number = 0
    while raw := stream.readline(longest + 1):
        number += 1
        where = f"line {number}"
        if len(raw) <= longest:
            if raw.strip():
                yield where, raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(1024 * 1024)
        yield where, None


def _text_of(raw: bytes | None, too_large: str = _TOO_LARGE) -> str:
    if raw is None:
        raise _BadPieceError(too_large)
    # A tool may have printed another encoding into a log: bad bytes are replaced.
    return raw.removeprefix(_BOM).decode("utf-8", "replace")


def _value_of(raw: bytes | None, too_large: str) -> object:
    text = _text_of(raw, too_large)
    try:
        return parse_json(text.encode(), max_elements=2**63)
    except ProblemError as error:
        raise _BadPieceError(error.message) from None


class _BadPieceError(ValueError):
    """A piece is not JSON; the message explains the fault."""


def _read_execution(where: str, raw: bytes | None) -> Iterator[Placed]:
    value = _value_of(raw, _TOO_LONG)
    if not isinstance(value, dict):
        raise _BadPieceError("must be a JSON object")
    try:
        yield Placed(where, Execution.model_validate(value))
    except ValidationError as error:
        yield unreadable_at(where, explain_error(error, Execution))


def _read_each(
    reader: Callable[[object], Iterator[Placed]], where: str, raw: bytes | None
) -> Iterator[Placed]:
    """Yield what a reader makes of a piece's value; its places become places in the piece."""
    for inside, found in reader(_value_of(raw, _TOO_LARGE)):
        yield Placed(f"{where}, {inside}" if inside else where, found)


def _read_logged(log: McpLog, where: str, raw: bytes | None) -> Iterator[Placed]:
    text = None if raw is None else raw.removeprefix(_BOM).strip()
    # A log's notes may begin with a bracket, too: only lines like JSON must be JSON.
    messages = (
        messages_in_line(text.decode("utf-8", "replace"), where)
        if text is not None and not _LIKE_JSON.match(text)
        else messages_in(_value_of(text, _TOO_LARGE), where)
    )
    for message in messages:
        yield from log.feed_message(message) if isinstance(message, Message) else [message]


@dataclass(slots=True)
class ImportReport:
    """Counts of calls by what became of them; shows those that could not be taken."""

    say: Callable[[str], None]
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    failures: int = 0
    """Calls that were read and had failed."""
    repairs: int = 0
    """Failures that a success of the same tool follows in the session."""
    prefix: str = ""
    """The prefix of places: the name of the file, if there are several."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Calls without an outcome, by reason."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Spans that are no calls of tools, by instrumentation."""
    tools: Counter[str] = field(default_factory=Counter)
    failed_tools: Counter[str] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    ids: set[str] = field(default_factory=set)
    """Ids of the calls that were only checked."""
    _open: set[tuple[str | None, str]] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """Pieces that were looked at, whether they were calls or not."""
        return self.accepted + self.duplicates + self.rejected

    def count_call(self, call: Execution) -> None:
        """Count a call that was read."""
        name = (
            call.tool_name if call.server_name is None else f"{call.server_name}/{call.tool_name}"
        )
        self.tools[name] += 1
        self.first = min(self.first or call.timestamp, call.timestamp)
        self.last = max(self.last or call.timestamp, call.timestamp)
        key = call.session_id, name
        if call.outcome == "failure":
            self.failures += 1
            self.failed_tools[name] += 1
            self._open.add(key)
        elif key in self._open:
            self.repairs += 1
            self._open.discard(key)

    def reject_piece(self, where: str, message: str) -> None:
        """Report a piece that could not be taken."""
        self.rejected += 1
        self.say(f"{_mask_text(self.prefix + where)}: {_mask_text(message)}")

    def note_once(self, message: str) -> None:
        """Report a remark once, whatever its figures."""
        kind = re.sub(r"\d[\d,.]*", "N", message[:200])
        if kind not in self._noted and len(self._noted) < 20:
            self._noted.add(kind)
            self.say(f"note: {_mask_text(message)}")

    def write_summary(self, guessed: Counter[str]) -> Iterator[str]:
        """Yield the lines to show at the end."""
        for reason, number in self.left_out.most_common():
            yield f"left out, {number:,}: {_mask_text(reason)}"
        if self.passed_over:
            yield _mask_text(passed_over(self.passed_over).message)
        read = self.tools.total()
        for beginning, number in guessed.most_common(5):
            yield (
                f"{number:,} of {read:,} results begin with `{_mask_text(beginning)}` and are "
                "taken for failures, marked `readAsError`; --error-pattern says otherwise"
            )
        if not read or self.first is None or self.last is None:
            return
        span = f"{self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}"
        yield (
            f"{read:,} calls of {len(self.tools):,} tools, {span}: {self.failures:,} failures, "
            f"{self.repairs:,} of them followed by a success of the tool in the session"
        )
        if self.failed_tools:
            (name, number), *_ = self.failed_tools.most_common(1)
            of = f"{number:,} of {self.tools[name]:,}"
            yield f"look at `{_mask_text(name)}` first: {of} calls failed"


def _mask_text(text: str) -> str:
    """Return a file's text for a terminal: no secrets, one line, no control characters."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in safe_message(text)
    )


_Encoded: TypeAlias = tuple[str, Execution, bytes]
"""A call with its place, and as it is sent."""


def send_calls(
    pieces: Iterable[Placed],
    chosen: Detection,
    *,
    client: Client | None,
    report: ImportReport,
    retention: timedelta | None = None,
    on_progress: Callable[[], None],
) -> None:
    """Send what a reader yields, without secrets; without a client only check it.

    The report counts what became of the pieces. Calls older than the `retention` are refused,
    as the service would refuse them. A piece with a known id and other content may be the same
    call, such as another agent's; `chosen` decides.
    """
    ready = _encode_calls(pieces, report, retention, is_checked=client is None)
    for batch in in_groups(ready, lambda each: len(each[2]), most=500, most_bytes=4 * 1024 * 1024):
        receipt = (
            RecordReceipt(accepted=len(batch))
            if client is None
            else client.send(record_encoded([encoded for _, _, encoded in batch]))
        )
        report.accepted += receipt.accepted
        report.duplicates += receipt.duplicates
        for rejection in receipt.rejected:
            where, read, _ = batch[rejection.index]
            if client is not None and _is_recognised(client, chosen, read):
                report.duplicates += 1
            else:
                report.reject_piece(where, rejection.message)
        on_progress()


def _encode_calls(
    pieces: Iterable[Placed], report: ImportReport, retention: timedelta | None, *, is_checked: bool
) -> Iterator[_Encoded]:
    redactor = Redactor()
    for where, read in pieces:
        if isinstance(read, PassedOver):
            report.passed_over.update(read.counts)
        elif isinstance(read, Noted):
            report.note_once(read.message)
        elif isinstance(read, LeftOut):
            report.left_out[read.message] += 1
        elif isinstance(read, Unreadable):
            report.reject_piece(where, read.message)
        # Masks and absent fields change its length.
        elif len(encoded := encode_execution(read, redactor)) > MAX_ENCODED:
            report.reject_piece(where, _TOO_LONG)
        else:
            if is_checked:
                if read.execution_id in report.ids:
                    report.duplicates += 1
                    continue
                report.ids.add(read.execution_id)
                try:
                    check_age(read.timestamp, datetime.now(UTC), retention)  # as the service will
                except InvalidExecutionError as error:
                    report.reject_piece(where, str(error))
                    continue
            report.count_call(read)
            yield where, read, encoded


def _is_recognised(client: Client, chosen: Detection, read: Execution) -> bool:
    if chosen.format == "executions":  # they bring their own ids
        return False
    try:
        stored = client.get_execution(read.execution_id)
    except NotFoundError:
        return False
    # Ids of transcripts and logs come from the calls' content, those of spans from span ids.
    return chosen.format != "otlp" or is_same_span(stored, read)
