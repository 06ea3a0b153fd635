"""Handing events over to sinks: one at a time, in one order for all, whatever a sink does."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from aftercall.errors import ConfigurationError
from aftercall.events.model import ToolCallEvent
from aftercall.events.sink import CallSink, EventSink, FinishedCall, Sink

_LOGGER = logging.getLogger("aftercall")

Item: TypeAlias = ToolCallEvent | FinishedCall


class Complaints:
    """Says that something of ours failed: by its kind, never by its words, and once a minute.

    For all requests together, since each has sinks that others have too. Kinds are names of
    classes, so there are few.
    """

    def __init__(self, *, interval_s: float = 60.0) -> None:
        self._interval_s = interval_s
        self._next_at: dict[str, float] = {}  # time.monotonic()
        self._lock = threading.Lock()

    def failed(self, owner: str, error: Exception) -> None:
        """`owner` raised `error`, whose text may quote an event and so is not logged."""
        kind = type(error).__name__
        moment = time.monotonic()
        with self._lock:
            if moment < self._next_at.get(owner, 0.0):
                return
            self._next_at[owner] = moment + self._interval_s
        _LOGGER.warning(
            "%s failed with %s while it took an event over; the call is not affected", owner, kind
        )

    def forget(self) -> None:
        """Say the next failure of everybody at once."""
        with self._lock:
            self._next_at.clear()


COMPLAINTS = Complaints()


class HandOver:
    """Hands the events of one request over.

    Every sink has taken an event before the next one is handed to any of them. When `add` returns,
    its event has been handed over, except where a sink itself adds one while it takes another:
    that one follows when all sinks have the present one.

    Args:
        sinks: told in their order.

    Raises:
        ConfigurationError: one of them is no sink.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        for sink in sinks:
            if not isinstance(sink, EventSink | CallSink):
                raise ConfigurationError(
                    f"a sink has a method emit(event) or finished(call), {type(sink).__name__} has "
                    "neither; wrap a function in CallbackSink"
                )
        self._event_sinks = [sink for sink in sinks if isinstance(sink, EventSink)]
        self._call_sinks = [sink for sink in sinks if isinstance(sink, CallSink)]
        # Re-entrant: a callback may plan the next call.
        self.lock = threading.RLock()
        self._waiting: deque[Item] = deque()
        self._is_handing_over = False

    @property
    def wants_calls(self) -> bool:
        """Whether somebody takes whole calls."""
        return bool(self._call_sinks)

    def add(self, *items: Item) -> None:
        """Hand items over, in this order. Never raises what a sink raises."""
        with self.lock:
            self._waiting.extend(items)
            if self._is_handing_over:  # called by a sink
                return
            self._is_handing_over = True
            try:
                while self._waiting:
                    self._tell(self._waiting.popleft())
            finally:
                self._is_handing_over = False

    def _tell(self, item: Item) -> None:
        if isinstance(item, FinishedCall):
            for call_sink in self._call_sinks:
                try:
                    call_sink.finished(item)
                except Exception as error:  # noqa: BLE001  # any sink of anybody
                    COMPLAINTS.failed(type(call_sink).__name__, error)
            return
        for event_sink in self._event_sinks:
            try:
                event_sink.emit(item)
            except Exception as error:  # noqa: BLE001  # as above
                COMPLAINTS.failed(type(event_sink).__name__, error)
