"""`aftercall demo`: failed calls of real tools get their corrections."""

import argparse
import asyncio
import sys
from pathlib import Path


class DemoCommand:
    """Plays scripted agents against real MCP servers behind the gateway."""

    name = "demo"
    help = "watch failed calls of real tools get their corrections"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""
        parser.add_argument(
            "--keep", type=Path, metavar="DIR", help="leave the demo's data and logs in DIR"
        )

    def run(self, args: argparse.Namespace) -> int:
        """Play the demo; 1 when a process did not come up."""
        try:
            from rich.console import Console

            from service.demo.run import run_demo
            from service.demo.stage import StageError
        except ImportError as error:
            print(
                f"aftercall: the demo needs {error.name}; "
                "install the extra: pip install 'aftercall-service[demo,model]'",
                file=sys.stderr,
            )
            return 1
        try:
            asyncio.run(run_demo(Console(), keep=args.keep))
        except StageError as error:
            print(f"aftercall: {error}", file=sys.stderr)
            return 1
        return 0


command = DemoCommand()
