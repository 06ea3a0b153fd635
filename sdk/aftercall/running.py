"""Where the service is: its usual address, and the services that run for this user.

Each service is listed in a file that it locks while it lives. MCP clients start a gateway with
little of the user's environment; by this list it finds the service that the user has started, at
whatever port, instead of starting one of its own. Hooks import this module in every process, so it
stays light.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from aftercall.places import try_lock, unlock_file, user_place

BASE_URL = "http://127.0.0.1:8799"
"""Where `aftercall serve` listens when nothing else is given."""
URL_VARIABLE = "AFTERCALL_URL"
"""Where a client finds the address of the service when none is given."""
KEY_VARIABLE = "AFTERCALL_API_KEY"
"""Where a client finds its key when none is given."""
_SUFFIX = ".url"


def _services_folder(environ: Mapping[str, str]) -> str:
    return user_place("XDG_STATE_HOME", ".local/state", environ) + "/services"


@contextmanager
def listed_service(url: str, environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """List a service of this process at `url` until the block ends; where no file can be, do not.

    A process that is killed leaves the file without its lock, so it is listed no longer.
    """
    descriptor, file = None, ""
    with suppress(OSError, RuntimeError):
        folder = _services_folder(environ)
        os.makedirs(folder, exist_ok=True, mode=0o700)  # noqa: PTH103  # without pathlib
        file = f"{folder}/{os.getpid()}{_SUFFIX}"
        descriptor = try_lock(file, alone=True)
        _write_file(file, url)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(FileNotFoundError):
                os.unlink(file)  # noqa: PTH108
            unlock_file(descriptor)


def running_services(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the addresses of the services that run for this user, the last started first."""
    found: list[tuple[float, str]] = []
    with suppress(OSError, RuntimeError), os.scandir(_services_folder(environ)) as entries:
        for entry in entries:
            if not entry.name.endswith(_SUFFIX):
                continue
            with suppress(OSError):
                descriptor = try_lock(entry.path, alone=False, made=False)
                if descriptor is None:
                    found.append((entry.stat().st_mtime, _read_file(entry.path)))
                else:  # of a process that was killed
                    os.unlink(entry.path)  # noqa: PTH108
                    unlock_file(descriptor)
    return [url for _, url in sorted(found, reverse=True) if url]


def joined_service() -> str:
    """Return where a gateway without an address looks: a service that runs, or the usual place."""
    running = running_services()
    return BASE_URL if BASE_URL in running or not running else running[0]


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def _read_file(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
