"""Running the gateway as a process: streams or HTTP, signals, and an orderly end."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, Literal

import uvicorn
from fastmcp import FastMCP

from aftercall import AsyncClient, Recorder
from aftercall.errors import ConfigurationError
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway
from aftercall.gateway.stdin_gate import StdinGate
from aftercall.reflection.observers import CallObserver
from aftercall.reflection.retry_rules import ReflectionPolicy

PATH = "/mcp"

_CONNECT_TIMEOUT_S = 1.0  # a service that is away must not hold a failing call up for long
_LAST_SPANS_S = 2.0  # as long as running calls get
_INTERRUPTED = 128 + signal.SIGINT

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """How a gateway process is run."""

    service: str
    policy: ReflectionPolicy
    transport: Literal["stdio", "http"] = "stdio"
    host: str = "127.0.0.1"
    port: int = 8800
    agent: str | None = None
    verbose: bool = False
    traces: bool = False
    """Whether spans of the attempts are sent where OpenTelemetry's own variables say."""


def serve(config: GatewayConfig, options: GatewayOptions) -> int:
    """Run until the client leaves or a signal comes; the exit code.

    Raises:
        ConfigurationError: the address cannot be listened on, or `options.service` is no URL.
    """
    _configure_logging(verbose=options.verbose)
    with _observed(options) as observers:
        return asyncio.run(_serve(config, options, observers))


@contextlib.contextmanager
def _observed(options: GatewayOptions) -> Iterator[list[CallObserver]]:
    """Who looks on: nobody, unless spans are wanted."""
    if not options.traces:
        yield []
        return
    try:
        from aftercall.tracing import TracingObserver  # noqa: PLC0415  # the extra
        from aftercall.tracing.exporting import exporting  # noqa: PLC0415  # as above
    except ImportError:
        # The variables may be meant for other programs, so this is no reason to stop.
        _logger.warning(
            "no spans are sent: OpenTelemetry is not installed; "
            "run `pip install 'aftercall[gateway,otel]'`"
        )
        yield []
        return
    service = {"service.name": "aftercall-gateway", "service.version": version("aftercall")}
    with exporting(service, url=None, sampled_share=None, close_within_s=_LAST_SPANS_S) as provider:
        yield [TracingObserver(provider)]


async def _serve(
    config: GatewayConfig, options: GatewayOptions, observers: Sequence[CallObserver]
) -> int:
    # No retries of its own: a failing call would wait for them, and registration has its own.
    client = AsyncClient(options.service, retries=0, connect_timeout_s=_CONNECT_TIMEOUT_S)
    recorder = Recorder(base_url=options.service)
    try:
        async with client:
            gateway = build_gateway(
                config,
                client=client,
                recorder=recorder,
                policy=options.policy,
                agent=options.agent,
                observers=observers,
            )
            if options.transport == "stdio":
                return await _serve_stdio(gateway)
            return await _serve_http(gateway, options)
    finally:
        await asyncio.to_thread(recorder.close)


async def _serve_stdio(gateway: FastMCP[Any]) -> int:
    with StdinGate() as gate, _Signals(gate.end) as signals:
        await gateway.run_stdio_async(show_banner=False)
        return signals.exit_code


async def _serve_http(gateway: FastMCP[Any], options: GatewayOptions) -> int:
    with _listen(options.host, options.port) as listener:
        host, port = listener.getsockname()[:2]
        is_local = ip_address(host).is_loopback
        if not is_local:
            _logger.warning(
                "%s can be reached from other machines, and the gateway asks for no password; put "
                "a proxy that does in front of it",
                host,
            )
        # Against DNS rebinding: on this machine, only its own names are answered to.
        names = [options.host, host] if is_local else None
        app = gateway.http_app(path=PATH, host_origin_protection="auto", allowed_hosts=names)
        server = _Server(
            uvicorn.Config(
                app,
                lifespan="on",
                ws="none",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=2,
            )
        )
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"aftercall: gateway at http://{shown}:{port}{PATH}\n")
        with _Signals(server.stop) as signals:
            await server.serve(sockets=[listener])
            return signals.exit_code


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handling, which kills the process before we have cleaned up."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        self.should_exit = True


class _Signals(contextlib.AbstractContextManager["_Signals"]):
    """Turns SIGTERM and SIGINT into one call of `stop`."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.exit_code = 0

    def __enter__(self) -> "_Signals":
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._received, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def _received(self, number: signal.Signals) -> None:
        if number == signal.SIGINT:
            self.exit_code = _INTERRUPTED
        self._stop()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's algorithm off only where it sees TCP;
    # with it on, every answer waits some 40 ms for a delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with "
            "--host and --port"
        ) from error
    return listener


def _configure_logging(*, verbose: bool) -> None:
    """Everything goes to standard error: on stdio, standard output belongs to MCP."""
    level = logging.INFO if verbose else logging.WARNING
    line = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level, stream=sys.stderr, format=line)
    # FastMCP decorates its own log for a terminal; here it goes the way of all others.
    of_fastmcp = logging.getLogger("fastmcp")
    of_fastmcp.handlers.clear()
    of_fastmcp.propagate = True
    of_fastmcp.setLevel(level)
