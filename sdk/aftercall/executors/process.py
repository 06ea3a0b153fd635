"""A program run to its end: without a shell, in its own process group, within time and size.

Needs POSIX (process groups, pipes that can be selected).
"""

import asyncio
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from aftercall.executors.threads import in_thread

_CHUNK = 64 * 1024
_TICK_S = 0.05
"""How often it is looked whether a program with open output has ended or is to be stopped."""

_GRACE_S = 0.5
"""How long what a program has started may hold its output open after it has ended."""


class OutputTooLargeError(Exception):
    """The program wrote more to standard output than is taken."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its exit status (negative: the signal that killed it), its output."""

    status: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds, bytes of standard output, and how much of the end of standard error is kept."""

    timeout_s: float
    max_stdout_bytes: int
    max_stderr_bytes: int


async def run(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    limits: Limits,
) -> Finished:
    """Run a program to its end. What it has started ends with it, however it ends.

    A child that makes a session of its own (`setsid`) escapes this: containers hold such programs.

    Args:
        arguments: the program and its arguments, each as it is.
        cwd: its working folder.
        env: its whole environment.
        stdin: what it reads; nothing when None.
        limits: of time and size. It is killed when it goes beyond, and when the caller is
            cancelled.

    Raises:
        TimeoutError: the time is up.
        OutputTooLargeError: standard output went beyond its bound.
        OSError: the program cannot be started.
    """
    stop = threading.Event()
    work = in_thread(partial(_run, arguments, cwd, env, stdin, limits, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # nobody is left to be told
        raise


def _run(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    limits: Limits,
    stop: threading.Event,
) -> Finished:
    deadline = time.monotonic() + limits.timeout_s
    process = subprocess.Popen(  # noqa: S603  # no shell; what may be started: see `command`
        arguments,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    with ExitStack() as cleanup:
        pipes = _Pipes(process, stdin or b"", limits)
        cleanup.callback(pipes.close)
        cleanup.callback(_end, process)
        while not _has_ended(process):
            if stop.is_set() or time.monotonic() >= deadline:
                raise TimeoutError
            pipes.move(min(_TICK_S, deadline - time.monotonic()))
        held_until = min(deadline, time.monotonic() + _GRACE_S)
        while pipes.are_open() and time.monotonic() < held_until and not stop.is_set():
            pipes.move(_TICK_S)
    return Finished(process.returncode, bytes(pipes.stdout), bytes(pipes.stderr))


class _Pipes:
    """Moves bytes between a program's pipes and memory, without ever waiting for one of them."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: bytes, limits: Limits) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self._limits = limits
        self._left = memoryview(stdin)
        self._files = [f for f in (process.stdin, process.stdout, process.stderr) if f is not None]
        self._stdin, self._stdout = process.stdin, process.stdout
        self._selector = selectors.DefaultSelector()
        for file in self._files:
            os.set_blocking(file.fileno(), False)
            writes = file is process.stdin
            self._selector.register(file, selectors.EVENT_WRITE if writes else selectors.EVENT_READ)

    def are_open(self) -> bool:
        """Whether something can still write to us."""
        return any(file is not self._stdin and not file.closed for file in self._files)

    def move(self, wait_s: float) -> None:
        """Move what can be moved within `wait_s` seconds.

        Raises:
            OutputTooLargeError: standard output went beyond its bound.
        """
        if not self._selector.get_map():
            time.sleep(min(wait_s, 0.005))  # its pipes are closed and it runs on
            return
        for key, _ in self._selector.select(max(wait_s, 0)):
            file = key.fileobj
            if file is self._stdin:
                self._write(self._stdin)
            elif file is self._stdout:
                self.stdout += self._read(self._stdout)
                if len(self.stdout) > self._limits.max_stdout_bytes:
                    raise OutputTooLargeError
            else:
                self.stderr += self._read(self._files[-1])
                del self.stderr[: -self._limits.max_stderr_bytes]

    def close(self) -> None:
        """Close all of them."""
        self._selector.close()
        for file in self._files:
            with suppress(OSError):
                file.close()

    def _read(self, file: IO[bytes]) -> bytes:
        try:
            chunk = os.read(file.fileno(), _CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            self._done(file)
        return chunk

    def _write(self, file: IO[bytes]) -> None:
        try:
            written = os.write(file.fileno(), self._left[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want (the rest of) its input
            self._done(file)
            return
        self._left = self._left[written:]
        if not self._left:
            self._done(file)

    def _done(self, file: IO[bytes]) -> None:
        self._selector.unregister(file)
        file.close()


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    # It stays a zombie, so that its number cannot become another's before its group is killed.
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return ended is not None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program, if it runs, and all that it has started in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
