"""Counts of what a recorder did, and the warnings about what it lost."""

import logging
import threading
import time
from collections.abc import Callable
from itertools import count

_LOGGER = logging.getLogger("aftercall")


class Tally:
    """A count that callers raise without a lock, in well under a microsecond.

    `next` on an `itertools.count` is one step that no other thread can divide. Looking at the count
    raises it too, so the looks are counted and taken off again.
    """

    __slots__ = ("_lock", "_looks", "add")

    def __init__(self) -> None:
        ticks = count()
        self.add: Callable[[], int] = ticks.__next__
        self._looks = 0
        self._lock = threading.Lock()

    def value(self) -> int:
        """How often `add` was called."""
        with self._lock:
            ticks = self.add() - self._looks
            self._looks += 1
            return ticks


class LossReport:
    """Warns of lost executions: the first at once, further ones together once per interval."""

    def __init__(self, *, interval_s: float = 60.0) -> None:
        self._interval_s = interval_s
        self._next_at = 0.0  # time.monotonic()
        self._lost: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, reason: str, lost: int) -> None:
        """Note `lost` executions; `reason` is logged, so it holds nothing of what they said."""
        if lost:
            with self._lock:
                self._lost[reason] = self._lost.get(reason, 0) + lost

    def warn(self, *, now: bool = False) -> None:
        """Log what was noted, if the interval is over or `now` says so."""
        moment = time.monotonic()
        with self._lock:
            if not self._lost or (moment < self._next_at and not now):
                return
            self._next_at = moment + self._interval_s
            lost, self._lost = self._lost, {}
        for reason, number in lost.items():
            _LOGGER.warning("%d executions were not recorded: %s", number, reason)
