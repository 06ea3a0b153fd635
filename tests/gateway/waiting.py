"""Waiting for what happens in the background: polled, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count

import psutil


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Return once `condition` holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {timeout_s} s")
        await asyncio.sleep(0.01)


async def until_answered(ask: Callable[[], Awaitable[bool]], timeout_s: float = 60.0) -> None:
    """Return once `ask` says yes; fail when it does not in time."""
    async with asyncio.timeout(timeout_s):
        for _ in count():
            if await ask():
                return
            await asyncio.sleep(0.02)


def children(name: str) -> list[psutil.Process]:
    """Living processes of this name below this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() == name and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
