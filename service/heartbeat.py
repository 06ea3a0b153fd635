"""A heartbeat for a process without a port: a file that is touched while its loop turns.

`aftercall health` looks at the file, as a container's health check does. When a process hangs,
other processes take over its work when its lease ends; the heartbeat is for the supervisor that
restarts it.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from service.lifecycle import keep_doing

FILE = "heartbeat"
_EVERY_S = 5.0
MAX_AGE_S = 30.0
"""Greatest age of a beat: a batch that keeps the loop busy may miss six beats."""


@asynccontextmanager
async def open_heartbeat(folder: Path) -> AsyncIterator[None]:
    """Touch a file in a folder while the block runs; remove it at the end."""
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
    """Return the seconds since the last beat; None if there is no file."""
    try:
        return max(0.0, time.time() - (folder / FILE).stat().st_mtime)
    except FileNotFoundError:
        return None
