"""`aftercall gateway`: reflection in front of the MCP servers of a configuration file."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from aftercall.cli.status import add_service, service_url
from aftercall.errors import ConfigurationError

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class GatewayCommand:
    """Runs the gateway until its client leaves (stdio) or a signal ends it."""

    name = "gateway"
    help = "put reflection in front of the MCP servers of a configuration file"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which servers, how it is reached, and how far it may go."""
        parser.add_argument(
            "--config", required=True, type=Path, metavar="FILE", help="a JSON file with mcpServers"
        )
        add_service(parser)
        parser.add_argument(
            "--transport",
            choices=("stdio", "http"),
            default="stdio",
            help="how agents reach the gateway (default: stdio)",
        )
        parser.add_argument(
            "--host", default="127.0.0.1", help="address for http (default: 127.0.0.1)"
        )
        parser.add_argument(
            "--port", type=int, default=8800, help="port for http; 0 picks one (default: 8800)"
        )
        parser.add_argument(
            "--agent", metavar="NAME", help="name of callers that give none (default: the client's)"
        )
        parser.add_argument(
            "--no-trust-annotations",
            action="store_true",
            help="do not let a tool's own claims (read-only, idempotent) make a retry safe",
        )
        parser.add_argument(
            "--min-confidence",
            type=float,
            default=0.80,
            metavar="X",
            help="retry only on suggestions with a confidence above this (default: 0.80)",
        )
        parser.add_argument(
            "--min-failure-rate",
            type=float,
            default=0.0,
            metavar="X",
            help="leave failures of tools alone that fail less often than this share of their "
            "calls, 0 to 1; 0.05 is a common choice (default: 0, none)",
        )
        parser.add_argument(
            "--disable-agent",
            action="append",
            default=[],
            metavar="NAME",
            help="record this agent's calls, but leave its failures alone; may be repeated",
        )
        parser.add_argument("--verbose", action="store_true", help="log more, to standard error")

    def run(self, args: argparse.Namespace) -> int:
        """Serve; 0 after a clean stop.

        Raises:
            ConfigurationError: names the file, server and field, or the extra to install.
        """
        from aftercall.gateway.config import GatewayConfig  # noqa: PLC0415  # only when it runs
        from aftercall.reflection.retry_rules import ReflectionPolicy  # noqa: PLC0415  # as above

        config = GatewayConfig.from_file(args.config)
        policy = ReflectionPolicy(
            min_confidence=args.min_confidence,
            min_failure_rate=args.min_failure_rate,
            trust_annotations=not args.no_trust_annotations,
            disabled_agents=frozenset(args.disable_agent),
        )
        try:
            from aftercall.gateway.serving import GatewayOptions, serve  # noqa: PLC0415  # the extra
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"the gateway needs {error.name}; install it with `pip install aftercall[gateway]`"
            ) from error
        options = GatewayOptions(
            service=service_url(args),
            transport=args.transport,
            host=args.host,
            port=args.port,
            agent=args.agent,
            policy=policy,
            verbose=args.verbose,
            traces=_wants_traces(os.environ),
        )
        return serve(config, options)


def _wants_traces(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's own variables name a collector that speaks OTLP over HTTP."""
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    exporters = environ.get("OTEL_TRACES_EXPORTER") or "otlp"  # empty is as unset, and may be many
    return (
        any(environ.get(name) for name in _ENDPOINTS)
        and protocol in (None, "", "http/protobuf")
        and "otlp" in (name.strip() for name in exporters.split(","))
        and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
    )


command = GatewayCommand()
