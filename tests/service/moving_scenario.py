"""Exports or imports in a process that kills itself at one of its calls to the store.

    python moving_scenario.py export|import DATA_DIR FILE CALL

CALL counts from 1 and is the call before which the process dies; 0 for never. Prints how many calls
there were.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from service.moving.restoring import restore

from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store
from service.archive import ArchiveReader, export_store
from service.packing import unpacked, written

_COUNTED = {"restore", "put_fact", "scan_archive", "get_fact", "workspaces", "generation", "counts"}


class Dying:
    """A store whose process dies just before one of its calls."""

    def __init__(self, store: LogStore, fatal: int) -> None:
        self._store = store
        self._fatal = fatal
        self.calls = 0

    @property
    def name(self) -> str:
        return self._store.name

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name not in _COUNTED:
            raise AttributeError(name)

        async def call(*given: Any) -> Any:
            self.calls += 1
            if self.calls == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return await getattr(self._store, name)(*given)

        return call


async def main(what: str, data_dir: str, file: str, fatal: int) -> int:
    """Do it; how many calls it took."""
    store = await open_sqlite_store(Path(data_dir))
    dying = Dying(store, fatal)
    as_store = cast("LogStore", dying)
    try:
        if what == "export":
            with written(file) as stream:
                await export_store(as_store, stream)
        else:
            with unpacked(file) as packed:
                compared = await restore(as_store, ArchiveReader(packed))
                if compared.differing:
                    raise RuntimeError(f"they differ in {compared.differing}")
    finally:
        await store.close()
    return dying.calls


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(main(*sys.argv[1:4], int(sys.argv[4])))}\n")
