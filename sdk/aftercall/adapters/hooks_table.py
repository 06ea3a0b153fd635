"""Calls between their two hooks: a bounded table in which nothing stays for ever."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aftercall.adapters.asking import KnownTool
from aftercall.errors import ConfigurationError
from aftercall.reflection.reflected_call import ReflectedCall

MAX_OPEN = 10_000
"""Calls that may be between their two hooks; far more than one gateway process runs at once."""

EXPIRES_AFTER_S = 600.0
"""Seconds that a call may take; ContextForge gives a tool 60 s unless told otherwise."""


@dataclass(frozen=True, slots=True)
class HookStats:
    """How the hooks matched: `open` calls are between their hooks now, the rest are counts so far.

    `ended` had both hooks and are recorded. `expired`, whose second hook never came (the gateway
    blocked the call, or lost it), and `replaced`, whose key came again before that, are not.
    `unmatched` are second hooks without a first.
    """

    open: int
    ended: int
    expired: int
    replaced: int
    unmatched: int


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that has begun."""

    job: ReflectedCall[object]
    tool: KnownTool


class OpenCalls:
    """The calls by their keys; safe to share between threads.

    Args:
        max_open: most calls in it; past this the oldest is dropped.
        expires_after_s: seconds after which a call is dropped, at the next look.
        clock: seconds that only go up.

    Raises:
        ConfigurationError: a bound is not positive.
    """

    def __init__(
        self,
        *,
        max_open: int = MAX_OPEN,
        expires_after_s: float = EXPIRES_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_open < 1 or expires_after_s <= 0:
            raise ConfigurationError(
                f"max_open must be 1 or more and expires_after_s positive, "
                f"not {max_open} and {expires_after_s}"
            )
        self._max_open = max_open
        self._expires_after_s = expires_after_s
        self._clock = clock
        self._lock = threading.Lock()
        # Oldest first: a key that comes again is put last.
        self._open: dict[str, tuple[OpenCall, float]] = {}
        self._counts = {"ended": 0, "expired": 0, "replaced": 0, "unmatched": 0}

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def begin(self, key: str, call: OpenCall) -> None:
        """Put a call in."""
        with self._lock:
            now = self._clock()
            if self._open.pop(key, None) is not None:
                self._counts["replaced"] += 1
            self._open[key] = (call, now)
            self._drop_old(now)

    def end(self, key: str) -> OpenCall | None:
        """Take a call out; None when it is not there."""
        with self._lock:
            found = self._open.pop(key, None)
            self._counts["unmatched" if found is None else "ended"] += 1
        return None if found is None else found[0]

    def drop(self, key: str) -> None:
        """Take a call out that nobody will hear of again."""
        with self._lock:
            if self._open.pop(key, None) is not None:
                self._counts["expired"] += 1

    def stats(self) -> HookStats:
        """The counts."""
        with self._lock:
            self._drop_old(self._clock())
            return HookStats(open=len(self._open), **self._counts)

    def _drop_old(self, now: float) -> None:
        while self._open:
            key, (_, began) = next(iter(self._open.items()))
            if now - began <= self._expires_after_s and len(self._open) <= self._max_open:
                return
            del self._open[key]
            self._counts["expired"] += 1
