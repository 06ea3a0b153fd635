"""Compaction of a shard beside the service: `python -m retrieval.index.edge_compaction SHARD`.

A shard that was only written to is searched by a scan: 2 ms at 20,000 points, 12 ms at 100,000.
Optimizing builds the graph that makes that 0.5 and 0.7 ms, but takes 22 s at 100,000 points with
the GIL held. So a process of its own optimizes a copy; what changes meanwhile is noted and brought
over, and the copy takes the shard's place. Searches by tool need none of this (0.7 ms at 50,000).
"""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from retrieval.index.edge_shard import Shard
from retrieval.index.protocol import VectorIndexError

MIN_NEW_POINTS = 20_000
"""New points that a scan may take in: 2 ms if it had to see them all. Most points are scenarios of
tools, which are asked for by id or by tool and never scanned."""

NEW_SHARE = 0.25
"""And against those compacted before, so that the work stays in proportion to what is written."""

NICENESS = 10
"""The compacting process yields the cores to the service."""


def is_worthwhile(*, new_points: int, compacted_points: int) -> bool:
    """Whether so many points have come that a search of everything would feel them."""
    return new_points >= max(MIN_NEW_POINTS, NEW_SHARE * compacted_points)


class CompactingProcess:
    """Optimizes a shard that no one has open, in a process that can be stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, shard: Path) -> None:
        """Blocks until done.

        Raises:
            VectorIndexError: when it failed or was stopped.
        """
        with self._lock:
            if self._stopped:
                raise VectorIndexError("the compaction was stopped")
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a path of ours
                [sys.executable, "-m", "retrieval.index.edge_compaction", str(shard)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        _, output = self._process.communicate()
        if self._process.returncode != 0:
            reason = output.decode(errors="replace").strip().splitlines()[-1:]
            raise VectorIndexError(
                f"the compaction ended with {self._process.returncode}: {' '.join(reason)}"
            )

    def stop(self) -> None:
        """Kill it; `run` then raises, also if it is called only later."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def main(arguments: Sequence[str]) -> int:
    """Entry point: optimize the shard in the folder named."""
    (folder,) = arguments
    os.nice(NICENESS)
    shard = Shard.load(Path(folder))
    shard.optimize()
    shard.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
