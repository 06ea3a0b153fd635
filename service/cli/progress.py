"""Telling a person how far a long command is, every two seconds at most."""

import time
from collections.abc import Callable

_SAY_EVERY_S = 2.0


class Progress:
    """Says one line about records now and then.

    Args:
        say: told each line.
        clock: monotonic seconds.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._said = clock()

    def records(self, verb: str) -> Callable[[str, int], None]:
        """A function that is told a kind and how many of it are done, and says so with `verb`."""

        def told(kind: str, done: int) -> None:
            if (now := self._clock()) - self._said >= _SAY_EVERY_S:
                self._said = now
                self._say(f"{kind}: {done:,} {verb}")

        return told
