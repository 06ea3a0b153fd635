"""What happens to recorded executions in the background: encoded, sent, or put aside on disk."""

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass

from aftercall.client.endpoints import MAX_BODY_BYTES, encode
from aftercall.models import Execution
from aftercall.recording.delivery import Delivered, Delivery
from aftercall.recording.spool import Spool
from aftercall.recording.tally import LossReport
from aftercall.redaction import Redactor

_LOGGER = logging.getLogger("aftercall")

_SWEEP_S = 10.0
"""How often an idle courier looks for segments that dead processes left behind."""


@dataclass(slots=True)
class Counts:
    """What became of executions so far (see `RecorderStats`)."""

    sent: int = 0
    duplicates: int = 0
    rejected: int = 0
    dropped: int = 0


class Courier:
    """Carries executions from the queue to the service, or to the spool while it is away.

    One thread makes the rounds. `rescue` may be called from another one when that thread hangs in a
    request: what it holds is in `_hand` until it is acknowledged, and so can be put aside.
    """

    def __init__(
        self,
        queue: deque[Execution],
        *,
        redactor: Redactor | None,
        delivery: Delivery,
        spool: Spool | None,
        losses: LossReport,
        max_batch: int,
    ) -> None:
        self._queue = queue
        self._redactor = redactor
        self._delivery = delivery
        self._spool = spool
        self._losses = losses
        self._max_batch = max_batch
        self._hand: list[bytes] = []
        self._torn = 0
        self._disk_failed = False
        self._lock = threading.Lock()  # of _hand and counts
        self.counts = Counts()

    @property
    def idle_s(self) -> float:
        """Seconds after which the next round is due even if nothing is recorded."""
        return min(self._delivery.pause_s or _SWEEP_S, _SWEEP_S)

    def round(self, *, try_now: bool) -> None:
        """Deliver what the queue holds now, then what the spool holds.

        Args:
            try_now: ask the service even if it was away a moment ago.
        """
        if try_now:
            self._delivery.try_now()
        self._empty_queue()
        self._empty_spool()

    def all_acknowledged(self) -> bool:
        """Whether nothing of this recorder waits here or in the spool."""
        return not self._hand and not (self._spool and self._spool.holds_own())

    def rescue(self) -> None:
        """Put all that is not acknowledged into the spool, from whichever thread."""
        with self._lock:
            self._hand = self._hand.copy()  # another list: not the one that may be on its way
            while self._queue:
                self._encode_next()
        self._put_aside()

    def close(self) -> None:
        """Put aside or give up what is left."""
        self.rescue()
        with self._lock:
            self._lose(len(self._hand), "the service was away at the end, and there was no spool")
            self._hand = []
        if self._spool is not None:
            self._spool.close()

    def disconnect(self) -> None:
        """Close the client; for the thread that made the rounds, after the last one."""
        self._delivery.close()

    def _empty_queue(self) -> None:
        waiting = len(self._queue)
        while self._hand or waiting > 0:
            if not self._hand:
                waiting -= self._take(waiting)
            if not self._deliver_hand():
                return

    def _take(self, waiting: int) -> int:
        """Fill the hand with a request's worth; returns how many of `waiting` are done with."""
        taken = size = 0
        with self._lock:
            while taken < min(waiting, self._max_batch) and size < MAX_BODY_BYTES:
                if not self._queue:  # rescued meanwhile
                    return waiting
                size += self._encode_next()
                taken += 1
        return taken

    def _encode_next(self) -> int:
        """Move an execution from the queue to the hand; returns its bytes. Holds the lock."""
        # Encoding is plain Python: without this, whoever records could wait 5 ms for its turn.
        time.sleep(0)
        execution = self._queue.popleft()
        try:
            line = encode(execution, self._redactor)
        except Exception as error:  # noqa: BLE001  # what callers hand over, or change later, may be anything
            self.counts.rejected += 1
            self._losses.add(f"they could not be encoded ({type(error).__name__})", 1)
            return 0
        self._hand.append(line)
        return len(line)

    def _deliver_hand(self) -> bool:
        """Send what is in hand or put it aside; False when neither could be done."""
        # Behind what waits already: a repair is found by the order of failure and success.
        behind = self._spool is not None and self._spool.holds_own()
        if not behind and not self._delivery.pause_s:
            lines = self._hand
            done = self._delivery.send(lines)
            with self._lock:
                self._count(done)
                if self._hand is lines:
                    self._hand = done.unsent
        return self._put_aside()

    def _put_aside(self) -> bool:
        with self._lock:
            if not self._hand:
                return True
            if self._spool is None:
                return False
            try:
                dropped = self._spool.append(self._hand)
            except OSError as error:
                self._disk_trouble(error)
                return False
            self._disk_failed = False
            self._hand = []
            self._lose(
                dropped, "the spool was full; raise max_spool_bytes or bring the service back"
            )
            return True

    def _empty_spool(self) -> None:
        while self._spool is not None and not self._delivery.pause_s:
            try:
                if not self._send_oldest(self._spool):
                    return
            except OSError as error:
                self._disk_trouble(error)
                return
            self._empty_queue()  # or it would overflow while a long backlog is sent

    def _send_oldest(self, spool: Spool) -> bool:
        segment = spool.oldest()
        torn, self._torn = spool.torn - self._torn, spool.torn
        with self._lock:
            self._lose(torn, "a process was killed while it wrote them to the spool")
        if segment is None:
            return False
        with segment:
            done = self._delivery.send(segment.lines())
            if done.unsent:
                done.rejected = 0  # the segment stays whole, so they will be refused again
            else:
                segment.remove()
        with self._lock:
            self._count(done)
        return not done.unsent

    def _count(self, done: Delivered) -> None:
        self.counts.sent += done.sent
        self.counts.duplicates += done.duplicates
        self.counts.rejected += done.rejected
        self._losses.add(done.refusal, done.rejected)

    def _lose(self, number: int, reason: str) -> None:
        self.counts.dropped += number
        self._losses.add(reason, number)

    def _disk_trouble(self, error: OSError) -> None:
        if not self._disk_failed:
            _LOGGER.warning(
                "the spool cannot be used (%s); executions wait in memory", error.strerror
            )
        self._disk_failed = True
