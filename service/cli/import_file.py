"""`aftercall import FILE`: executions into a running service, or an archive into a store."""

import argparse
import io
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from aftercall.cli.status import add_service, service_url
from service.cli.options import add_data_dir, add_logging, say, settings_from

if TYPE_CHECKING:
    from service.config.settings import Settings
    from service.importing import ImportReport
    from service.moving.lines import Header
    from service.moving.restoring import Compared

_SAY_EVERY_S = 2.0

_FIRST_LOOK = 4096
"""Bytes of the beginning that tell an archive from executions."""

_LONG_HELP = """FILE is one of two things, which its first line tells. Executions, one JSON object
a line, are recorded in the running service at --service, as if agents sent them. An archive made by
`aftercall export` goes, whole, into the empty store that the settings name (--data-dir, or
AFTERCALL_MONGO_URI), while no service runs on it; what was interrupted goes on when it is run
again. Either may be packed by gzip or zstd."""


class ImportCommand:
    """Sends executions from a file to the service, or restores an archive."""

    name = "import"
    help = "record executions from a file in a running service, or restore an `aftercall export`"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, the service and the store."""
        parser.description = _LONG_HELP
        parser.add_argument("file", metavar="FILE", help="what to import; - reads stdin")
        add_service(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="only check the file; nothing is sent or stored"
        )
        add_data_dir(parser)
        add_logging(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Import the file; 0 when all was taken, 1 when a line was rejected.

        Raises:
            AftercallError: the file cannot be read, or the service or store does not take it.
        """
        from service.moving.lines import is_archive  # `aftercall --help` loads this module
        from service.moving.packing import unpacked

        with unpacked(args.file) as stream:
            if is_archive(stream.peek(_FIRST_LOOK)):
                return _import_archive(args, stream)
            return _import_executions(args, stream)


def _import_executions(args: argparse.Namespace, stream: io.BufferedReader) -> int:
    from aftercall.client import Client
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
        ).run(stream)
    return 1 if report.rejected else 0


def _print(report: "ImportReport", *, dry_run: bool) -> None:
    taken = "valid" if dry_run else "accepted"
    print(
        f"{report.accepted:,} {taken}, {report.duplicates:,} duplicates, "
        f"{report.rejected:,} rejected",
        flush=True,
    )


def _import_archive(args: argparse.Namespace, stream: io.BufferedReader) -> int:
    import asyncio

    from service.logs import configure_logging
    from service.moving.packing import STDIO
    from service.moving.report import side_by_side
    from service.moving.restoring import AlreadyImportedError
    from service.startup import one_line

    settings = settings_from(args)
    configure_logging(settings.log)
    if args.dry_run:
        return _verified(stream, say_it=True)
    if args.file != STDIO:
        say("checking the archive before anything is stored")
        _verify_file(args.file)
    with one_line(settings.data.dir):
        try:
            header, compared = asyncio.run(_restore(settings, stream))
        except AlreadyImportedError as done:
            say(f"{done}, whole and checked: nothing to do")
            return 0
    for line in side_by_side(compared):
        print(line, flush=True)
    if compared.differing:
        say(
            f"the store does not hold what the archive holds ({', '.join(compared.differing)}). "
            "Does a service, worker or nightly run use it? Stop them, and begin again with an "
            "empty store"
        )
        return 1
    say(
        "counts and checksums agree. The vectors are made by `aftercall serve` or `aftercall "
        f"worker`, which find {compared.archive['documents'].count:,} documents in their queue"
    )
    if header.embedder is not None:
        say(
            f"the model there was {header.embedder}; where another is set here, run `aftercall "
            "rebuild` afterwards, so that clusters of axes are by its measure too"
        )
    return 0


def _verify_file(name: str) -> None:
    from service.moving.packing import unpacked

    with unpacked(name) as stream:
        _verified(stream, say_it=False)


def _verified(stream: io.BufferedReader, *, say_it: bool) -> int:
    from service.cli.progress import Progress
    from service.moving.reading import ArchiveReader
    from service.moving.report import table

    reader = ArchiveReader(stream)
    told = Progress(say).records("checked")
    done: dict[str, int] = {}
    for batch in reader.batches():
        done[batch.kind] = done.get(batch.kind, 0) + len(batch.rows)
        told(batch.kind, done[batch.kind])
    if say_it:
        made = reader.header
        for line in table(reader.tallies):
            print(line, flush=True)
        say(f"the archive is whole: made {made.made_at:%Y-%m-%d %H:%M} UTC from {made.store}")
    return 0


async def _restore(settings: "Settings", stream: io.BufferedReader) -> "tuple[Header, Compared]":
    from service.cli.progress import Progress
    from service.moving.reading import ArchiveReader
    from service.moving.restoring import restore
    from service.rooms import opened_store
    from service.waiting import COMMAND_PATIENCE_S

    reader = ArchiveReader(stream)
    # Else nothing would agree: a secondary may lag behind what was just restored, and what is old
    # would expire meanwhile. A service that is started sets the expiry that it wants.
    chosen = settings.with_values(mongo={"analytics": "primary"}, retention={"days": 0})
    progress = Progress(say)
    async with opened_store(chosen, patience_s=COMMAND_PATIENCE_S) as store:
        compared = await restore(
            store,
            reader,
            on_records=progress.records("stored"),
            on_compare=progress.records("compared"),
        )
    return reader.header, compared


command = ImportCommand()
