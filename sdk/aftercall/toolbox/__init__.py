"""The toolbox: call the fittest tool of a capability, go on when one fails, evolve what fails."""

from aftercall.toolbox.async_toolbox import AsyncToolbox
from aftercall.toolbox.results import Attempted, CallResult, ResilientResult, Skipped
from aftercall.toolbox.sync_toolbox import Toolbox

__all__ = [
    "AsyncToolbox",
    "Attempted",
    "CallResult",
    "ResilientResult",
    "Skipped",
    "Toolbox",
]
