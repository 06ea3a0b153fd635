"""`aftercall demo`: corrections of failed calls of real tools; or a month of made-up calls."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.cli import Command, read_number
from aftercall.explain import how_to_install
from service.cli.options import say_line

if TYPE_CHECKING:
    from rich.console import Console

_EPILOG = (
    "Without --history, scripted agents call real MCP servers, and you see each correction; this "
    "takes about ten seconds. With --history, simulated agents work for a month on simulated "
    "tools, so that the dashboard has something to show; this takes about half a minute. That "
    "service is of the demo's own, on a free port, and goes with its data when you press Ctrl-C. "
    "docs/demo-history.md tells what is in the history."
)
_PICTURED = 110
"""Columns of the picture."""
_FOR_HISTORY = ("days", "calls", "seed", "exit")
"""Options that say nothing without --history."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", help="also draw the output as a picture"
    )
    group = parser.add_argument_group("a made-up history")
    group.add_argument(
        "--history",
        action="store_true",
        help="play a history of simulated agents and tools, then serve its dashboard",
    )
    group.add_argument(
        "--days", type=read_number(1, 366), metavar="N", help="UTC days, up to today (30)"
    )
    group.add_argument(
        "--calls", type=read_number(1, 20_000), metavar="N", help="calls per day, about (250)"
    )
    group.add_argument(
        "--seed", type=read_number(0, 2**31), metavar="N", help="same seed, same history (7)"
    )
    group.add_argument(
        "--exit",
        action="store_true",
        default=None,
        help="end when the history is played, instead of serving its dashboard",
    )


def _run_demo(args: argparse.Namespace) -> int:
    if wrong := _find_misused(args):
        say_line(wrong)
        return 2
    try:
        from rich.console import Console

        from service.demo.stage import StageError

        try:
            console = Console(
                highlight=False, record=bool(args.svg), width=_PICTURED if args.svg else None
            )
            return _play_history(args, console)
        except StageError as error:
            say_line(str(error))
    except ImportError as error:
        say_line(f"the demo needs {error.name}; {how_to_install('demo,model', of_service=True)}")
    return 1


def _play_history(args: argparse.Namespace, console: "Console") -> int:
    if not args.history:
        from service.demo.scenario import run_demo

        asyncio.run(run_demo(console))
        if args.svg:
            console.save_svg(str(args.svg), title="aftercall demo")
        return 0
    from service.demo.history import run_history

    given = {"seed": args.seed, "days": args.days, "calls_per_day": args.calls}
    chosen = {name: value for name, value in given.items() if value is not None}
    return asyncio.run(run_history(console, **chosen, serves=not args.exit))


def _find_misused(args: argparse.Namespace) -> str | None:
    given = [name for name in _FOR_HISTORY if getattr(args, name) is not None]
    if not args.history and given:
        return f"--{given[0]} is for a made-up history; add --history"
    if args.history and args.svg:
        return "--svg is for the demo without --history; leave out one of them"
    return None


command = Command(
    "demo",
    "watch failed calls of real tools get their corrections; or fill a dashboard",
    _add_arguments,
    _run_demo,
)
