"""`aftercall mcp` as a process: MCP over its standard streams until the client leaves."""

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from mcp.server.stdio import stdio_server

from aftercall import AsyncClient
from aftercall.gateway.stdin_gate import StdinGate
from aftercall.mcp_server.caller import Caller
from aftercall.mcp_server.server import build_server, client_name

_CONNECT_TIMEOUT_S = 1.0
"""A service that is away must not hold a model up for long."""

_RETRIES = 1
"""For a connection that the service closed meanwhile; what else helps is the model's own retry."""


def serve(service: str, *, agent: str | None = None, verbose: bool = False) -> int:
    """Serve until standard input ends, or SIGTERM or SIGINT comes; the exit code.

    Args:
        service: where the service is; it need not be there yet, and may come and go.
        agent: the name of callers that give none; the MCP client's own name when None.
        verbose: log more, to standard error.

    Raises:
        ConfigurationError: `service` is no URL.
    """
    # Standard output belongs to MCP.
    level = logging.INFO if verbose else logging.WARNING
    line = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level, stream=sys.stderr, format=line)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would tell what is asked
    return asyncio.run(_serve(service, agent))


async def _serve(service: str, agent: str | None) -> int:
    # The process is one client's, so it is a session.
    session_id = str(uuid4())
    async with AsyncClient(
        service, connect_timeout_s=_CONNECT_TIMEOUT_S, retries=_RETRIES
    ) as client:
        server = build_server(
            client,
            who_calls=lambda context: Caller(
                agent or client_name(context) or "unknown", session_id
            ),
        )
        with StdinGate() as gate, _ended_by_signals(gate) as received:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
            return 128 + signal.SIGINT if signal.SIGINT in received else 0


@contextmanager
def _ended_by_signals(gate: StdinGate) -> Iterator[list[signal.Signals]]:
    """SIGTERM and SIGINT end the input, as if the client had left; which ones came."""
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def handle(number: signal.Signals) -> None:
        received.append(number)
        gate.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    try:
        yield received
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
