"""`aftercall mcp`: the service's tools for any MCP client, over stdio."""

import argparse

from aftercall.cli import Command
from aftercall.cli.status import add_service
from aftercall.client.transport import checked_base_url
from aftercall.explain import require_extra


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "MCP clients start it themselves. The service need not run yet; `aftercall serve` starts "
        "it, and serves the same tools itself at /mcp, for clients that speak HTTP."
    )
    add_service(parser)
    parser.add_argument(
        "--agent", metavar="NAME", help="name of callers that give none (default: the client's)"
    )
    parser.add_argument("--verbose", action="store_true", help="log more, to standard error")


def _run_command(args: argparse.Namespace) -> int:
    url = str(checked_base_url(args.service)).rstrip("/")
    with require_extra("mcp", "`aftercall mcp`"):
        from aftercall.mcp_server.server import serve_streams  # noqa: PLC0415  # the extra
    return serve_streams(url, agent=args.agent, verbose=args.verbose)


command = Command(
    "mcp",
    "serve suggest_fix, known_tools and others to an MCP client, over stdio",
    _add_arguments,
    _run_command,
)
