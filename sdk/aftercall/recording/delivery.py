"""Recorded executions in the background: encoded, sent to the service, or put aside on disk."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

from aftercall.client import Client
from aftercall.client.transport import MAX_BODY_BYTES, encode, full_jitter_s, record_encoded
from aftercall.errors import (
    AftercallError,
    ApiError,
    ConflictError,
    InvalidRequestError,
    TooLargeError,
)
from aftercall.models import Execution
from aftercall.recording.spool import Spool
from aftercall.redaction import Redactor

_LOGGER = logging.getLogger("aftercall")
_REFUSALS = (InvalidRequestError, TooLargeError, ConflictError)
"""Answers about what was sent: sending it again would change nothing."""
_MAX_RETRY_AFTER_S = 300.0


def body_sized(
    lines: Sequence[bytes], *, max_lines: int, max_bytes: int = MAX_BODY_BYTES
) -> Iterator[list[bytes]]:
    """The lines in order, in groups that each fit into one request.

    A line that is too large by itself comes alone.
    """
    group: list[bytes] = []
    size = 2  # the brackets of the list
    for line in lines:
        if group and (len(group) >= max_lines or size + len(line) + 1 > max_bytes):
            yield group
            group, size = [], 2
        group.append(line)
        size += len(line) + 1
    if group:
        yield group


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


_SWEEP_S = 10.0
"""How often an idle courier looks for segments that dead processes left behind."""


class Courier:
    """Carries executions from the queue to the service, or to the spool while it is away.

    One thread makes the rounds. `rescue` may be called from another one when that thread hangs in a
    request: what it holds is in `_hand` until it is acknowledged, and so can be put aside.

    `connect` is called when something is first sent: a client costs some 20 ms (TLS) that a process
    which only forks need not pay.
    """

    def __init__(
        self,
        queue: deque[Execution],
        connect: Callable[[], Client],
        *,
        redactor: Redactor | None,
        spool: Spool | None,
        losses: LossReport,
        max_batch: int,
    ) -> None:
        self._queue = queue
        self._connect = connect
        self._client: Client | None = None
        self._redactor = redactor
        self._spool = spool
        self._losses = losses
        self._max_batch = max_batch
        self._hand: list[bytes] = []
        self._disk_failed = False
        self._failures = 0  # of requests, since the last answer
        self._retry_at = 0.0  # time.monotonic()
        self._lock = threading.Lock()  # of _hand and counts
        self.counts: Counter[str] = Counter()  # see `RecorderStats`

    @property
    def pause_s(self) -> float:
        """Seconds until the service should be tried again; 0 while it answers."""
        return max(0.0, self._retry_at - time.monotonic())

    @property
    def idle_s(self) -> float:
        """Seconds after which the next round is due even if nothing is recorded."""
        return min(self.pause_s or _SWEEP_S, _SWEEP_S)

    def round(self, *, try_now: bool) -> None:
        """Deliver what the queue holds now, then what the spool holds.

        With `try_now` the service is asked even if it was away a moment ago.
        """
        if try_now:
            self._retry_at = 0.0
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

    def disconnect(self) -> None:
        """Close the client; for the thread that made the rounds, after the last one."""
        if self._client is not None:
            self._client.close()

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
        # Encoding is plain Python: without this, a recording thread could wait 5 ms for its turn.
        time.sleep(0)
        execution = self._queue.popleft()
        try:
            line = encode(execution, self._redactor)
        # What callers hand over, or change later, may be anything.
        except Exception as error:  # noqa: BLE001
            self.counts["rejected"] += 1
            self._losses.add(f"they could not be encoded ({type(error).__name__})", 1)
            return 0
        self._hand.append(line)
        return len(line)

    def _deliver_hand(self) -> bool:
        """Send what is in hand or put it aside; False when neither could be done."""
        # Behind what waits already: a repair is found by the order of failure and success.
        behind = self._spool is not None and self._spool.holds_own()
        if not behind and not self.pause_s:
            lines = self._hand
            unsent, done, refusal = self._send(lines)
            with self._lock:
                self._count(done, refusal)
                if self._hand is lines:
                    self._hand = unsent
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
        while self._spool is not None and not self.pause_s:
            try:
                if not self._send_oldest(self._spool):
                    return
            except OSError as error:
                self._disk_trouble(error)
                return
            self._empty_queue()  # or it would overflow while a long backlog is sent

    def _send_oldest(self, spool: Spool) -> bool:
        with spool.oldest() as segment:
            if segment is None:
                return False
            unsent, done, refusal = self._send(segment.lines)
            if unsent:
                done["rejected"] = 0  # the segment stays whole: they are refused again
            else:
                segment.remove()
        with self._lock:
            self._count(done, refusal)
        return not unsent

    def _send(self, lines: Sequence[bytes]) -> tuple[list[bytes], Counter[str], str]:
        """Send executions; nothing goes out any more once the service turned out to be away.

        Returns those that may be sent again, what became of the rest, and why something was
        rejected, without a word of what was sent.
        """
        unsent: list[bytes] = []
        done: Counter[str] = Counter()
        refusal = ""
        groups = deque(body_sized(lines, max_lines=self._max_batch))
        while groups:
            group = groups.popleft()
            if self.pause_s:
                unsent += group
            elif len(group) == 1 and len(group[0]) + 2 > MAX_BODY_BYTES:
                done["rejected"] += 1
                refusal = f"an execution of {len(group[0]):,} bytes is larger than a request may be"
            else:
                try:
                    self._client = self._client or self._connect()
                    receipt = self._client.send(record_encoded(group))
                except _REFUSALS as error:
                    # One bad record must not take its neighbours with it.
                    middle = len(group) // 2
                    if middle:
                        groups.extendleft((group[middle:], group[:middle]))
                    else:
                        done["rejected"] += 1
                        refusal = f"the service answered {error.status} {error.code}"
                except AftercallError as error:
                    self._back_off(error)
                    unsent += group
                else:
                    if self._failures:
                        _LOGGER.info("the service takes executions again")
                    self._failures = 0
                    rejected = len(receipt.rejected)
                    done.update(
                        sent=receipt.accepted, duplicates=receipt.duplicates, rejected=rejected
                    )
                    refusal = "the service named them in its receipt" if rejected else refusal
        return unsent, done, refusal

    def _back_off(self, error: AftercallError) -> None:
        self._failures += 1
        wait_s = full_jitter_s(self._failures, base_s=0.5, cap_s=30.0)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ApiError):
            # Without a word of what was sent: a service's message may quote its input.
            reason = f"it answered {error.status} {error.code}"
            wait_s = max(wait_s, min(error.retry_after_s or 0.0, _MAX_RETRY_AFTER_S))
        self._retry_at = time.monotonic() + max(wait_s, 0.01)
        if self._failures == 1:
            _LOGGER.warning("the service takes no executions at the moment: %s", reason)

    def _count(self, done: Counter[str], refusal: str) -> None:
        self.counts.update(done)
        self._losses.add(refusal, done["rejected"])

    def _lose(self, number: int, reason: str) -> None:
        self.counts["dropped"] += number
        self._losses.add(reason, number)

    def _disk_trouble(self, error: OSError) -> None:
        if not self._disk_failed:
            _LOGGER.warning(
                "the spool cannot be used (%s); executions wait in memory", error.strerror
            )
        self._disk_failed = True
