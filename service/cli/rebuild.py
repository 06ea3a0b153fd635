"""`aftercall rebuild`: learn everything again from the log, then switch to it."""

import argparse

from aftercall.cli import Command
from service.cli.options import add_common, run, say_line, start

_DESCRIPTION = """\
Learns vectors, profiles, rules and statistics again from the log, beside those in use, and then
switches to them at once. The log does not change. A running service keeps answering and recording;
after the switch it learns from what came in meanwhile.

To change the embedding model, run it with the new one:
  AFTERCALL_EMBEDDING_MODEL=other aftercall rebuild
and restart every service with the same setting. Until then a service answers from its old vectors,
learns nothing, and says so in `aftercall status`.

If it is killed, nothing is lost: run it again.
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_common(parser)


def _run_rebuild(args: argparse.Namespace) -> int:
    from service.databases import where_store_is
    from service.rebuild import (
        rebuild_store,
    )  # heavy imports wait: `aftercall --help` loads this module

    settings = start(args)
    done = run(settings, rebuild_store(settings, say_line))
    print(
        f"aftercall: rebuilt {where_store_is(settings)} from {done.records:,} records: "
        f"{done.documents:,} documents, {done.vectors:,} vectors, generation "
        f"{done.generation}, {done.seconds:,.1f} s",
        flush=True,
    )
    return 0


command = Command(
    "rebuild",
    "learn everything again from the log, for example after changing the embedding model",
    _add_arguments,
    _run_rebuild,
)
