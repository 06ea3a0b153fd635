"""Processes: one that serves, from its socket to its last flush, and one that learns and embeds.

Any number of workers may run beside any number of services on the same server stores. They share
out the workspaces by leases; one that ends or is killed is followed by the others.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from aftercall.errors import AftercallError, ConfigurationError
from aftercall.process import http_server
from aftercall.stages import measured_by
from retrieval.log import counts
from service.app import create_app
from service.connections import KEEP_ALIVE_S, bounded_protocol
from service.context import Context, Lifecycle, open_context
from service.learning import open_learning
from service.lifecycle import (
    COMMAND_PATIENCE_S,
    OnPhase,
    done_or_stopped,
    first,
    settle_memory,
    stopped_by_signals,
    unused,
)
from service.logs import log_event
from service.settings import Settings
from service.stores import Stores, open_stores
from service.version import VERSION


@contextmanager
def traced(settings: Settings) -> Iterator[Callable[[ASGIApp], ASGIApp]]:
    """Stages are measured until the block ends, and an app can be given a span of each request.

    Nothing is measured, and an app stays as it is, unless `tracing.url` is set.
    """
    url = settings.tracing.url
    if url is None:
        yield lambda app: app
        return
    try:
        from aftercall.span_export import (  # noqa: PLC0415  # only where spans are wanted
            exporting,
        )
        from service.spans import RequestSpans, StageSpans  # noqa: PLC0415  # as above
    except ImportError as error:
        raise ConfigurationError(
            "AFTERCALL_TRACING_URL is set, and OpenTelemetry is not installed: run "
            "`pip install 'aftercall-service[otel]'`, or take the variable away"
        ) from error
    service = {"service.name": "aftercall", "service.version": VERSION}
    with exporting(
        service,
        url=url,
        sampled_share=settings.tracing.sampled_share,
        close_within_s=settings.server.shutdown_s,
    ) as provider:
        tracer = provider.get_tracer("aftercall-service", VERSION)
        stages = StageSpans(tracer)
        with measured_by(stages):
            yield lambda app: RequestSpans(app, tracer, stages)


logger = logging.getLogger(__name__)


async def serve(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[Context], None],
    *,
    linger_s: float | None = None,
) -> None:
    """Serve on `listener` until SIGINT or SIGTERM; then finish, flush and close.

    With `linger_s` also until no gateway has used it for so many seconds.

    It listens at once, so that `/healthz` answers while models load; all else is 503 until
    `on_ready` is called. A second signal ends the process where it stands, which is safe: what was
    acknowledged is durable.
    """
    lifecycle = Lifecycle(linger_s=linger_s)
    with traced(settings) as with_spans:
        server = http_server(
            with_spans(create_app(settings, lifecycle)),
            http=bounded_protocol(settings.limits),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(settings.server.shutdown_s)),
        )
        with stopped_by_signals() as stopping:
            serving = asyncio.create_task(server.serve(sockets=[listener]), name="uvicorn")
            try:
                async with contextlib.AsyncExitStack() as stack:
                    if linger_s is not None:
                        leaving = asyncio.create_task(unused(settings.data.dir, linger_s))
                        leaving.add_done_callback(lambda _: stopping.set())
                        stack.callback(leaving.cancel)
                    opening = open_context(settings, _phases(lifecycle))
                    context = await done_or_stopped(stopping, stack.enter_async_context(opening))
                    stack.callback(lifecycle.stopping)
                    if context is not None:
                        lifecycle.context = context
                        settle_memory()
                        on_ready(context)
                        await first(stopping, serving)
                    lifecycle.phase = "stopping"
                    server.should_exit = True
                    await serving
            finally:
                server.should_exit = True
                await serving
    log_event(logger, "stopped")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop of uvloop, where there is one for the platform."""
    try:
        import uvloop  # noqa: PLC0415  # not on Windows
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class StandsStillError(AftercallError):
    """It cannot learn as it was started; the message names the cure."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What a worker that was to end by itself has done."""

    records: int
    pending: int
    """Left when it ended: new ones, and what other processes have in their hands."""


async def work(settings: Settings, on_ready: Callable[[Stores], None]) -> None:
    """Learn until SIGINT or SIGTERM; then end the batch at hand and give back what is claimed.

    A server that is away is waited for. A second signal ends the process where it stands, which is
    safe: a batch is committed whole or not at all.
    """

    async def learn() -> None:
        async with (
            open_stores(settings, _phases(Lifecycle())) as stores,
            open_learning(settings, stores) as learning,
        ):
            settle_memory()
            if learning.can_learn:
                learning.indexer.start()
            on_ready(stores)
            await asyncio.Event().wait()

    with traced(settings), stopped_by_signals() as stopping:
        await done_or_stopped(stopping, learn())
    log_event(logger, "stopped")


async def work_once(settings: Settings) -> Worked:
    """Learn what is queued, and end.

    What other processes that live have claimed is left to them.
    """
    async with (
        open_stores(settings, _phases(Lifecycle()), patience_s=COMMAND_PATIENCE_S) as stores,
        open_learning(settings, stores) as learning,
    ):
        if not learning.can_learn:
            raise StandsStillError(learning.problem)
        records = await learning.indexer.catch_up()
        return Worked(records, (await counts(stores.store)).pending)


def _phases(lifecycle: Lifecycle) -> OnPhase:
    """Logs what is being done; what is waited for is told again and again, and logged once."""

    def phase(what: str) -> None:
        if what != lifecycle.phase:
            lifecycle.phase = what
            log_event(logger, what)

    return phase
