"""A TCP proxy between a service and its database, which delays, refuses and swallows for real."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["pass", "refuse", "swallow"]
"""`pass` carries bytes; `refuse` closes every connection at once, those that are open too;
`swallow` takes bytes and answers nothing, as a machine that hangs."""


@dataclass(eq=False)
class TcpProxy:
    """Carries connections to a port of this machine; its attributes may be set at any time."""

    target_port: int
    port: int = 0
    mode: Mode = "pass"
    delay_s: float = 0.0
    """Added to every chunk of an answer."""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def refuse(self) -> None:
        """Close what is open, and every new connection at once."""
        self.mode = "refuse"
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            writer.transport.abort()
            return
        try:
            upstream, to_server = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, to_server}
        try:
            await asyncio.gather(
                self._carry(reader, to_server, is_answer=False),
                self._carry(upstream, writer, is_answer=True),
            )
        except (OSError, asyncio.CancelledError):  # the other side ended, or the proxy
            pass
        finally:
            for each in (writer, to_server):
                each.transport.abort()
            self._writers -= {writer, to_server}

    async def _carry(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while chunk := await source.read(65_536):
            while self.mode == "swallow":  # noqa: ASYNC110  # set from another thread
                await asyncio.sleep(0.02)  # a machine that hangs gives no sign when it is back
            if is_answer:
                await asyncio.sleep(self.delay_s)
            to.write(chunk)
            await to.drain()
        raise ConnectionResetError  # one side ended: so does the other


@contextmanager
def proxy_to(target_port: int) -> Iterator[TcpProxy]:
    """A proxy on a free loopback port, in a thread of its own, until the block ends."""
    proxy = TcpProxy(target_port)
    started = threading.Event()
    stop: asyncio.Event | None = None

    async def serve() -> None:
        nonlocal stop
        stop = asyncio.Event()
        proxy._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        proxy._close_all()
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*pending, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="proxy")
    thread.start()
    assert started.wait(timeout=200)
    try:
        yield proxy
    finally:
        assert proxy._loop is not None
        assert stop is not None
        proxy._loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=200)
