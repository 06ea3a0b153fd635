"""Importing calls from a file into a running service: executions, spans, transcripts, logs.

    stream ─ pieces ─> lines or a document ─ readers ─> executions, or why not ─ sending ─> service

Whatever the format, one bad piece is told of with its place and loses nothing else. Executions come
line by line, in our own form. Spans, observations and transcripts come as JSON values, a line or a
document each. A log of MCP and a session of Claude Code is one story: its lines belong together.
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
    """Counts what files are, as far as their readers can show only at the end."""

    forms: Counter[str] = field(default_factory=Counter)
    """Calls by the titles of the forms that transcripts have."""
    guessed: Counter[str] = field(default_factory=Counter)
    """Results that were taken for failures, by how they begin."""


def read(
    stream: BinaryIO,
    chosen: Detection,
    given: Given,
    kinds: Kinds | None = None,
    halves: Transcripts | None = None,
) -> Iterator[Placed]:
    """Yield what a file states, in its order; `kinds` is counted on.

    A document that is half a call, as those who write a file an event have it, goes to `halves`.
    """
    longest = MAX_ENCODED if chosen.format == "executions" else MAX_DOCUMENT
    if chosen.shape == "lines" or chosen.format == "executions":
        pieces = _lines(stream, longest)
    else:
        raw = stream.read(longest + 1)
        pieces = iter([("the document", raw if len(raw) <= longest else None)])
    reader, finish = _reader_of(chosen, given, kinds or Kinds(), halves)
    for where, raw_piece in pieces:
        try:
            yield from reader(where, raw_piece)
        except (_BadPieceError, OtlpError) as error:
            values = _split(raw_piece) if chosen.shape == "document" else []
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


def _split(raw: bytes | None) -> list[tuple[str, bytes]]:
    """Return the values of a document that is several, one behind the other; none where it is not.

    OpenTelemetry's exporter to the console writes so.
    """
    text = "" if raw is None else raw.removeprefix(_BOM).decode("utf-8", "replace")
    values: list[tuple[str, bytes]] = []
    decoder, place = json.JSONDecoder(), 0
    while (found := _NEXT_VALUE.match(text, place)) is not None:
        start = found.end()
        try:
            _, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            place = len(text)
        values.append((f"value {len(values) + 1}", text[start:place].encode("utf-8", "replace")))
    return values if len(values) > 1 else []


def _reader_of(
    chosen: Detection, given: Given, kinds: Kinds, halves: Transcripts | None
) -> tuple[Reader, Callable[[], Iterable[Placed]]]:
    """Return what reads pieces of a format, and what is left at the end."""
    kind = chosen.format
    if kind == "executions":
        return _execution, tuple
    if kind == "mcp":
        log = McpLog(given)
        return partial(_logged, log), log.finish_log
    if kind == "transcripts":
        transcripts = Transcripts(given, kinds.forms)
        transcripts.guesses.beginnings = kinds.guessed

        def feed(where: str, raw: bytes | None) -> Iterator[Placed]:
            value = _text_of(raw) if chosen.shape == "text" else _value_of(raw, _TOO_LARGE)
            if halves is not None and is_half(value):
                halves.forms = kinds.forms
                return halves.feed_value(value, f"{where}, ")
            return transcripts.feed_value(value, f"{where}, ")

        return feed, transcripts.finish_file
    observations = ObservationReader(given)
    readers: dict[Format, Callable[[object], Iterator[Placed]]] = {"otlp": read_otlp_json}

    def others() -> Iterator[Placed]:
        if observations.others:
            counted = ", ".join(f"{n:,} {kind}" for kind, n in observations.others.most_common(10))
            yield Placed("", Noted(f"passed over, as they are no calls of tools: {counted}"))

    return partial(_each, readers.get(kind, observations.read)), others


def _lines(stream: BinaryIO, longest: int) -> Iterator[Piece]:
    """Yield the lines that are not blank, with their places.

    None for one longer than `longest` bytes.
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
    # A log may hold what a tool printed in another encoding: that is replaced, not the line lost.
    return raw.removeprefix(_BOM).decode("utf-8", "replace")


def _value_of(raw: bytes | None, too_large: str) -> object:
    text = _text_of(raw, too_large)
    try:
        return parse_json(text.encode(), max_elements=2**63)
    except ProblemError as error:
        raise _BadPieceError(error.message) from None


class _BadPieceError(ValueError):
    """A piece that is no JSON; the message states what is wrong."""


def _execution(where: str, raw: bytes | None) -> Iterator[Placed]:
    value = _value_of(raw, _TOO_LONG)
    if not isinstance(value, dict):
        raise _BadPieceError("must be a JSON object")
    try:
        yield Placed(where, Execution.model_validate(value))
    except ValidationError as error:
        yield unreadable_at(where, explain_error(error, Execution))


def _each(
    reader: Callable[[object], Iterator[Placed]], where: str, raw: bytes | None
) -> Iterator[Placed]:
    """Yield what a reader makes of a piece's value; its places become places in the piece."""
    for inside, found in reader(_value_of(raw, _TOO_LARGE)):
        yield Placed(f"{where}, {inside}" if inside else where, found)


