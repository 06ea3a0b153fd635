"""`aftercall import PATH...`: calls into a running service, or an archive into a store."""

import argparse
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.cli import Command
from aftercall.cli.status import add_service
from service.cli.options import (
    add_common,
    note_in_audit,
    run,
    say_line,
    say_seldom,
    settings_from,
    start,
)

if TYPE_CHECKING:
    from aftercall.client import Client
    from ingest.formats.calls import Given, Placed
    from ingest.formats.detection import Detection
    from ingest.formats.transcripts import Transcripts
    from service.imports import ImportReport
    from service.settings import Settings
    from service.sources import Source

STDIO = "-"
_FIRST_LOOK = 4096
"""Bytes of the beginning that show an archive from executions."""
_LONG_HELP = """Records the calls of each PATH in the running service at --service, as if agents
sent them. A PATH is a file, a folder with all below it, or a glob. A file may hold executions, one
JSON object a line; OTLP traces as JSON; exports of LangSmith and Langfuse; logs of MCP Inspector
and of desktop clients; or sessions, messages, trajectories and spans of agents and frameworks:
Claude Code (below ~/.claude/projects), Codex, Gemini CLI, opencode, Cursor, Copilot, Cline,
OpenHands, LangChain, Pydantic AI, the Vercel AI SDK, OpenAI, Anthropic, Bedrock, and others. The
beginning of a file shows which it is, unless --format says so. Files may be gzip, zip or UTF-16. An
archive made by `aftercall export` is restored as a whole into the empty store that the settings
name (--data-dir, or AFTERCALL_MONGO_URI), while no service uses it; run it again if it was
interrupted. Importing a file twice records nothing twice."""
_TITLES = {
    "executions": "executions",
    "otlp": "OTLP traces",
    "langsmith": "runs of LangSmith",
    "langfuse": "observations of Langfuse",
    "transcripts": "transcripts",
    "mcp": "a log of MCP messages",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    parser.add_argument("paths", metavar="PATH", nargs="+", help="what to import; - reads stdin")
    parser.add_argument(
        "--format",
        choices=("auto", *_TITLES),
        default="auto",
        help="what the files are; auto (the default) looks at how they begin",
    )
    add_service(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file; nothing is sent or stored"
    )
    said = parser.add_argument_group("for transcripts and MCP logs")
    said.add_argument("--agent", metavar="NAME", help="who made the calls, whatever the files say")
    said.add_argument(
        "--error-prefix",
        action="append",
        default=[],
        type=_name_prefix,
        metavar="TEXT",
        help="results in transcripts that begin so are failures, such as 'Error:'; may be "
        "given several times",
    )
    said.add_argument(
        "--error-pattern",
        type=_read_pattern,
        metavar="REGEX",
        help="results in transcripts that it is found in are failures. Without either option, "
        "results that begin as errors do are taken for failures, and marked so; those of a tool "
        "that only reads, where they quote what was sent or begin as MCP servers' failures do",
    )
    add_common(parser)


def _run_import(args: argparse.Namespace) -> int:
    from service.archive import is_archive, open_unpacked  # `--help` loads this module
    from service.sources import expand_paths

    sources = expand_paths(args.paths)
    if len(sources) == 1 and args.format == "auto":
        with open_unpacked(sources[0].name) as stream:
            if is_archive(stream.peek(_FIRST_LOOK)):
                return _import_archive(args, sources[0].name, stream)
            if sources[0].name == STDIO:  # it can be opened once
                return _import_calls(args, sources, stream)
    return _import_calls(args, sources, None)


def _error_pattern(prefixes: list[str], pattern: str | None) -> re.Pattern[str] | None:
    parts = [rf"\A\s*{re.escape(each)}" for each in prefixes]
    parts += [] if pattern is None else [f"(?:{pattern})"]
    return re.compile("|".join(parts)) if parts else None


def _read_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"is no regular expression: {error}") from None
    return text


