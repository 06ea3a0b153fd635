"""Sending what was read, batch by batch; counting what became of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from aftercall.client import Client
from aftercall.client.transport import MAX_BODY_BYTES, encode, record_encoded
from aftercall.errors import NotFoundError
from aftercall.models import Execution
from aftercall.redaction import Redactor
from ingest.formats.placed import Placed
from ingest.formats.reading import Noted, Unreadable
from ingest.intake import InvalidExecutionError, check_time
from service.importing.report import ImportReport, Rejections

_BATCH_CALLS = 500
_BATCH_BYTES = 4 * 1024 * 1024

MAX_ENCODED = MAX_BODY_BYTES - 2
"""Bytes of one execution: what a request may carry, less the brackets of a list."""

TOO_LONG = f"is longer than {MAX_ENCODED:,} bytes, which is all that one request may carry"


class _Encoded(NamedTuple):
    """An execution without secrets."""

    where: str
    read: Execution
    encoded: bytes


@dataclass(slots=True)
class Importer:
    """Sends what a reader gives.

    Args:
        client: the service; None only checks.
        redactor: masks secrets before anything leaves the process.
        rejections: told of each piece that could not be taken.
        on_progress: told after each batch.
        is_told_again: whether an execution that the service has already, the first argument, is the
            same call as one with its id and other content, such as another agent. Without it none
            is.
    """

    client: Client | None
    redactor: Redactor
    rejections: Rejections
    on_progress: Callable[[ImportReport], None]
    is_told_again: Callable[[Execution, Execution], bool] | None = None
    report: ImportReport = field(default_factory=ImportReport)

    def run(self, pieces: Iterable[Placed]) -> ImportReport:
        """Send all of it.

        Raises:
            AftercallError: the service cannot be reached, or refuses for good. Importing the file
                again is harmless: what was stored counts as duplicate.
        """
        batch: list[_Encoded] = []
        size = 0
        for where, read in pieces:
            if isinstance(read, Noted):
                self.rejections.note(read.message)
                continue
            if isinstance(read, Unreadable):
                self._reject(read.where, read.message)
                continue
            # Masking and absent fields written out make it longer or shorter than it was.
            encoded = encode(read, self.redactor)
            if len(encoded) > MAX_ENCODED:
                self._reject(where, TOO_LONG)
                continue
            if batch and (len(batch) == _BATCH_CALLS or size + len(encoded) > _BATCH_BYTES):
                self._send(batch)
                batch, size = [], 0
            if self.client is None:
                try:
                    check_time(read.timestamp, datetime.now(UTC))  # as the service will
                except InvalidExecutionError as error:
                    self._reject(where, str(error))
                    continue
                self.report.count(read)
            batch.append(_Encoded(where, read, encoded))
            size += len(encoded)
        if batch:
            self._send(batch)
        return self.report

    def _send(self, batch: list[_Encoded]) -> None:
        if self.client is None:
            self.report.accepted += len(batch)
        else:
            receipt = self.client.send(record_encoded([each.encoded for each in batch]))
            self.report.accepted += receipt.accepted
            self.report.duplicates += receipt.duplicates
            for rejection in receipt.rejected:
                rejected = batch[rejection.index]
                if self._was_told(self.client, rejected.read):
                    self.report.duplicates += 1
                else:
                    self._reject(rejected.where, rejection.message)
        self.on_progress(self.report)

    def _was_told(self, client: Client, read: Execution) -> bool:
        if self.is_told_again is None:
            return False
        try:
            stored = client.get_execution(read.execution_id)
        except NotFoundError:
            return False
        return self.is_told_again(stored, read)

    def _reject(self, where: str, message: str) -> None:
        self.report.rejected += 1
        self.rejections.reject(where, message)
