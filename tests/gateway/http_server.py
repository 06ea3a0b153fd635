"""An application on loopback, served by a task of the test's own loop; it can be stopped."""

import asyncio
from typing import Any

import uvicorn

from tests.gateway.waiting import until


class HttpServer:
    """Serves on one port, also when it is started again."""

    def __init__(self) -> None:
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self, app: Any) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                port=self.port,
                log_level="error",
                ws="none",
                lifespan="on",
                interface="asgi3",
                timeout_graceful_shutdown=1,  # asyncio waits for open streams since Python 3.12
            )  # fmt: skip
        )
        self._task = asyncio.create_task(self._server._serve())
        await until(lambda: self._server.started)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True  # streams are left open
        await self._task
