"""The toolbox: call the fittest tool of a capability, go on when one fails, evolve what fails."""

from aftercall._generated.toolbox import Toolbox
from aftercall.toolbox.async_toolbox import AsyncToolbox
from aftercall.toolbox.rules import Attempted, CallResult, ResilientResult, Skipped

__all__ = ["AsyncToolbox", "Attempted", "CallResult", "ResilientResult", "Skipped", "Toolbox"]
