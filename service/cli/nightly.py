"""`aftercall nightly`: patterns, calibration, axes, expiry; once, or again and again."""

import argparse
import math
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aftercall.cli import Command
from service.cli.options import add_common, say_line, say_seldom, start

if TYPE_CHECKING:
    from ingest.nightly import NightlyReport
    from service.settings import Settings

DONE, FAILED, BUSY = 0, 1, 75
"""Exit codes; 75 is `EX_TEMPFAIL` of sysexits.h: try again later."""
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPILOG = (
    "Exit codes: 0 all steps done; 1 a step failed, or the store could not be used (the report and "
    "the log say why; the other steps were run, and running it again is safe); 75 another process "
    "runs it at the moment, nothing was done; 130 or 143 it was stopped by a signal, and the next "
    "run does the rest. With --every it runs until it is stopped, and ends with 0."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--every",
        type=interval_s,
        metavar="24h",
        help="run now, and again after this time (90m, 24h, 7d), also when a run fails",
    )
    parser.add_argument(
        "--expire-all",
        action="store_true",
        help="delete all that is past the retention; else a day's worth, as a clock may be wrong",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    # For `serve`: a run with low priority and without progress lines.
    parser.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    add_common(parser)


def _run_nightly(args: argparse.Namespace) -> int:
    settings = start(args)
    if args.background:
        os.nice(10)
    import asyncio  # heavy imports wait: `aftercall --help` loads this module

    return asyncio.run(_run_nights(settings, args) if args.every else _run_once(settings, args))


def interval_s(text: str) -> float:
    """Return the seconds of `90m`, `24h`, `7d` or `30s`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip(), re.ASCII)
    seconds = float(found[1]) * _UNIT_S[found[2]] if found else 0.0
    if not 1 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no interval; give one such as 24h or 90m")
    return seconds


async def _run_once(settings: "Settings", args: argparse.Namespace) -> int:
    from service.lifecycle import done_or_stopped, stopped_by_signals

    with stopped_by_signals() as stopping:
        status = await done_or_stopped(stopping, _run_night(settings, args))
    if status is None:
        say_line("stopped; what was done holds, and the next run does the rest")
        return stopping.status
    return status


async def _run_night(settings: "Settings", args: argparse.Namespace) -> int:
    from ingest.nightly import NightlyBusyError
    from service.lifecycle import shorten_errors
    from service.nightly import run_nightly

    progress = (lambda *_: None) if args.background else _make_progress()
    try:
        with shorten_errors(settings.data.dir):
            report = await run_nightly(settings, say_line, progress, expire_all=args.expire_all)
    except NightlyBusyError as error:
        say_line(str(error))
        return BUSY
    print(report.model_dump_json() if args.json else show_result(report), flush=True)
    return FAILED if report.failed else DONE


async def _run_nights(settings: "Settings", args: argparse.Namespace) -> int:
    from aftercall.errors import AftercallError
    from service.heartbeat import open_heartbeat
    from service.lifecycle import again_and_again, done_or_stopped, stopped_by_signals

    async def run_due() -> float:
        try:
            await _run_night(settings, args)
        except AftercallError as error:
            say_line(f"{error}; it is tried again at the next time")
        return float(args.every)

    with stopped_by_signals() as stopping:
        async with open_heartbeat(settings.data.dir):
            await done_or_stopped(
                stopping, again_and_again(run_due, "the nightly run", 0, args.every)
            )
    return DONE


def _make_progress() -> Callable[[str, int], None]:
    slowly, begun = say_seldom(say_line), dict[str, float]()

    def show_progress(step: str, done: int) -> None:
        now = time.monotonic()
        if step not in begun:
            begun[step] = now
            say_line(f"nightly: {step}")
        elif done:
            rate = done / max(now - begun[step], 1e-9)
            slowly(f"nightly: {step}: {done:,} done ({rate:,.0f} a second)")

    return show_progress


def show_result(report: "NightlyReport") -> str:
    """Return a report for a person: a line per step."""
    lines = [f"nightly run of {report.started_at:%Y-%m-%d %H:%M} UTC, {report.seconds:,.1f} s"]
    for step in report.steps:
        counts = ", ".join(f"{count:,} {name}" for name, count in step.counts.items())
        outcome = f"FAILED: {step.problem}" if step.problem is not None else counts
        lines.append(f"  {step.name:<12} {step.seconds:>8,.1f} s  {outcome}".rstrip())
    return "\n".join(lines)


command = Command(
    "nightly",
    "consolidate patterns, recalibrate, cluster axes, expire; safe to run at any time",
    _add_arguments,
    _run_nightly,
)
