"""Shared parts of commands: reading settings, and one line for a refusal."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aftercall.errors import ConfigurationError

if TYPE_CHECKING:
    from service.settings import Settings

T = TypeVar("T")


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir`, which overrides `AFTERCALL_DATA_DIR`, `--log-format` and `--log-level`."""
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="folder of the log store and the vectors"
    )
    parser.add_argument("--log-format", choices=("auto", "text", "json"))
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))


def read_moment(text: str) -> datetime:
    """Return the time that an argument names; one without a zone is the machine's."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give 2026-11-01T08:00Z") from None


def start(args: argparse.Namespace) -> "Settings":
    """Return `settings_from`, for a command that logs; from now on its events are written."""
    from service.lifecycle import spare_collector
    from service.logs import configure_logging

    settings = settings_from(args)
    configure_logging(settings.log)
    spare_collector()
    return settings


def settings_from(args: argparse.Namespace) -> "Settings":
    """Return the environment's settings with the command line's on top.

    Unknown variables are reported on stderr.
    """
    from pydantic import ValidationError

    from service.environment import explain_settings, read_settings, unknown_variables

    for warning in unknown_variables(os.environ):
        say_line(f"warning: {warning}")
    try:
        return read_settings().with_values(
            server={"host": getattr(args, "host", None), "port": getattr(args, "port", None)},
            data={"dir": getattr(args, "data_dir", None)},
            log={
                "format": getattr(args, "log_format", None),
                "level": getattr(args, "log_level", None),
            },
        )
    except ValidationError as error:
        raise ConfigurationError(explain_settings(error)) from None


def run(settings: "Settings", work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a command's work; known errors become one line."""
    import asyncio

    from service.lifecycle import shorten_errors

    with shorten_errors(settings.data.dir):
        return asyncio.run(work)


async def note_in_audit(settings: "Settings", workspace: str, action: str, subject: str) -> None:
    """Add to the audit what was done at the console."""
    from service.keys import CONSOLE, Keyring, bootstrap_key
    from service.lifecycle import COMMAND_PATIENCE_S
    from service.stores import opened_control

    async with opened_control(settings, patience_s=COMMAND_PATIENCE_S) as store:
        await Keyring(store, bootstrap_key(settings)).note_action(
            CONSOLE, workspace, action, subject
        )


def say_line(line: str) -> None:
    """Write one line for a person to stderr."""
    print(f"aftercall: {line}", file=sys.stderr, flush=True)


def say_seldom(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes on one line in two seconds at most, the first after two."""
    last = time.monotonic()

    def show_line(line: str) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= 2.0:
            last = now
            say(line)

    return show_line
