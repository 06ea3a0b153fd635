"""Events as calls of a function."""

import inspect
from collections.abc import Callable

from aftercall.errors import ConfigurationError
from aftercall.events.hand_over import COMPLAINTS
from aftercall.events.model import ToolCallEvent


class CallbackSink:
    """Calls a function with every event.

    It runs in the thread of the tool call, which waits for it: hand over what takes time. What it
    raises is logged by its type, once a minute, and goes no further.

    Args:
        function: takes an event; what it returns is ignored.

    Raises:
        ConfigurationError: it is a coroutine function, which nobody would await.
    """

    def __init__(self, function: Callable[[ToolCallEvent], object]) -> None:
        if inspect.iscoroutinefunction(function):
            raise ConfigurationError(
                "an event callback must be a plain function, nobody awaits it; pass one that puts "
                "the event into a queue, such as queue.put_nowait"
            )
        self._function = function

    def emit(self, event: ToolCallEvent) -> None:
        """Call it."""
        try:
            self._function(event)
        except Exception as error:  # noqa: BLE001  # any function of anybody
            COMPLAINTS.failed(type(self).__name__, error)
