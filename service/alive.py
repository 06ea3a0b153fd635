"""A sign of life of processes that listen nowhere: `python -m service.alive worker` asks for it.

The process writes the reading of the machine's monotonic clock into a file of its data folder, as
long as its interpreter runs threads. Whoever asks reads the same clock, so that clock steps do no
harm.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_EVERY_S = 5.0

STALE_S = 60.0
"""Twelve missed signs: longer than any call of a library holds the interpreter."""


@contextmanager
def showing_life(data_dir: Path, name: str) -> Iterator[None]:
    """Give signs of life while the block runs; none is left behind it.

    A folder that cannot be written only means that nobody can ask.
    """
    file = _file(data_dir, name)
    over = threading.Event()
    thread = threading.Thread(
        target=_beat, args=(file, over), name=f"signs of life of {name}", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _beat(file: Path, over: threading.Event) -> None:
    part = file.with_suffix(".part")
    while True:
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_text(str(time.monotonic()))
            part.replace(file)
        if over.wait(_EVERY_S):
            return


def silence_s(data_dir: Path, name: str) -> float | None:
    """Seconds since a process last gave a sign of life; None when none did since the last boot."""
    try:
        silence = time.monotonic() - float(_file(data_dir, name).read_text())
    except (OSError, ValueError):
        return None
    return silence if silence >= 0 else None


def _file(data_dir: Path, name: str) -> Path:
    return data_dir / f"{name}.alive"


def main(name: str) -> int:
    """0 when the process of that name lives, 1 when it does not; says why."""
    from service.environment import read_settings  # noqa: PLC0415  # loads pydantic

    silence = silence_s(read_settings().data.dir, name)
    if silence is not None and silence < STALE_S:
        return 0
    told = "no sign of life" if silence is None else f"no sign of life for {silence:.0f} s"
    sys.stderr.write(f"{name}: {told}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
