"""`aftercall rebuild`: forget what was learned, and learn it again from the log."""

import argparse

from service.cli.options import add_data_dir, add_logging, say, settings_from


class RebuildCommand:
    """Makes vectors, profiles and rules anew; the log is the truth and stays as it is."""

    name = "rebuild"
    help = "learn everything again from the log, such as after changing the embedding model"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose log."""
        add_data_dir(parser)
        add_logging(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Rebuild with progress.

        Raises:
            AftercallError: why it cannot, such as a running service, and the cure.
        """
        import asyncio  # heavy imports wait: `aftercall --help` loads this module

        from service.logs import configure_logging
        from service.rebuilding import rebuild
        from service.startup import one_line

        settings = settings_from(args)
        configure_logging(settings.log)
        with one_line(settings.data.dir):
            done = asyncio.run(rebuild(settings, say))
        print(f"aftercall: rebuilt {settings.data.dir} from {done:,} records", flush=True)
        return 0


command = RebuildCommand()
