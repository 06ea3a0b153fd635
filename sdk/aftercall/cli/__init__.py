"""The command line `aftercall`.

`aftercall hook` is started for every call of a coding agent's tool and has 60 ms: it begins before
anything else is imported. All other commands hang in the frame (`aftercall.cli.frame`).
"""

import sys

TYPE_CHECKING = False  # as type checkers read it; the import of `typing` takes 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from aftercall.cli.frame import Command, discover_commands, one_line, read_name, read_number

__all__ = ["Command", "discover_commands", "main", "one_line", "read_name", "read_number"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a command line, by default this process's: 0 done, 1 failed, 130 interrupted.

    `SystemExit` with 2 for a wrong command line, with 0 after `--help` and `--version`.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["hook"] and words[1:] and not {"-h", "--help"} & set(words):
        from aftercall.cli.hook import run_hook  # noqa: PLC0415  # what is not needed costs time

        return run_hook(words[1:])
    from aftercall.cli import frame  # noqa: PLC0415

    return frame.main(words)


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from aftercall.cli import frame  # noqa: PLC0415

    return getattr(frame, name)
