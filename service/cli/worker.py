"""`aftercall worker`: learns from what services record, on server stores."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from aftercall.cli import Command
from service.cli.options import add_common, say_line, start

if TYPE_CHECKING:
    from service.stores import Stores

_USAGE = 2
_LONG_HELP = """Learns from what `aftercall serve` records and makes its vectors, on MongoDB and
Qdrant. Run as many as are needed beside any number of services; they share out the workspaces among
them, and each execution is learned from once. Services that are to leave learning to workers are
started with AFTERCALL_INDEXING_HERE=false. The embedded stores need no worker: the service learns
by itself."""
_EMBEDDED = (
    "there is nothing for a worker to do: the log store is the embedded one, whose folder is for "
    "one process at a time, and `aftercall serve` learns by itself. Set AFTERCALL_MONGO_URI and "
    "AFTERCALL_QDRANT_URL to work on servers"
)
_EMBEDDED_INDEX = (
    "the vectors are in the embedded index, whose folder is for one process at a time, so a worker "
    "cannot write them. Set AFTERCALL_QDRANT_URL to a Qdrant server that all processes share"
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    add_common(parser)


def _run_worker(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    import asyncio  # heavy imports wait: `aftercall --help` loads this module

    import uvloop

    from ingest.pacing import SWITCH_S
    from service.lifecycle import shorten_errors
    from service.server import run_worker
    from service.version import VERSION

    settings = start(args)
    if settings.mongo.uri is None or settings.qdrant.url is None:
        say_line(_EMBEDDED if settings.mongo.uri is None else _EMBEDDED_INDEX)
        return _USAGE
    sys.setswitchinterval(SWITCH_S)

    def note_ready(stores: "Stores") -> None:
        print(
            f"aftercall {VERSION} worker ready · log store {stores.store.name} · "
            f"vector index {stores.index.name} · embedder {stores.embedder.name} · "
            f"{time.perf_counter() - started:.1f} s",
            flush=True,
        )

    with (
        shorten_errors(settings.data.dir),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run_worker(settings, note_ready))
    return 0


command = Command(
    "worker",
    "learn from what services record, where stores are servers; run as many as needed",
    _add_arguments,
    _run_worker,
)
