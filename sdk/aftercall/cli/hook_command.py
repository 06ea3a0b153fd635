"""How `aftercall hook` looks in the list of commands; `aftercall.cli.hook` is what runs."""

import argparse

from aftercall.cli.frame import Command
from aftercall.cli.hook import run_hook


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help="the coding agent: see GET /hooks")
    parser.add_argument("--service", metavar="URL", help="where the service is")
    parser.add_argument("--key-file", metavar="FILE", help="a file that holds the service's key")
    parser.add_argument(
        "--mode", metavar="MODE", help="repair (the default), advise, shadow (only records) or off"
    )
    parser.add_argument(
        "--except",
        metavar="SERVER",
        action="append",
        dest="left_out",
        help="an MCP server that stands behind a gateway already; may be given again",
    )


def _run_command(args: argparse.Namespace) -> int:
    return run_hook([args.client])


command = Command(
    "hook",
    "answer a hook of a coding agent, which starts this with its payload on stdin",
    _add_arguments,
    _run_command,
)
