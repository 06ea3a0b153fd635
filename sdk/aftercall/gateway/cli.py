"""`aftercall gateway`: reflection in front of the MCP servers of a configuration file."""

import argparse
import os
import sys
from pathlib import Path
from typing import get_args

from aftercall.adapters.before_call import Mode
from aftercall.cli import Command
from aftercall.cli.status import add_service
from aftercall.client.transport import service_url
from aftercall.errors import ConfigurationError
from aftercall.explain import require_extra
from aftercall.gateway.config import GatewayConfig
from aftercall.redaction import Redactor
from aftercall.reflection.retry_rules import ReflectionPolicy
from aftercall.running import BASE_URL, URL_VARIABLE, joined_service


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="a JSON file with mcpServers, as clients have it",
    )
    add(
        "--server",
        metavar="NAME",
        help="instead of --config: one server, by its COMMAND after -- or by --url, as `aftercall "
        "install` writes it",
    )
    add("command_words", nargs="*", metavar="COMMAND", help="of --server, with its arguments")
    add("--url", default="", help="of --server, where it is reached by streamable HTTP")
    # The client's own words, kept for `aftercall uninstall`.
    add("--type", help=argparse.SUPPRESS)
    add("--url-key", help=argparse.SUPPRESS)
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME",
        help="of --url: a header, whose value is the environment variable of this name",
    )
    add("--mode", choices=get_args(Mode), help="of --server: how calls are handled")
    add_service(
        parser, otherwise=f"{URL_VARIABLE}, a service that runs for this user, or {BASE_URL}"
    )
    add(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="a file that holds the key of the service (default: AFTERCALL_API_KEY)",
    )
    add(
        "--transport",
        choices=("stdio", "http"),
        default="stdio",
        help="how agents reach the gateway (default: stdio)",
    )
    add("--host", default="127.0.0.1", help="address for http (default: 127.0.0.1)")
    add("--port", type=int, default=8800, help="port for http; 0 picks one (default: 8800)")
    add("--agent", metavar="NAME", help="name of callers that give none (default: the client's)")
    add("--context", metavar="TEXT", help="what callers work on that do not say so")
    add(
        "--no-trust-annotations",
        action="store_true",
        help="do not let a tool's own claims (read-only, idempotent) make a retry safe",
    )
    add(
        "--min-confidence",
        type=float,
        default=0.80,
        metavar="X",
        help="retry only on suggestions with a confidence above this (default: 0.80)",
    )
    add(
        "--min-failure-rate",
        type=float,
        default=0.0,
        metavar="X",
        help="leave failures of tools alone that fail less often than this share of their "
        "calls, 0 to 1; 0.05 is a common choice (default: 0, none)",
    )
    add(
        "--disable-agent",
        action="append",
        default=[],
        metavar="NAME",
        help="record this agent's calls, but leave its failures alone; may be repeated",
    )
    add(
        "--unrecorded-agent",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this agent's calls on, neither recorded nor reflected on; may be repeated",
    )
    add(
        "--secret-name",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name whose values are masked; may be repeated",
    )
    add(
        "--allowlist",
        action="append",
        default=[],
        metavar="TOOL=NAME,NAME",
        help="keep only these parameters of a tool, the others as type and hash; may be repeated",
    )
    add(
        "--linger",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="how long a service that this gateway starts stays after the last gateway left "
        "(default: 300)",
    )
    add(
        "--tools",
        choices=("all", "search"),
        default="all",
        help="what clients see: all tools, or three that find and call them (default: all)",
    )
    add(
        "--contracts",
        type=Path,
        metavar="FILE",
        help="add to descriptions of tools what calls keep getting wrong; FILE (JSON) holds it, is "
        'kept up to date, and stays as it is where it says "pinned": true',
    )
    add("--verbose", action="store_true", help="log more, to standard error")


def _make_redactor(secret_names: list[str], allowlists: list[str]) -> Redactor:
    kept: dict[str, list[str]] = {}
    for each in allowlists:
        tool, sign, names = each.partition("=")
        if not tool or not sign:
            raise ConfigurationError(f"--allowlist {each}: write TOOL=NAME,NAME, or TOOL= for none")
        kept.setdefault(tool, []).extend(name.strip() for name in names.split(",") if name.strip())
    return Redactor.create(extra_names=secret_names, allowlists=kept)


def _service_url(given: str | None) -> str:
    is_named = given is not None or os.environ.get(URL_VARIABLE)
    return service_url(given) if is_named else joined_service()


def _read_key(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--key-file {file}: cannot be read: {error}") from error


def _run_command(args: argparse.Namespace) -> int:
    if (args.config is None) == (args.server is None):
        raise ConfigurationError("say either --config FILE, or --server NAME -- COMMAND")
    config = (
        GatewayConfig.from_file(args.config)
        if args.config is not None
        else GatewayConfig.from_words(
            args.server, args.command_words, url=args.url, headers=args.header, mode=args.mode
        )
    )
    for line in config.left_out:
        print(f"aftercall: {line}", file=sys.stderr)  # noqa: T201  # a command line
    policy = ReflectionPolicy(
        min_confidence=args.min_confidence,
        min_failure_rate=args.min_failure_rate,
        trust_annotations=not args.no_trust_annotations,
        disabled_agents=frozenset(args.disable_agent),
        unrecorded_agents=frozenset(args.unrecorded_agent),
    )
    with require_extra("gateway", "the gateway"):
        from aftercall.gateway.server import serve_gateway  # noqa: PLC0415  # the extra
    return serve_gateway(
        config,
        _service_url(args.service),
        policy,
        api_key=_read_key(args.key_file),
        address=(args.host, args.port) if args.transport == "http" else None,
        agent=args.agent,
        purpose=args.context,
        redactor=_make_redactor(args.secret_name, args.allowlist),
        verbose=args.verbose,
        linger_s=args.linger,
        searches=args.tools == "search",
        contracts=args.contracts,
    )


command = Command(
    "gateway",
    "put reflection in front of the MCP servers of a configuration file",
    _add_arguments,
    _run_command,
)
