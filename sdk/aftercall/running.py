"""Services that run for this user: each is listed in a file that it locks while it lives.

MCP clients start a gateway with little of the user's environment. By this list it finds the
service that the user has started, at whatever port, instead of starting one of its own.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from aftercall.client.transport import BASE_URL
from aftercall.files import try_lock, unlock, user_folder


def _folder(environ: Mapping[str, str]) -> Path:
    return user_folder("XDG_STATE_HOME", ".local/state", environ) / "services"


@contextmanager
def listed_service(url: str, environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """List a service of this process at `url` until the block ends; where no file can be, do not.

    A process that is killed leaves the file without its lock, so it is listed no longer.
    """
    descriptor, file = None, None
    with suppress(OSError, RuntimeError):
        folder = _folder(environ)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / f"{os.getpid()}.url"
        descriptor = try_lock(file, alone=True)
        file.write_text(url, encoding="utf-8")
    try:
        yield
    finally:
        if descriptor is not None and file is not None:
            file.unlink(missing_ok=True)
            unlock(descriptor)


def running_services(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the addresses of the services that run for this user, the last started first."""
    found: list[tuple[float, str]] = []
    with suppress(OSError, RuntimeError):
        for file in _folder(environ).glob("*.url"):
            with suppress(OSError):
                descriptor = try_lock(file, alone=False, made=False)
                if descriptor is None:
                    found.append((file.stat().st_mtime, file.read_text(encoding="utf-8")))
                else:  # of a process that was killed
                    file.unlink(missing_ok=True)
                    unlock(descriptor)
    return [url for _, url in sorted(found, reverse=True) if url]


def joined_service(environ: Mapping[str, str] = os.environ) -> str:
    """Return where a gateway without an address looks: a service that runs, or the usual place."""
    running = running_services(environ)
    return BASE_URL if BASE_URL in running or not running else running[0]
