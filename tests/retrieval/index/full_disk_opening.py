"""On a small volume of its own: an index is made, and opened where little room is left.

    python -m tests.retrieval.index.full_disk_opening FOLDER killed|stopped MIB_LEFT

Prints what opening says, or "opened"; ends by the signal that ends it.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndexError
from tests.retrieval.index.documents import DIMENSION, point


async def opened(folder: Path) -> EdgeIndex:
    """The index there."""
    return await EdgeIndex.open(folder, dimension=DIMENSION, fingerprint="a model")


async def fill(folder: Path, end: str) -> None:
    """Two thousand points, and an end."""
    index = await opened(folder)
    await index.upsert_points([point(f"document {number}") for number in range(2_000)])
    if end == "killed":
        os._exit(0)
    await index.close()


async def open_again(folder: Path) -> str:
    """What opening comes to; all that it maps is written."""
    try:
        index = await opened(folder)
    except VectorIndexError as error:
        return str(error)
    assert await index.count_points() == 2_000
    await index.close()
    return "opened"


def main() -> None:
    """Mount, fill in a process of its own, take the room, open."""
    volume, end, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) << 20
    words = ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(volume)]
    subprocess.run(words, check=True)
    if os.fork() == 0:
        asyncio.run(fill(volume / "vectors", end))
        os._exit(0)
    os.wait()
    with (volume / "filler").open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(volume).free - left)
    sys.stdout.write(asyncio.run(open_again(volume / "vectors")))


if __name__ == "__main__":
    main()