def _name_prefix(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("every result begins with nothing: give a text")
    return text.lstrip()


def _import_calls(
    args: argparse.Namespace, sources: "list[Source]", stdin: io.BufferedReader | None
) -> int:
    from aftercall.client import Client
    from service.imports import ImportReport

    with ExitStack() as stack:
        report = ImportReport(say_line)
        # The last line always has the counts: importing again is harmless.
        stack.callback(
            lambda: print(
                f"{report.accepted:,} {'valid' if args.dry_run else 'accepted'}, "
                f"{report.duplicates:,} duplicates, {report.rejected:,} rejected",
                flush=True,
            )
        )
        client = None if args.dry_run else stack.enter_context(Client(args.service, retries=5))
        files = _Files(args, report, client, is_one=len(sources) == 1)
        for source in sources:
            files.take_files(source, stdin)
        files.end_folder()
        for line in files.write_summary():
            say_line(line)
    if args.dry_run:
        say_line(f"{report.failures:,} of {report.accepted:,} calls failed")
    if report.accepted + report.duplicates:
        return 0
    if len(sources) == 1 and files.unread:
        say_line(
            f"no call was read: {files.unread[0]}; if that is a format that is read, name it with "
            "--format (see --help)"
        )
    else:
        say_line("no call was read")
    return 1


class _Files:
    """Reads files one after another, and counts their kinds."""

    def __init__(
        self,
        args: argparse.Namespace,
        report: "ImportReport",
        client: "Client | None",
        *,
        is_one: bool,
    ) -> None:
        from service.imports import Kinds

        self._args, self._report, self._client, self._is_one = args, report, client, is_one
        self._guessed: Counter[str] = Counter()
        self._make_kinds = Kinds
        self.kinds: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.unread: list[str] = []
        """Contents of files without any call."""
        days = _retention_days(args) if args.dry_run else 0
        self._retention = timedelta(days=days) if days else None
        self._pattern = _error_pattern(args.error_prefix, args.error_pattern)
        self._progress = say_seldom(say_line)
        self._folder = ""
        self._halves: Transcripts | None = None
        """Files of the folder that are half a call each."""

    def take_files(self, source: "Source", stdin: io.BufferedReader | None) -> None:
        """Read a file; a damaged one among others is reported."""
        from service.archive import ArchiveError
        from service.sources import open_source

        if stdin is not None:
            self._read_file(stdin, source.name)
            return
        try:
            with open_source(source) as contents:
                for name, stream in contents:
                    self._read_file(stream, name)
        except ArchiveError as error:
            if self._is_one:
                raise
            self._report.reject_piece(source.name, str(error))

    def end_folder(self) -> None:
        """Read what is still open at the end of a folder with one file for each event."""
        from ingest.formats.detection import Detection

        if self._halves is not None:
            self._report.prefix = f"{self._folder}, "
            self._send_calls(
                self._halves.finish_file(), Detection("transcripts", "document"), self._folder
            )
        self._halves = None

    def write_summary(self) -> Iterator[str]:
        """Return the lines to show at the end."""
        for title, number in self.kinds.most_common():
            if not self._is_one or title not in _TITLES.values():
                yield f"{number:,} {'file looks' if number == 1 else 'files look'} like {title}"
        if not self._is_one:
            for ending, number in self.unknown.most_common(10):
                kind = f"{ending} {'file' if number == 1 else 'files'}"
                yield f"{number:,} {kind} passed over: of no kind that is read"
        yield from self._report.write_summary(self._guessed)

    def _read_file(self, stream: io.BufferedReader, name: str) -> None:
        from ingest.formats.calls import Given
        from ingest.formats.detection import LOOK_BYTES, describe_contents, look_at
        from service.archive import STDIO
        from service.imports import read_calls

        args, report = self._args, self._report
        beginning = stream.peek(LOOK_BYTES)[:LOOK_BYTES]
        chosen = look_at(beginning, None if args.format == "auto" else args.format)
        is_one_line = len(beginning) == LOOK_BYTES and b"\n" not in beginning  # which may show
        if not chosen.is_known and not is_one_line:
            if self._is_one:
                self.unread.append(f"{name} holds {describe_contents(beginning)}")
            self.unknown[Path(name).suffix or "other"] += 1
            return
        if self._is_one and chosen.format != "executions":
            say_line(f"reading {name} as {_TITLES[chosen.format]}")
        report.prefix = "" if self._is_one else f"{name}, "
        changed = None if name == STDIO else Path(name.partition("!")[0]).stat().st_mtime
        given = Given(
            at=datetime.now(UTC) if changed is None else datetime.fromtimestamp(changed, UTC),
            agent=args.agent or None,
            error_pattern=self._pattern,
        )
        kinds, before = self._make_kinds(guessed=self._guessed), report.calls
        is_one_value = len(beginning) < LOOK_BYTES and b"\n" not in beginning.strip()
        is_one_value |= chosen.shape == "document"
        halves = self._halves_of(name, given) if is_one_value else None
        self._send_calls(read_calls(stream, chosen, given, kinds, halves), chosen, name)
        title = next((form for form, _ in kinds.forms.most_common(1)), _TITLES[chosen.format])
        self.kinds[title] += 1
        if report.calls == before:
            self.unread.append(f"{name} holds {describe_contents(beginning)}")

    def _halves_of(self, name: str, given: "Given") -> "Transcripts":
        """Return the transcripts that take the half calls of a folder's files, in their order."""
        from ingest.formats.transcripts import Transcripts

        folder = str(Path(name).parent)
        if self._halves is None or folder != self._folder:
            self.end_folder()
            self._folder, self._halves = folder, Transcripts(given)
            self._halves.guesses.beginnings = self._guessed
        return self._halves

    def _send_calls(self, pieces: "Iterable[Placed]", chosen: "Detection", name: str) -> None:
        from service.imports import send_calls

        report = self._report
        send_calls(
            pieces,
            chosen,
            client=self._client,
            report=report,
            retention=self._retention,
            on_progress=lambda: self._progress(f"{report.calls:,} calls, in {name}"),
        )


def _retention_days(args: argparse.Namespace) -> float:
    """Return the days that a service with these settings keeps a call."""
    return settings_from(args).retention.days


def _import_archive(args: argparse.Namespace, name: str, stream: io.BufferedReader) -> int:
    from service.archive import AlreadyImportedError, ArchiveReader, open_unpacked

    settings = start(args)
    if args.dry_run or name != STDIO:
        say_line("checking the archive before anything is stored")
        with open_unpacked(name) as whole:
            reader = ArchiveReader(stream if name == STDIO else whole)
            for _ in reader.read_lines():
                pass
    if args.dry_run:
        made = reader.header
        _print_counts(reader.counts)
        say_line(f"the archive is whole: made {made.made_at:%Y-%m-%d %H:%M} UTC from {made.store}")
        return 0
    try:
        counts = run(settings, _restore_archive(settings, stream))
    except AlreadyImportedError as done:
        say_line(f"{done}, whole: nothing to do")
        return 0
    _print_counts(counts)
    say_line(
        "the archive is in the store; what it teaches is learned, and its vectors are made, by "
        "`aftercall serve` or `aftercall worker`"
    )
    return 0


def _print_counts(counts: "dict[str, int]") -> None:
    for kind, count in counts.items():
        print(f"{kind:<10} {count:>12,}", flush=True)


async def _restore_archive(settings: "Settings", stream: io.BufferedReader) -> dict[str, int]:
    from aftercall.models import ALL_WORKSPACES
    from service.archive import ArchiveReader, import_store
    from service.databases import opened_store
    from service.lifecycle import COMMAND_PATIENCE_S

    reader, progress = ArchiveReader(stream), say_seldom(say_line)
    async with opened_store(settings, patience_s=COMMAND_PATIENCE_S) as store:
        counts = await import_store(
            store, reader, on_records=lambda kind, done: progress(f"{kind}: {done:,} stored")
        )
    await note_in_audit(settings, ALL_WORKSPACES, "store.import", reader.header.id)
    return counts


command = Command(
    "import",
    "record calls from a file in a running service, or restore an `aftercall export`",
    _add_arguments,
    _run_import,
)
