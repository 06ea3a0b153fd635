"""`aftercall tools`: register the tools of a list, and name those that are registered."""

import argparse
import sys
from pathlib import Path
from typing import Any

from aftercall.cli import Command, one_line, read_name
from aftercall.cli.status import add_service
from aftercall.client import Client
from aftercall.errors import ConfigurationError
from aftercall.json_values import read_json
from aftercall.models import MAX_TOOLS, NamedTool
from aftercall.tool_lists import read_tools

_STDIN = "-"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions: Any = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    text = (
        "register the tools of FILE: what `tools/list` of MCP answers, a list of functions for "
        "OpenAI or Anthropic, or OpenAPI 3 in JSON"
    )
    load = actions.add_parser("import", help=text, description=text)
    load.add_argument("file", metavar="FILE", help="- reads stdin")
    load.add_argument(
        "--server", type=read_name, metavar="NAME", help="the server that has the tools"
    )
    load.add_argument(
        "--dry-run", action="store_true", help="only read the file and name the tools"
    )
    add_service(load)
    load.set_defaults(do=_import_tools)
    text = "list the tools that are registered"
    shown = actions.add_parser("list", help=text, description=text)
    add_service(shown)
    shown.set_defaults(do=_list_tools)


def _run_command(args: argparse.Namespace) -> int:
    status: int = args.do(args)
    return status


def _import_tools(args: argparse.Namespace) -> int:
    tools = _read_file(args.file, args.server)
    if args.dry_run:
        for tool in tools:
            print(one_line(tool.tool_id))
        print(f"{len(tools):,} tools; nothing was sent")
        return 0
    registered = unchanged = 0
    rejected: list[str] = []
    with Client(args.service) as client:
        for start in range(0, len(tools), MAX_TOOLS):
            batch = tools[start : start + MAX_TOOLS]
            receipt = client.put_tools(batch)
            registered += receipt.registered
            unchanged += receipt.unchanged
            rejected += (
                f"{one_line(batch[each.index].tool_id)}: {one_line(each.message)}"
                for each in receipt.rejected
            )
    for line in rejected:
        print(f"aftercall: {line}", file=sys.stderr)
    print(f"{registered:,} registered, {unchanged:,} unchanged, {len(rejected):,} rejected")
    return 0 if registered + unchanged else 1


def _list_tools(args: argparse.Namespace) -> int:
    with Client(args.service) as client:
        for tool in client.list_tools():
            print(one_line(tool.tool_id))
    return 0


def _read_file(name: str, server: str | None) -> list[NamedTool]:
    try:
        raw = sys.stdin.buffer.read() if name == _STDIN else Path(name).read_bytes()
        value = read_json(raw.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{name} is no JSON ({error}); OpenAPI in YAML has to be converted first"
        ) from error
    try:
        return read_tools(value, server)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}; nothing was registered") from error


command = Command(
    "tools", "register the tools of a list, or name them", _add_arguments, _run_command
)
