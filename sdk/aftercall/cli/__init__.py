"""The command line `aftercall`: the frame, and the commands of the SDK."""

from aftercall.cli.frame import Command, main

__all__ = ["Command", "main"]
