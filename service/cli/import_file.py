"""`aftercall import FILE.jsonl`: executions, one a line, into a running service."""

import argparse
import sys
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aftercall.cli.status import add_service, service_url
from aftercall.errors import AftercallError
from service.cli.options import say

if TYPE_CHECKING:
    from service.importing import ImportReport

_SAY_EVERY_S = 2.0


class ImportCommand:
    """Sends executions from a file to the service."""

    name = "import"
    help = "record executions from a file of JSON lines in a running service"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file and the service."""
        parser.add_argument("file", metavar="FILE", help="one execution a line; - reads stdin")
        add_service(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="only check the lines, send nothing"
        )

    def run(self, args: argparse.Namespace) -> int:
        """Send the file; 0 when all was taken, 1 when a line was rejected.

        Raises:
            AftercallError: the file cannot be read, or the service does not take it.
        """
        from aftercall.client import Client  # `aftercall --help` loads this module
        from aftercall.redaction import Redactor
        from service.importing import Importer, ImportReport

        said = time.monotonic()

        def progress(report: "ImportReport") -> None:
            nonlocal said
            if (now := time.monotonic()) - said >= _SAY_EVERY_S:
                said = now
                say(f"{report.lines:,} lines")

        report = ImportReport()
        with ExitStack() as stack:
            # Whatever happens, the last line says what was taken: importing again is harmless.
            stack.callback(_print, report, dry_run=args.dry_run)
            client = None
            if not args.dry_run:
                client = stack.enter_context(Client(service_url(args), retries=5))
            Importer(
                client=client,
                redactor=Redactor(),
                report=report,
                on_reject=lambda number, message: say(f"line {number}: {message}"),
                on_progress=progress,
            ).run(stack.enter_context(_opened(args.file)))
        return 1 if report.rejected else 0


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise AftercallError(f"cannot read {file}: {error.strerror or error}") from error


def _print(report: "ImportReport", *, dry_run: bool) -> None:
    taken = "valid" if dry_run else "accepted"
    print(
        f"{report.accepted:,} {taken}, {report.duplicates:,} duplicates, "
        f"{report.rejected:,} rejected",
        flush=True,
    )


command = ImportCommand()
