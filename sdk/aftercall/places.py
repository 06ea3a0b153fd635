"""Where a user's files are (XDG Base Directories), and locks on them.

A hook is a process that a coding agent starts for every call of a tool, so nothing is imported here
but what the interpreter has loaded anyway.
"""

import fcntl
import os
from collections.abc import Mapping


def user_place(variable: str, below_home: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder `aftercall` in that of a variable such as `XDG_CACHE_HOME`, or at home."""
    given = environ.get(variable, "")
    if not given.startswith("/"):  # the specification has relative paths ignored
        given = f"{os.path.expanduser('~')}/{below_home}"  # noqa: PTH111  # without pathlib
    return f"{given}/aftercall"


def try_lock(path: "os.PathLike[str] | str", *, alone: bool, made: bool = True) -> int | None:
    """Lock a file, which is `made` where it is missing; None where others hold it. End by `unlock`.

    `alone` or together with others who do not want it alone.
    """
    descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if made else 0), 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def unlock_file(descriptor: int) -> None:
    """Close a file that may be locked; a process forked meanwhile has the lock through its copy."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
