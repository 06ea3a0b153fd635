"""Started as a program of its own: takes on resource limits, then becomes the command it is given.

    python -I -S check_limits.py '{"cpu_s": 30, "memory_bytes": null, ...}' command argument ...

Limits are set here and not between fork and exec, where a process with threads can deadlock. Only
the standard library is used, as nothing else is on the path under `-I -S`.
"""

import json
import os
import resource
import sys

_LIMITS = {
    "cpu_s": resource.RLIMIT_CPU,
    "memory_bytes": resource.RLIMIT_AS,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


def main(limits: dict[str, int | None], command: list[str]) -> None:
    """Become `command`; exits with 126 or 127 when there is no such program, as a shell does."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in limits.items():
        if value is not None:
            _limit(_LIMITS[name], value)
    try:
        os.execvp(command[0], command)  # noqa: S606  # without a shell is the point
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)  # what was forbidden before stays forbidden
    try:
        resource.setrlimit(what, (value, value))
    except (ValueError, OSError) as error:  # macOS knows no limit of memory
        sys.stderr.write(f"limit {what} is not available here: {error}\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