def _logged(log: McpLog, where: str, raw: bytes | None) -> Iterator[Placed]:
    text = None if raw is None else raw.removeprefix(_BOM).strip()
    # A log's own notes may begin with a bracket too: only what looks like JSON has to be it.
    messages = (
        messages_in_line(text.decode("utf-8", "replace"), where)
        if text is not None and not _LIKE_JSON.match(text)
        else messages_in(_value_of(text, _TOO_LARGE), where)
    )
    for message in messages:
        yield from log.feed_message(message) if isinstance(message, Message) else [message]


@dataclass(slots=True)
class ImportReport:
    """Counts what became of the calls, and shows those that could not be taken."""

    say: Callable[[str], None]
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    failures: int = 0
    """Of the calls that were read: those that failed."""
    repairs: int = 0
    """Failures that a success of the same tool follows in the session."""
    prefix: str = ""
    """What stands before places: the name of the file, where there are several."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Calls without an outcome, by reason."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Spans that are no calls of tools, by instrumentation."""
    tools: Counter[str] = field(default_factory=Counter)
    failed_tools: Counter[str] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    ids: set[str] = field(default_factory=set)
    """Of the calls that were only checked."""
    _open: set[tuple[str | None, str]] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """Calls, or pieces that were none, that were looked at."""
        return self.accepted + self.duplicates + self.rejected

    def count(self, call: Execution) -> None:
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

    def reject(self, where: str, message: str) -> None:
        """Tell of one that could not be taken."""
        self.rejected += 1
        self.say(f"{_shown(self.prefix + where)}: {_shown(message)}")

    def note(self, message: str) -> None:
        """Tell a remark once, whatever its figures."""
        kind = re.sub(r"\d[\d,.]*", "N", message[:200])
        if kind not in self._noted and len(self._noted) < 20:
            self._noted.add(kind)
            self.say(f"note: {_shown(message)}")

    def summary(self, guessed: Counter[str]) -> Iterator[str]:
        """Return what there is to say at the end, a line each."""
        for reason, number in self.left_out.most_common():
            yield f"left out, {number:,}: {_shown(reason)}"
        if self.passed_over:
            yield _shown(passed_over(self.passed_over).message)
        read = self.tools.total()
        for beginning, number in guessed.most_common(5):
            yield (
                f"{number:,} of {read:,} results begin with `{_shown(beginning)}` and are taken "
                "for failures, marked `readAsError`; --error-pattern says otherwise"
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
            yield f"look at `{_shown(name)}` first: {number:,} of {self.tools[name]:,} calls failed"


def _shown(text: str) -> str:
    """Text of a file as a terminal may get it: no secrets, one line, nothing that steers it."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in safe_message(text)
    )


_Encoded: TypeAlias = tuple[str, Execution, bytes]
"""A call with its place, and as it is sent."""


def send(
    pieces: Iterable[Placed],
    chosen: Detection,
    *,
    client: Client | None,
    report: ImportReport,
    retention: timedelta | None = None,
    on_progress: Callable[[], None],
) -> None:
    """Send what a reader gives, without secrets; without a client it is only checked.

    What became of the pieces is counted in the report; what is older than the `retention` is
    refused then, as the service would. As `chosen` shows, one with an id that is
    known and other content may be the same call, such as another agent's.
    """
    ready = _encoded(pieces, report, retention, is_checked=client is None)
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
                report.reject(where, rejection.message)
        on_progress()


def _encoded(
    pieces: Iterable[Placed], report: ImportReport, retention: timedelta | None, *, is_checked: bool
) -> Iterator[_Encoded]:
    redactor = Redactor()
    for where, read in pieces:
        if isinstance(read, PassedOver):
            report.passed_over.update(read.counts)
        elif isinstance(read, Noted):
            report.note(read.message)
        elif isinstance(read, LeftOut):
            report.left_out[read.message] += 1
        elif isinstance(read, Unreadable):
            report.reject(where, read.message)
        # Masking and absent fields written out make it longer or shorter than it was.
        elif len(encoded := encode_execution(read, redactor)) > MAX_ENCODED:
            report.reject(where, _TOO_LONG)
        else:
            if is_checked:
                if read.execution_id in report.ids:
                    report.duplicates += 1
                    continue
                report.ids.add(read.execution_id)
                try:
                    check_age(read.timestamp, datetime.now(UTC), retention)  # as the service will
                except InvalidExecutionError as error:
                    report.reject(where, str(error))
                    continue
            report.count(read)
            yield where, read, encoded


def _is_recognised(client: Client, chosen: Detection, read: Execution) -> bool:
    if chosen.format == "executions":  # they bring their own ids
        return False
    try:
        stored = client.get_execution(read.execution_id)
    except NotFoundError:
        return False
    # Ids of transcripts and logs are made of what the calls say, those of spans of the spans'.
    return chosen.format != "otlp" or is_same_span(stored, read)
