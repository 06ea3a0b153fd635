"""Who holds a lease, as text: host, process and a random part, and whether that process is gone.

The host stands for one run of one machine and, where processes are numbered apart in containers,
for one container: two that share a host name must never take each other for dead.
"""

import os
import secrets
import socket
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

_ours: set[str] = set()
"""Holders of this process that were not retired."""


def holder_id() -> str:
    """A new holder of this process: `host/pid/random`. Retire it when it is not used any more."""
    made = f"{_host()}/{os.getpid()}/{secrets.token_hex(6)}"
    _ours.add(made)
    return made


def retire(holder: str) -> None:
    """Say that a holder of this process is no more: what it still holds may be taken at once."""
    _ours.discard(holder)


def is_gone(holder: str) -> bool:
    """Whether a holder certainly lives no more; False where that cannot be told from here."""
    host, _, rest = holder.partition("/")
    pid, _, _ = rest.partition("/")
    if host != _host() or not pid.isascii() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return holder not in _ours  # of an earlier process of the same number, or retired
    return not _lives(int(pid))


def _lives(pid: int) -> bool:
    if os.name != "posix" or not 0 < pid < 2**31:
        return True  # elsewhere asking would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


@cache
def _host() -> str:
    """The host's name, and what tells this run of it and its numbering of processes from others."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    run = sha256("\x1f".join(parts).encode()).hexdigest()[:8]
    return f"{socket.gethostname().replace('/', '-')}~{run}"
