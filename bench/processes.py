"""Commands of ours as whole processes, with their time and memory."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Watched:
    """How a command ran. `peak_mib` is the resident memory of it and its children together."""

    seconds: float
    peak_mib: float
    output: str


def run_watched(*command: str, environment: dict[str, str] | None = None) -> Watched:
    """Run `aftercall COMMAND...` to its end.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    clean = {k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")}
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "aftercall.cli", *command],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True,
            env=clean | (environment or {}),
        )  # fmt: skip
        watch = _MemoryWatch(process.pid)
        watch.start()
        output, _ = process.communicate()
        seconds = time.perf_counter() - started
        watch.stop()
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"aftercall {command[0]} failed: {said.read()[-2000:]}")
    return Watched(seconds, watch.peak / _MIB, output)


class _MemoryWatch(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self.peak = 0

    def run(self) -> None:
        while not self._over.wait(0.2):
            try:
                several = [self._process, *self._process.children(recursive=True)]
                self.peak = max(self.peak, sum(each.memory_info().rss for each in several))
            except psutil.Error:
                continue

    def stop(self) -> None:
        self._over.set()
        self.join()
