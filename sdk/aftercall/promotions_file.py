"""The file `.tool_promotions.json` on disk: read, written at once, changed by one at a time.

What stands in it, and how its faults are told: `aftercall.promotions_format`.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from aftercall.errors import ConfigurationError
from aftercall.local_files import MissingFileError, UnsafePathError, resolve_file
from aftercall.models.tools import Promotion
from aftercall.promotions_format import (
    MAX_PROMOTIONS_CHARS,
    PromotionsFileError,
    parse_promotions,
    render_promotions,
)

try:
    import fcntl
except ImportError:  # Windows: one process at a time may change a file
    fcntl = None  # type: ignore[assignment]  # asked for before each use

__all__ = [
    "MAX_PROMOTIONS_CHARS",
    "PROMOTIONS_FILE",
    "MissingFile",
    "PromotionsFileError",
    "missing_files",
    "parse_promotions",
    "read_promotions",
    "render_promotions",
    "update_promotions",
    "write_promotions",
]

PROMOTIONS_FILE = ".tool_promotions.json"
"""Its name, in the folder that the evolved files are relative to (seed 002)."""

_MAX_BYTES = 4 * MAX_PROMOTIONS_CHARS
"""Most bytes that so many characters can have in UTF-8."""


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A promotion whose file cannot be used, and why not."""

    namespace: str
    evolved_file: str
    problem: str


def read_promotions(path: Path, *, missing_ok: bool = False) -> dict[str, Promotion]:
    """The promotions in a file; with `missing_ok` none when there is no such file.

    Raises:
        PromotionsFileError: as `parse_promotions`, or the file is not there, cannot be read or is
            not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, for ever
            raise PromotionsFileError("it is no file", file=str(path))
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        if missing_ok:
            return {}
        raise PromotionsFileError("there is no file of this name", file=str(path)) from error
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
        raise PromotionsFileError(problem, file=str(path)) from error
    if len(content) > _MAX_BYTES:
        raise PromotionsFileError(f"it has more than {_MAX_BYTES:,} bytes", file=str(path))
    try:
        return parse_promotions(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = "it is not UTF-8; save it as UTF-8"
        raise PromotionsFileError(problem, line=line, file=str(path)) from error
    except PromotionsFileError as error:
        raise PromotionsFileError(
            error.problem, line=error.line, entry=error.entry, file=str(path)
        ) from error


def write_promotions(path: Path, promotions: Mapping[str, Promotion]) -> None:
    """Write a file; whoever reads it meanwhile sees the old one or the new one, whole.

    Raises:
        ConfigurationError: as `render_promotions`, or the file cannot be written.
    """
    content = render_promotions(promotions).encode()
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        _replace(target, content)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def update_promotions(
    path: Path, change: Callable[[dict[str, Promotion]], Mapping[str, Promotion]]
) -> dict[str, Promotion]:
    """Read, change and write a file while no other process does so; what was written.

    Args:
        path: the file; a missing one counts as empty.
        change: gets the promotions and returns those to write.

    Raises:
        ConfigurationError: as `read_promotions` and `write_promotions`.
    """
    with _locked(path.parent):
        after = dict(change(read_promotions(path, missing_ok=True)))
        write_promotions(path, after)
    return after


def missing_files(promotions: Mapping[str, Promotion], root: Path) -> list[MissingFile]:
    """The promotions whose file is missing below `root`, or leads out of it by a symbolic link.

    Promotions without a file are none of them.
    """
    found = []
    for namespace, promotion in promotions.items():
        if promotion.evolved_file is None:
            continue
        try:
            resolve_file(root, promotion.evolved_file)
        except (MissingFileError, UnsafePathError) as error:
            found.append(MissingFile(namespace, promotion.evolved_file, str(error)))
    return found


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f"{target.name}.{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # folders cannot be opened on Windows
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone among those who change a promotions file in `folder`; waits for the others."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ConfigurationError(f"{folder} is no folder that can be opened: {error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, also when killed
        yield
    finally:
        os.close(descriptor)
