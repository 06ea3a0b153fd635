"""`aftercall health`: whether the worker or the nightly run of a data folder is alive."""

import argparse

from aftercall.cli import Command
from service.cli.options import add_common, settings_from

_LONG_HELP = """Looks at the file that `aftercall worker` and `aftercall nightly --every` touch in
the data folder while they run. Exit code 0: one has done so within half a minute; 1: not. A service
is asked at /readyz instead."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _LONG_HELP
    add_common(parser)


def _run_health(args: argparse.Namespace) -> int:
    from service.heartbeat import MAX_AGE_S, beat_age_s  # heavy imports wait

    folder = settings_from(args).data.dir
    age = beat_age_s(folder)
    if age is None:
        print(f"no worker and no nightly run has its sign of life in {folder}", flush=True)
        return 1
    is_alive = age <= MAX_AGE_S
    print(
        f"{'alive' if is_alive else 'silent'}: the last sign of life is {age:.0f} s old", flush=True
    )
    return 0 if is_alive else 1


command = Command(
    "health",
    "whether the worker or nightly run of a data folder is alive",
    _add_arguments,
    _run_health,
)
