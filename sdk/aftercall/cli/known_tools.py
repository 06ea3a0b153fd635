"""`aftercall known-tools`: what the service knows of tools, for a prompt or for documentation."""

import argparse
import sys

from aftercall.cli import Command
from aftercall.cli.status import add_service
from aftercall.client import Client


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument(
        "--tool",
        metavar="ID",
        action="append",
        default=[],
        help="a registered id, else a recorded name or server/name; may be repeated "
        "(default: all tools)",
    )
    parser.add_argument("--namespace", metavar="N", help="the tools that serve it")
    parser.add_argument(
        "--max-tokens",
        metavar="N",
        type=int,
        default=2_000,
        help="at most this many tokens, 50 to 100,000 (default: 2000)",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="a page of Markdown instead of a prompt's block"
    )


def _run_command(args: argparse.Namespace) -> int:
    with Client(args.service) as client:
        text = client.known_tools(
            args.tool or None,
            namespace=args.namespace,
            max_tokens=args.max_tokens,
            format="markdown" if args.markdown else "prompt",
        )
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


command = Command(
    "known-tools",
    "print what is known about tools, for a prompt or for their documentation",
    _add_arguments,
    _run_command,
)
