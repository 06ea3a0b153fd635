"""What is around a connection to a server: progress, and a breaker for calls that are lost."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fastmcp.server.context import Context
from mcp.shared.dispatcher import ProgressFnT

LOST_IN_A_ROW = 3
"""Calls of a tool that are lost one after the other until the next ones are not sent."""
LOST_OF_SERVER = 6
"""The same of all tools of a server together."""
_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 120.0
_MAX_TOOLS = 1_000


def progress_to(context: Context, token: str | int | None) -> ProgressFnT | None:
    """Where the progress of a call goes: to its client, where that asked for it with a token.

    It is heard in the task that reads from the server, where no request is the current one: so the
    request's own session is kept here.
    """
    if token is None:
        return None
    session, request_id = context.session, context.request_id

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await session.send_progress_notification(
            progress_token=token,
            progress=progress,
            total=total,
            message=message,
            related_request_id=request_id,
        )

    return report


class BreakerOpenError(Exception):
    """The call is not sent; the text says until when."""


@dataclass(slots=True)
class _Circuit:
    most: int
    lost: int = 0
    pause_s: float = 0.0
    closed_at: float = 0.0
    is_trying: bool = False


class Breaker:
    """Stops calls that would be lost on the way, by tool and by server.

    What counts is the transport alone: a connection that ends, a time-out. A tool that answers,
    whatever it says, closes it. After a pause (5 s, doubling to two minutes) one call is sent to
    see (half-open); its end decides for the next ones. `clock` gives seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._server = _Circuit(LOST_OF_SERVER)
        self._tools: OrderedDict[str, _Circuit] = OrderedDict()

    @contextmanager
    def guarding(self, tool: str, is_lost: Callable[[BaseException], bool]) -> Iterator[None]:
        """Around a call; `is_lost` says of what it raises whether it was lost on the way.

        Raises:
            BreakerOpenError: the call is not to be sent.
        """
        circuits = (self._server, self._of(tool))
        now = self._clock()
        for circuit, what in zip(circuits, ("this server", f"{tool!r}"), strict=True):
            left = circuit.closed_at - now
            if circuit.lost >= circuit.most and (left > 0 or circuit.is_trying):
                raise BreakerOpenError(
                    f"the last {circuit.lost} calls of {what} were lost on the way, so this one "
                    f"was not sent; one will be tried in {max(left, 1):.0f} s"
                )
        trying = [each for each in circuits if each.lost >= each.most]
        for circuit in trying:
            circuit.is_trying = True
        try:
            yield
        except BaseException as error:
            if isinstance(error, Exception):
                self._count(circuits, lost=is_lost(error))
            raise
        else:
            self._count(circuits, lost=False)
        finally:
            for circuit in trying:
                circuit.is_trying = False

    def _of(self, tool: str) -> _Circuit:
        if tool not in self._tools and len(self._tools) >= _MAX_TOOLS:
            self._tools.popitem(last=False)
        return self._tools.setdefault(tool, _Circuit(LOST_IN_A_ROW))

    def _count(self, circuits: tuple[_Circuit, ...], *, lost: bool) -> None:
        for circuit in circuits:
            circuit.lost = circuit.lost + 1 if lost else 0
            if circuit.lost < circuit.most:
                circuit.pause_s = 0.0
                continue
            circuit.pause_s = min(max(2 * circuit.pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            circuit.closed_at = self._clock() + circuit.pause_s
