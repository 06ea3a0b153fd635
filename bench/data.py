"""Finds the data sets that the benchmarks read; they are no part of the repository.

`bench/README.md` lists them: name, version, licence, and how to get and prepare each.
"""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VARIABLE = "AFTERCALL_BENCH_DATA"
"""The environment variable that names the folder of the data sets."""

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""The folder that is read where the variable is not set: next to the clone."""


def path(name: str) -> Path:
    """Return the path of a file or folder of the data; it may not exist."""
    return Path(os.environ.get(VARIABLE) or _BESIDE) / name


def is_there(*names: str) -> bool:
    """Return whether all files or folders of these names exist."""
    return all(path(name).exists() for name in names)


def rows(name: str) -> Iterator[Any]:
    """Yield the values of a file of gzipped JSON lines.

    Raises:
        FileNotFoundError: the file does not exist; the message is that of `left_out`.
    """
    if not is_there(name):
        raise FileNotFoundError(left_out(name.split(".", maxsplit=1)[0], name))
    with gzip.open(path(name), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def left_out(title: str, *names: str) -> str:
    """Return the line that says what a run leaves out, and why."""
    missing = [name for name in names if not is_there(name)]
    return (
        f"{title} is left out: no {', '.join(missing)} in {VARIABLE} "
        "(bench/README.md says how to get it)"
    )
