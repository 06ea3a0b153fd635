"""Being a process: standard streams, signals, a port and a log, for all that serve.

uvicorn is imported where a server is made, so that this module needs nothing but Python.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aftercall.errors import ConfigurationError

if TYPE_CHECKING:
    import uvicorn

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[list[signal.Signals]]:
    """SIGTERM and SIGINT call `end`; which ones came. Must be entered in the event loop."""
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def handle_signal(number: signal.Signals) -> None:
        received.append(number)
        end()

    for number in _SIGNALS:
        loop.add_signal_handler(number, handle_signal, number)
    try:
        yield received
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def exit_code(received: list[signal.Signals]) -> int:
    """Return the exit code of an ordered end: 0, or what shells expect after SIGINT."""
    return 128 + signal.SIGINT if signal.SIGINT in received else 0


@contextmanager
def gated_stdin() -> Iterator[Callable[[], None]]:
    """Standard input that can be ended, by calling what is given.

    MCP's stdio server reads it in a thread, and a thread that waits in `read` cannot be called off:
    after SIGTERM the process would stay until its client states something. So descriptor 0 becomes
    the end of a pipe of ours. Closing the pipe looks to the server like its client leaving, which
    is the one way of ending that every part of it handles well.
    """
    source = os.dup(0)
    reading_end, writing_end = os.pipe()
    os.dup2(reading_end, 0)
    os.close(reading_end)

    def end_process() -> None:
        # Not closed but replaced: the thread may write, and a closed number could be another file.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, writing_end)
        os.close(nowhere)

    def pass_on() -> None:
        try:
            while chunk := os.read(source, 1 << 16):
                left = memoryview(chunk)
                while left:
                    left = left[os.write(writing_end, left) :]
        except OSError:
            pass  # the terminal has gone, or the server does not read any more
        end_process()

    threading.Thread(target=pass_on, name="aftercall-stdin", daemon=True).start()
    try:
        yield end_process
    finally:
        end_process()


def log_to_stderr(*, verbose: bool) -> None:
    """Everything is logged to standard error: on stdio, standard output belongs to MCP."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it would show what is asked


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):  # the latter for what the IDNA codec takes for no host name
        raise ConfigurationError(f"{host} is not an address; try --host 127.0.0.1") from None
    # The protocol is named because asyncio switches Nagle's algorithm off only where it sees TCP;
    # with it on, every answer waits some 40 ms for a delayed acknowledgement.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Two processes may bind one port as long as neither listens, so only this settles it.
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"port {port} needs privileges; choose one above 1023 with --port"
            if isinstance(error, PermissionError)
            else f"cannot listen on {host}:{port}: {error.strerror or error}; "
            "does another aftercall run (see `aftercall status`)? one that a gateway started ends "
            "five minutes after the last gateway left; choose another port with --port"
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return where the socket can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def http_server(app: Any, **settings: Any) -> "uvicorn.Server":
    """Return an HTTP server that leaves signals to us; `should_exit` ends it.

    uvicorn's own handlers raise the signal again after shutdown, which would end us with -15. The
    settings are those of `uvicorn.Config`.
    """
    import uvicorn  # noqa: PLC0415  # see the module

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(uvicorn.Config(app, **settings))
