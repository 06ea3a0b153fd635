"""`aftercall export FILE`: all that the log store holds, as one file."""

import argparse
from typing import TYPE_CHECKING

from aftercall.cli import Command
from service.cli.options import add_common, note, run, say, seldom, start

if TYPE_CHECKING:
    from service.archive import Header
    from service.settings import Settings

_LONG_HELP = """Write all that the log store holds into one file, which `aftercall import` puts
into an empty store of any kind. It may run beside a running service. The file holds what agents
sent (secrets were masked before they were stored) and is readable by its owner only. Vectors are
no part of it: they are made anew from what is."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    parser.add_argument(
        "file", metavar="FILE",
        help="packed by gzip; - writes to stdout",
    )  # fmt: skip
    parser.add_argument("--workspace", metavar="NAME", help="only this one; all if left out")
    add_common(parser)


def _run(args: argparse.Namespace) -> int:
    settings = start(args)
    header, counts = run(settings, _export(settings, args.file, args.workspace))
    for kind, count in counts.items():
        say(f"{kind:<10} {count:>12,}")
    say(f"wrote {args.file} (archive {header.id}); it holds what agents sent")
    return 0


async def _export(
    settings: "Settings", name: str, workspace: str | None
) -> "tuple[Header, dict[str, int]]":
    from aftercall.models import ALL_WORKSPACES  # heavy imports wait: `--help` loads this module
    from service.archive import ArchiveWriter, written
    from service.lifecycle import COMMAND_PATIENCE_S
    from service.stores import opened_store

    progress = seldom(say)
    async with opened_store(settings, beside=True, patience_s=COMMAND_PATIENCE_S) as store:
        writer = ArchiveWriter(store, workspace=workspace)
        with written(name) as stream:
            lines = writer.lines(lambda kind, done: progress(f"{kind}: {done:,} written"))
            async for line in lines:
                stream.write(line)
    action = "store.export" if workspace is None else "workspace.export"
    await note(settings, workspace or ALL_WORKSPACES, action, writer.header.id)
    return writer.header, writer.counts


command = Command(
    "export",
    "write all that the log store holds into one file, for `aftercall import`",
    _add_arguments,
    _run,
)
