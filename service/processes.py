"""Processes of the service's own, next to it: commands of `aftercall`, with the same settings."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from typing import IO

from service.environment import PREFIX, environment_of
from service.lifecycle import end_process
from service.settings import Settings

_STOP_S = 5.0
"""One that is stopped ends after the statement that it runs; whatever it had done holds."""


async def run_process(settings: Settings, *command: str) -> int:
    """Run a command of `aftercall` in a process of its own; return its exit code."""
    process = await start_process(settings, "aftercall.cli", *command)
    try:
        return await process.wait()
    finally:
        await end_process(process, _STOP_S)


async def start_process(
    settings: Settings,
    module: str,
    *arguments: str,
    stdin: int | IO[bytes] = DEVNULL,
    stdout: int | IO[bytes] = DEVNULL,
) -> Process:
    """Start a module in a process that the caller ends; its errors go where ours go.

    Raises:
        OSError: it cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", module, *arguments,
        stdin=stdin, stdout=stdout,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(PREFIX)},
            **environment_of(settings),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        start_new_session=True,  # the service handles Ctrl-C at the terminal
    )  # fmt: skip
