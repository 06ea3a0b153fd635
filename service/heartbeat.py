"""A sign of life of a process that has no port: a file that is touched while its loop turns.

`aftercall health` looks at it, as a container's health check does. What a process that hangs has
claimed goes to others when its lease ends; this is for the supervisor that starts it again.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from service.lifecycle import keep_doing

FILE = "heartbeat"
_EVERY_S = 5.0
MAX_AGE_S = 30.0
"""Of a beat: six could be missed, for a batch that keeps the loop busy."""


@asynccontextmanager
async def open_heartbeat(folder: Path) -> AsyncIterator[None]:
    """Touch a file in a folder while the block runs; it goes at the end."""
    path = folder / FILE

    async def write_beat() -> float:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        return _EVERY_S

    await write_beat()
    try:
        async with keep_doing(write_beat, "the heartbeat", _EVERY_S, _EVERY_S):
            yield
    finally:
        path.unlink(missing_ok=True)


def beat_age_s(folder: Path) -> float | None:
    """Return the seconds since the last beat; None where there is none."""
    try:
        return max(0.0, time.time() - (folder / FILE).stat().st_mtime)
    except FileNotFoundError:
        return None
