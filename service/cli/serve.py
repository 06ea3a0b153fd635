"""`aftercall serve`: the service, until a signal stops it."""

import argparse
import contextlib
import ctypes
import gc
import sys
import time

from aftercall.cli import Command, read_name, read_number
from service.cli.options import add_common, say_line, start


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", type=read_name, help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 picks one (8799)")
    parser.add_argument(
        "--linger",
        type=read_number(0, _LONGEST_LINGER_S, whole=False),
        metavar="SECONDS",
        help="stop this long after the last `aftercall gateway` on this machine left; gateways "
        "start the service with it (default: stay)",
    )
    add_common(parser)


_LONGEST_LINGER_S = 86_400 * 365
"""A year; who wants longer leaves it out."""
_MALLOC = {-8: 2, -3: 1_000_000}
"""Parameters of glibc's `mallopt`: two arenas, for what a thread freed in its own serves no other
(20 MiB while a history is recorded); and what is larger goes back when it is freed (50 MiB of a
model)."""


def _run_serve(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    gc.disable()  # what is imported stays; `settle_memory` enables it
    with contextlib.suppress(AttributeError):  # other libraries of C have no such call
        for option, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
    settings = start(args)
    import asyncio  # heavy imports wait: `aftercall --help` loads this module
    from concurrent.futures import ThreadPoolExecutor

    from embeddings.embedders import open_embedder

    # The model is loaded while the rest is imported: a fifth of a second.
    model = settings.embedding
    opening = open_embedder(model.model, cache_size=model.cache_size, threads=model.threads)
    embedder = ThreadPoolExecutor(1).submit(asyncio.run, opening)

    import uvloop

    from aftercall.process import bind_socket, url_of
    from aftercall.running import listed_service
    from ingest.pacing import SWITCH_S
    from service.context import Context
    from service.databases import where_store_is
    from service.environment import check_serving
    from service.lifecycle import shorten_errors
    from service.server import serve_app
    from service.stores import where_index_is
    from service.version import VERSION

    sys.setswitchinterval(SWITCH_S)
    check_serving(settings)
    listener = bind_socket(settings.server.host, settings.server.port)
    if settings.server.allow_strangers and not settings.server.is_local:
        say_line(
            f"warning: {settings.server.host} can be reached from other machines, and while there "
            "is no key anybody there may read and write"
        )

    def note_ready(context: Context) -> None:
        store, index = context.store.name, context.index.name
        if settings.mongo.uri is not None:
            store += f" at {where_store_is(settings)}"
        if settings.qdrant.url is not None:
            index += f" at {where_index_is(settings)}"
        print(
            f"aftercall {VERSION} ready at {url_of(listener)} · data {settings.data.dir} · "
            f"log store {store} · vector index {index} · embedder {context.embedder.name} · "
            f"{time.perf_counter() - started:.1f} s",
            flush=True,
        )

    url = url_of(listener)
    with (
        listener,
        listed_service(url) if settings.server.is_local else contextlib.nullcontext(),
        shorten_errors(settings.data.dir),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(
            serve_app(settings, listener, note_ready, linger_s=args.linger, embedder=embedder)
        )
    return 0


command = Command("serve", "run the service", _add_arguments, _run_serve)
