"""`aftercall export FILE`: all that the log store holds, or its executions a line each."""

import argparse
from typing import TYPE_CHECKING, Any

from aftercall.cli import Command, read_name
from aftercall.errors import ConfigurationError
from service.cli.options import (
    add_common,
    add_force,
    note_in_audit,
    read_moment,
    refuse_existing,
    run,
    say_line,
    say_seldom,
    start,
)

if TYPE_CHECKING:
    from service.archive import Header
    from service.settings import Settings

_LONG_HELP = """Write all that the log store holds into one file, which `aftercall import` puts
into an empty store of any kind. It may run beside a running service. The file holds what agents
sent (secrets were masked before they were stored) and is readable by its owner only. Vectors are
no part of it: they are made anew from what is. With --flat it holds executions alone, one JSON
object a line, which pandas, DuckDB and `aftercall import` read; it is packed if its name ends so:
.gz. Input schemas are in an archive alone."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    parser.add_argument(
        "file", metavar="FILE",
        help="packed by gzip; - writes to stdout",
    )  # fmt: skip
    add_force(parser)
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        type=read_name,
        help="only this one; all if left out (--flat: default)",
    )
    flat = parser.add_argument_group("one execution a line")
    flat.add_argument("--flat", action="store_true", help="executions alone, in the wire's form")
    flat.add_argument("--since", metavar="TIME", type=read_moment, help="calls from this time on")
    flat.add_argument("--until", metavar="TIME", type=read_moment, help="calls before this time")
    flat.add_argument("--tool", metavar="[SERVER/]NAME", type=read_name, help="calls of this tool")
    flat.add_argument("--outcome", choices=("success", "failure"))
    add_common(parser)


def _run_export(args: argparse.Namespace) -> int:
    chosen = {name: getattr(args, name) for name in ("since", "until", "tool", "outcome")}
    if not args.flat and any(chosen.values()):
        raise ConfigurationError(
            "an archive holds all of a store: --since, --until, --tool and --outcome go with --flat"
        )
    refuse_existing(args)
    settings = start(args)
    if args.flat:
        number = run(settings, _export_flat(settings, args.file, args.workspace, chosen))
        say_line(f"wrote {args.file}: {number:,} executions, which hold what agents sent")
        return 0
    header, counts = run(settings, _export_archive(settings, args.file, args.workspace))
    for kind, count in counts.items():
        say_line(f"{kind:<10} {count:>12,}")
    say_line(f"wrote {args.file} (archive {header.id}); it holds what agents sent")
    return 0


async def _export_archive(
    settings: "Settings", name: str, workspace: str | None
) -> "tuple[Header, dict[str, int]]":
    from aftercall.models import ALL_WORKSPACES  # heavy imports wait: `--help` loads this module
    from service.archive import ArchiveWriter, open_written
    from service.databases import opened_store
    from service.lifecycle import COMMAND_PATIENCE_S

    progress = say_seldom(say_line)
    async with opened_store(settings, beside=True, patience_s=COMMAND_PATIENCE_S) as store:
        writer = ArchiveWriter(store, workspace=workspace)
        with open_written(name) as stream:
            lines = writer.write_lines(lambda kind, done: progress(f"{kind}: {done:,} written"))
            async for line in lines:
                stream.write(line)
    action = "store.export" if workspace is None else "workspace.export"
    await note_in_audit(settings, workspace or ALL_WORKSPACES, action, writer.header.id)
    return writer.header, writer.counts


async def _export_flat(
    settings: "Settings", name: str, workspace: str | None, chosen: dict[str, Any]
) -> int:
    """Write the executions of a workspace; return how many there were."""
    from service.archive import open_written, refuse_half_imported
    from service.context import open_redactor
    from service.databases import opened_store
    from service.flat import Chosen, flat_lines
    from service.keys import DEFAULT_WORKSPACE
    from service.lifecycle import COMMAND_PATIENCE_S

    workspace = workspace or DEFAULT_WORKSPACE
    number, progress = 0, say_seldom(say_line)
    async with opened_store(settings, beside=True, patience_s=COMMAND_PATIENCE_S) as store:
        await refuse_half_imported(store.metadata)
        with open_written(name, packed=name.endswith(".gz")) as stream:
            pages = flat_lines(store.events, workspace, Chosen(**chosen), open_redactor(settings))
            async for lines in pages:
                stream.write("".join(f"{line}\n" for line in lines).encode())
                number += len(lines)
                progress(f"{number:,} executions written")
    await note_in_audit(settings, workspace, "workspace.export", "flat")
    return number


command = Command(
    "export",
    "write all that the log store holds, or its executions a line each, into one file",
    _add_arguments,
    _run_export,
)
