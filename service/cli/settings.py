"""`aftercall settings`: every setting, its variable, its value here and its default."""

import argparse

from aftercall.cli import Command
from service.cli.options import settings_from


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--markdown", action="store_true", help="as a table for documents, without values"
    )


def _run_settings(args: argparse.Namespace) -> int:
    from service.environment import list_settings  # keeps `--help` light

    rows = list(list_settings(settings_from(args)))
    if args.markdown:
        print("| Variable | Default | Meaning |\n|---|---|---|")
        for row in rows:
            default = f"`{row.default}`" if row.default else "empty"
            print(f"| `{row.variable}` | {default} | {row.description} |")
        return 0
    for row in rows:
        changed = "" if row.value == row.default else f"  (default {row.default or 'empty'})"
        print(f"{row.name}\n  {row.variable}={row.value}{changed}\n  {row.description}")
    return 0


command = Command(
    "settings",
    "list every setting with its environment variable, value and default",
    _add_arguments,
    _run_settings,
)
