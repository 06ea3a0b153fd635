"""`aftercall mcp`: the service's tools for any MCP client, over stdio."""

import argparse
import json
import sys

from aftercall.cli import Command
from aftercall.cli.status import add_service, service_url
from aftercall.client.transport import checked_base_url
from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install

_EPILOG = """\
MCP clients start it themselves. What their configuration needs is printed by
  aftercall mcp --config-snippet
The service need not run yet; `aftercall serve` starts it. It serves the same tools
itself, at /mcp, for clients that speak HTTP:
  aftercall mcp --config-snippet http
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_service(parser)
    parser.add_argument(
        "--agent", metavar="NAME", help="name of callers that give none (default: the client's)"
    )
    parser.add_argument(
        "--config-snippet",
        nargs="?",
        const="stdio",
        choices=("stdio", "http"),
        help="print what an MCP client's configuration needs, and end (default: stdio)",
    )
    parser.add_argument("--verbose", action="store_true", help="log more, to standard error")


def _run(args: argparse.Namespace) -> int:
    url = str(checked_base_url(service_url(args))).rstrip("/")
    if args.config_snippet is not None:
        server: dict[str, object] = {"type": "http", "url": f"{url}/mcp"}
        if args.config_snippet == "stdio":
            server = _stdio_entry(url, args)
        text = json.dumps({"mcpServers": {"aftercall": server}}, indent=2)
        sys.stdout.write(text + "\n")
        return 0
    try:
        from aftercall.mcp_server.server import serve  # noqa: PLC0415  # the extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`aftercall mcp` needs {error.name}; {how_to_install('mcp')}"
        ) from error
    return serve(url, agent=args.agent, verbose=args.verbose)


def _stdio_entry(url: str, args: argparse.Namespace) -> dict[str, object]:
    # By this interpreter: a client that was not started from a shell finds no `aftercall`.
    agent = [] if args.agent is None else ["--agent", args.agent]
    words = ["-m", "aftercall.cli", "mcp", "--service", url, *agent]
    return {"command": sys.executable, "args": words}


command = Command(
    "mcp",
    "serve suggest_fix, known_tools and others to an MCP client, over stdio",
    _add_arguments,
    _run,
)
