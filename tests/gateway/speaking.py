"""Processes of `aftercall gateway`: started, and spoken to in lines as a client does."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.gateway.conftest import BIN


def command(config: Path, url: str, *more: str) -> list[str]:
    return [str(BIN / "aftercall"), "gateway", "--config", str(config), "--service", url, *more]


@asynccontextmanager
async def started(
    words: Sequence[str], environment: dict[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *words,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def request(number: int, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


HELLO = request(
    1, "initialize", protocolVersion="2025-06-18", capabilities={},
    clientInfo={"name": "tester", "version": "1"},
)  # fmt: skip


async def answers(process: asyncio.subprocess.Process, *requests: bytes) -> list[dict[str, Any]]:
    """The answers, one for each request; anything else on standard output fails to parse."""
    found = []
    for line in requests:
        process.stdin.write(line)
        async with asyncio.timeout(200):
            found.append(json.loads(await process.stdout.readline()))
    return found


async def first_word(process: asyncio.subprocess.Process) -> str:
    """The line that names its address."""
    async with asyncio.timeout(200):
        return (await process.stderr.readline()).decode()
