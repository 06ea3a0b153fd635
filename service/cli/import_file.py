"""`aftercall import FILE`: calls into a running service, or an archive into a store."""

import argparse
import io
import re
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.cli import Command
from aftercall.cli.status import add_service
from service.cli.options import add_common, note, run, say, seldom, start

if TYPE_CHECKING:
    from service.settings import Settings

_FIRST_LOOK = 4096
"""Bytes of the beginning that tell an archive from executions."""
_LONG_HELP = """Records the calls of FILE in the running service at --service, as if agents sent
them. FILE may hold executions, one JSON object a line; OTLP traces as JSON; exports of LangSmith
and Langfuse; sessions of Claude Code (the .jsonl files below ~/.claude/projects); messages of
Anthropic's API and transcripts of OpenAI's APIs; logs of MCP Inspector and of desktop clients. The
beginning of FILE shows which it is, unless --format says so. An archive made by `aftercall export`
is restored as a whole into the empty store that the settings name (--data-dir, or
AFTERCALL_MONGO_URI), while no service uses it; run it again if it was interrupted. Files may be
compressed with gzip. Importing a file twice records nothing twice."""
_TITLES = {
    "otlp": "OTLP traces",
    "langsmith": "runs of LangSmith",
    "langfuse": "observations of Langfuse",
    "transcripts": "transcripts",
    "mcp": "a log of MCP messages",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    parser.add_argument("file", metavar="FILE", help="what to import; - reads stdin")
    parser.add_argument(
        "--format",
        choices=("auto", "executions", *_TITLES),
        default="auto",
        help="what FILE is; auto (the default) looks at how it begins",
    )
    add_service(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file; nothing is sent or stored"
    )
    said = parser.add_argument_group("for transcripts and MCP logs")
    said.add_argument("--agent", metavar="NAME", help="who made the calls, whatever FILE says")
    said.add_argument(
        "--error-prefix",
        action="append",
        default=[],
        type=_prefix,
        metavar="TEXT",
        help="results in transcripts that begin so are failures, such as 'Error:'; may be "
        "given several times",
    )
    said.add_argument(
        "--error-pattern",
        type=_pattern,
        metavar="REGEX",
        help="results in transcripts that it is found in are failures. Without either option, "
        "results that begin as errors do are taken for failures, and marked so",
    )
    add_common(parser)


def _run(args: argparse.Namespace) -> int:
    from service.archive import is_archive, unpacked  # `--help` loads this module

    with unpacked(args.file) as stream:
        if args.format == "auto" and is_archive(stream.peek(_FIRST_LOOK)):
            return _import_archive(args, stream)
        return _import_calls(args, stream)


def _error_pattern(prefixes: list[str], pattern: str | None) -> re.Pattern[str] | None:
    parts = [rf"\A\s*{re.escape(each)}" for each in prefixes]
    parts += [] if pattern is None else [f"(?:{pattern})"]
    return re.compile("|".join(parts)) if parts else None


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"is no regular expression: {error}") from None
    return text


def _prefix(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("every result begins with nothing: give a text")
    return text.lstrip()


def _import_calls(args: argparse.Namespace, stream: io.BufferedReader) -> int:
    from aftercall.client import Client
    from ingest.formats.calls import Given
    from ingest.formats.detection import LOOK_BYTES, contents, look_at
    from service.archive import STDIO
    from service.imports import ImportReport, read, send

    beginning = stream.peek(LOOK_BYTES)[:LOOK_BYTES]
    chosen = look_at(beginning, None if args.format == "auto" else args.format)
    if chosen.format != "executions":
        say(f"reading {args.file} as {_TITLES[chosen.format]}")
    if chosen.format == "transcripts" and not args.error_prefix:
        say("results without a flag are successes; say how failures begin with --error-prefix")
    changed = None if args.file == STDIO else Path(args.file).stat().st_mtime
    given = Given(
        at=datetime.now(UTC) if changed is None else datetime.fromtimestamp(changed, UTC),
        agent=args.agent or None,
        error_pattern=_error_pattern(args.error_prefix, args.error_pattern),
    )
    progress = seldom(say)
    with ExitStack() as stack:
        report = ImportReport(say)
        # Whatever happens, the last line says what was taken: importing again is harmless.
        stack.callback(
            lambda: print(
                f"{report.accepted:,} {'valid' if args.dry_run else 'accepted'}, "
                f"{report.duplicates:,} duplicates, {report.rejected:,} rejected",
                flush=True,
            )
        )
        send(
            read(stream, chosen, given),
            chosen,
            client=None if args.dry_run else stack.enter_context(Client(args.service, retries=5)),
            report=report,
            on_progress=lambda: progress(f"{report.calls:,} calls"),
        )
    if args.dry_run:
        say(f"{report.failures:,} of {report.accepted:,} calls failed")
    if not report.accepted + report.duplicates:
        say(
            f"no call was read: {args.file} holds {contents(beginning)}; if that is a format that "
            "is read, name it with --format (see --help)"
        )
        return 1
    return 1 if report.rejected else 0


def _import_archive(args: argparse.Namespace, stream: io.BufferedReader) -> int:
    from service.archive import STDIO, AlreadyImportedError, ArchiveReader, unpacked

    settings = start(args)
    if args.dry_run or args.file != STDIO:
        say("checking the archive before anything is stored")
        with unpacked(args.file) as whole:
            reader = ArchiveReader(stream if args.file == STDIO else whole)
            for _ in reader.lines():
                pass
    if args.dry_run:
        made = reader.header
        _print_counts(reader.counts)
        say(f"the archive is whole: made {made.made_at:%Y-%m-%d %H:%M} UTC from {made.store}")
        return 0
    try:
        counts = run(settings, _restore(settings, stream))
    except AlreadyImportedError as done:
        say(f"{done}, whole: nothing to do")
        return 0
    _print_counts(counts)
    say(
        "the archive is in the store; what it teaches is learned, and its vectors are made, by "
        "`aftercall serve` or `aftercall worker`"
    )
    return 0


def _print_counts(counts: "dict[str, int]") -> None:
    for kind, count in counts.items():
        print(f"{kind:<10} {count:>12,}", flush=True)


async def _restore(settings: "Settings", stream: io.BufferedReader) -> dict[str, int]:
    from aftercall.models import ALL_WORKSPACES
    from service.archive import ArchiveReader, import_store
    from service.lifecycle import COMMAND_PATIENCE_S
    from service.stores import opened_store

    reader, progress = ArchiveReader(stream), seldom(say)
    async with opened_store(settings, patience_s=COMMAND_PATIENCE_S) as store:
        counts = await import_store(
            store, reader, on_records=lambda kind, done: progress(f"{kind}: {done:,} stored")
        )
    await note(settings, ALL_WORKSPACES, "store.import", reader.header.id)
    return counts


command = Command(
    "import",
    "record calls from a file in a running service, or restore an `aftercall export`",
    _add_arguments,
    _run,
)
