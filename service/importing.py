"""Importing executions from JSON lines into a running service."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from pydantic import ValidationError

from aftercall.client import Client, endpoints
from aftercall.redaction import Redactor
from aftercall.wire import Execution
from service.http.explain import explain
from service.http.json_body import TooDeep, parse_json
from service.http.problems import ProblemError, safe_message

_BATCH_LINES = 500
_BATCH_BYTES = 4 * 1024 * 1024

_MAX_LINE = endpoints.MAX_BODY_BYTES - 2
"""Bytes of one execution: what a request may carry, less the brackets of a list."""

_TOO_LONG = f"is longer than {_MAX_LINE:,} bytes, which is all that one request may carry"


class Line(NamedTuple):
    """A line that is an execution, encoded without secrets."""

    number: int
    encoded: bytes


@dataclass(slots=True)
class ImportReport:
    """What became of the lines."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0

    @property
    def lines(self) -> int:
        """Lines that were looked at, blank ones left out."""
        return self.accepted + self.duplicates + self.rejected


@dataclass(slots=True)
class Importer:
    """Sends the lines of a file, batch by batch.

    Args:
        client: the service; None only checks the lines.
        redactor: masks secrets before anything leaves the process.
        on_reject: told of each bad line: its number and what is wrong with it.
        on_progress: told after each batch.
    """

    client: Client | None
    redactor: Redactor
    on_reject: Callable[[int, str], None]
    on_progress: Callable[[ImportReport], None]
    report: ImportReport = field(default_factory=ImportReport)

    def run(self, stream: BinaryIO) -> ImportReport:
        """Read a stream to its end; a bad line is told of and left out.

        Raises:
            AftercallError: the service cannot be reached, or refuses for good. Importing the file
                again is harmless: what was stored counts as duplicate.
        """
        batch: list[Line] = []
        size = 0
        for line in self._lines(stream):
            if batch and (len(batch) == _BATCH_LINES or size + len(line.encoded) > _BATCH_BYTES):
                self._send(batch)
                batch, size = [], 0
            batch.append(line)
            size += len(line.encoded)
        if batch:
            self._send(batch)
        return self.report

    def _lines(self, stream: BinaryIO) -> Iterator[Line]:
        for number, raw in enumerate(_bounded_lines(stream), start=1):
            if raw is None:
                self._reject(number, _TOO_LONG)
            elif raw.strip():
                try:
                    execution = _execution(raw)
                except ValueError as error:
                    self._reject(number, str(error))
                    continue
                # Masking and absent fields written out make it longer or shorter than it was.
                encoded = endpoints.encode(execution, self.redactor)
                if len(encoded) > _MAX_LINE:
                    self._reject(number, _TOO_LONG)
                else:
                    yield Line(number, encoded)

    def _send(self, batch: Sequence[Line]) -> None:
        if self.client is None:
            self.report.accepted += len(batch)
        else:
            receipt = self.client.send(endpoints.record_encoded([line.encoded for line in batch]))
            self.report.accepted += receipt.accepted
            self.report.duplicates += receipt.duplicates
            for rejection in receipt.rejected:
                self._reject(batch[rejection.index].number, rejection.message)
        self.on_progress(self.report)

    def _reject(self, number: int, message: str) -> None:
        self.report.rejected += 1
        self.on_reject(number, safe_message(message))


def _execution(raw: bytes) -> Execution:
    """The execution of one line.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        value = parse_json(raw)
    except ProblemError as error:
        raise ValueError(error.message) from None
    if isinstance(value, TooDeep):
        raise ValueError(value.message)  # noqa: TRY004  # a fault of the line, not a bug
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004  # a fault of the line, not a bug
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        raise ValueError(explain(error, Execution)) from None


def _bounded_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a stream; None for one that is too long to be an execution."""
    while raw := stream.readline(_MAX_LINE + 1):
        if len(raw) <= _MAX_LINE:
            yield raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(_MAX_LINE)
        yield None
