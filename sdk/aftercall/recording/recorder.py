"""The recorder: takes executions over in microseconds and delivers them in the background."""

import atexit
import logging
import os
import re
import threading
import time
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from aftercall import errors
from aftercall.client import Client, transport
from aftercall.files import user_folder
from aftercall.models import MAX_BATCH, Execution
from aftercall.recording.spool import Spool
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

_LOGGER = logging.getLogger("aftercall")
STATE_FOLDER: Final = ""
"""Spool in `aftercall/spool` below `$XDG_STATE_HOME`, or `~/.local/state` when that is not set."""
_SWEEP_S = 10.0
"""How often an idle courier looks for segments that dead processes left behind."""
_MAX_RETRY_AFTER_S = 300.0
_WARN_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class RecorderStats:
    """What became of executions since the recorder was made.

    `recorded` were handed over. From these, and from what dead processes left in the spool: `sent`
    were stored by the service, `duplicates` it had already, `rejected` it refused or no one could
    encode, `dropped` found no space. `spooled` wait in the spool now, from whichever process.
    """

    recorded: int
    sent: int
    duplicates: int
    rejected: int
    spooled: int
    dropped: int


class Recorder(AbstractContextManager["Recorder"]):
    """Takes executions over at once and delivers them from a background thread.

    For synchronous and asynchronous programs alike: `record` takes some microseconds, never blocks
    and never raises. An execution is read later, in the other thread: do not change its parameters
    after handing it over.

    While the service is away, executions wait on disk, masked, oldest first, and survive the
    process; the next recorder on the folder sends them. Beyond `max_queue` executions in memory the
    newest are dropped, beyond `max_spool_bytes` on disk the oldest; both are counted in `stats()`,
    and logged once a minute.

    Forking: the child begins again, with an empty queue and counts at zero; what the parent had
    stays the parent's. A `client` that was passed in is shared with the parent, which HTTP
    connections do not stand: leave it out in a program that forks, or make the recorder after it.
    A child that ends by `os._exit`, as those of `multiprocessing` do, runs no exit handlers: flush.

    Args:
        client: sends; stays open after `close`. Without one the recorder makes its own.
        base_url: where the service is, for the recorder's own client; None takes the address of
            `AFTERCALL_URL`, else http://127.0.0.1:8799.
        api_key: its key, for the recorder's own client; None takes that of `AFTERCALL_API_KEY`.
        redactor: masks secrets; without one the client's, or the default one.
        spool_dir: folder for executions that wait, with one subfolder per service and key; None
            does without. One that cannot be written is a `ConfigurationError`, or for the default
            folder a warning.
        max_queue: most executions in memory that no one has dealt with.
        max_batch: most executions in one request, up to 1,000.
        max_spool_bytes: most bytes on disk, per service, over all processes.
        flush_interval_s: how long executions gather before they are sent, in seconds.
        quiet_s: seconds from now in which it is no news that the service is away, since it starts.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        redactor: Redactor | None = None,
        spool_dir: Path | str | None = STATE_FOLDER,
        max_queue: int = 10_000,
        max_batch: int = 500,
        max_spool_bytes: int = 64 * 1024 * 1024,
        flush_interval_s: float = 0.2,
        quiet_s: float = 0.0,
    ) -> None:
        self._client = client
        self._base_url = (
            str(transport.checked_base_url(base_url)) if client is None else client.base_url
        )
        self._api_key = transport.own_key(api_key)
        known_as = transport.key_id(self._api_key) if client is None else client.key_id
        self._redactor = redactor or (DEFAULT_REDACTOR if client is None else client.redactor)
        self._max_queue = max_queue
        self._max_batch = min(max_batch, MAX_BATCH)
        self._flush_interval_s = flush_interval_s
        self._spool = _open_spool(spool_dir, self._base_url, known_as, max_spool_bytes)
        self._quiet_until = time.monotonic() + quiet_s
        self._closed = False
        self._begin_process()
        self._start_thread()
        _RECORDERS.add(self)
        atexit.register(self.close)

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def record(self, execution: Execution) -> None:
        """Hand an execution over."""
        # No encoding, no system call unless the thread sleeps: see bench/recorder.py.
        with self._counting:
            self._recorded += 1
            if self._closed or len(self._queue) >= self._max_queue:
                self._refused += 1
                self._losses.add(
                    f"more than max_queue={self._max_queue} were waiting, or the recorder was "
                    "closed",
                    1,
                )
                return
        self._queue.append(execution)
        if not self._wake.is_set():
            try:
                self._start_thread()  # in the child of a fork there is no thread yet
            except RuntimeError:  # no further thread to be had: the next record tries again
                return
            self._wake.set()
        if len(self._queue) >= self._max_batch and not self._hurry.is_set():
            self._hurry.set()

    def stats(self) -> RecorderStats:
        """Return what became of the executions so far."""
        counts = self._courier.counts
        return RecorderStats(
            recorded=self._recorded,
            sent=counts["sent"],
            duplicates=counts["duplicates"],
            rejected=counts["rejected"],
            spooled=self._spool.count_waiting() if self._spool else 0,
            dropped=counts["dropped"] + self._refused,
        )

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Deliver all that was handed over so far, asking the service even if it was away.

        Returns:
            True when the service has acknowledged or refused all of it. False when the service is
            away, or did not answer within `timeout_s` seconds: what it has not acknowledged is in
            the spool then (without a spool: in memory).
        """
        if self._stopping:
            return self._courier.all_acknowledged()
        acknowledged: Future[bool] = Future()
        self._requests.append(acknowledged)
        self._start_thread()
        self._wake_now()
        try:
            return acknowledged.result(timeout_s)
        except TimeoutError:
            self._courier.rescue_all()
            return False

    def close(self, timeout_s: float = 5.0) -> None:
        """Flush, then stop; closing twice does nothing. Called at exit by itself."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        deadline = time.monotonic() + timeout_s
        if self._thread is not None:  # there is none in the child of a fork that recorded nothing
            self.flush(timeout_s)
            self._stopping = True
            self._wake_now()
            self._thread.join(max(0.05, deadline - time.monotonic()))
        self._courier.close()
        self._losses.warn_of_loss(now=True)

    def _begin_process(self, *, is_forked: bool = False) -> None:
        """Make all that a process must not share with the one it was forked from."""
        if is_forked and self._spool is not None:
            self._spool.forget_parent()
        self._queue: deque[Execution] = deque()
        self._wake = threading.Event()  # something is to be done
        self._hurry = threading.Event()  # no batch is to gather first
        self._requests: deque[Future[bool]] = deque()
        self._counting = threading.Lock()
        self._recorded = self._refused = 0
        self._losses = LossReport()
        self._courier = Courier(
            self._queue,
            self._connect_client,
            redactor=self._redactor,
            spool=self._spool,
            losses=self._losses,
            max_batch=self._max_batch,
            quiet_until=self._quiet_until,
        )
        self._stopping = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _connect_client(self) -> Client:
        return self._client or Client(
            self._base_url, api_key=self._api_key, retries=0, redactor=self._redactor
        )

    def _start_thread(self) -> None:
        with self._starting:
            if self._thread is None:
                self._wake_now()  # something may wait in the spool
                thread = threading.Thread(
                    target=self._run_thread, name="aftercall-recorder", daemon=True
                )
                thread.start()
                self._thread = thread

    def _wake_now(self) -> None:
        self._hurry.set()
        self._wake.set()

    def _run_thread(self) -> None:
        while not self._stopping:
            self._wait_for_work()
            requests = [self._requests.popleft() for _ in range(len(self._requests))]
            acknowledged = False
            try:
                self._courier.make_round(try_now=bool(requests))
                acknowledged = self._courier.all_acknowledged()
            except Exception as error:  # noqa: BLE001  # whatever happens, recording goes on
                # The traceback without the message, which may quote what was recorded.
                where = "".join(traceback.format_tb(error.__traceback__))
                kind = type(error).__name__
                _LOGGER.error("the recorder failed with %s:\n%s", kind, where)  # noqa: TRY400
            for request in requests:
                request.set_result(acknowledged)
            self._losses.warn_of_loss()
        if self._client is None:
            self._courier.close_client()

    def _wait_for_work(self) -> None:
        """Sleep until there is something to do, then let a batch gather."""
        if self._wake.wait(min(self._courier.pause_s or _SWEEP_S, _SWEEP_S)):
            self._hurry.wait(self._flush_interval_s)
        # Before the queue is looked at: what comes later finds them down and wakes the thread.
        self._wake.clear()
        self._hurry.clear()


def state_folder() -> Path:
    """Return the default spool folder."""
    try:
        return user_folder("XDG_STATE_HOME", ".local/state") / "spool"
    except RuntimeError as error:
        raise errors.ConfigurationError(
            f"no home for the spool ({error}); set XDG_STATE_HOME"
        ) from error


def _open_spool(
    spool_dir: Path | str | None, base_url: str, known_as: str, max_bytes: int
) -> Spool | None:
    if spool_dir is None:
        return None
    try:
        folder = Path(spool_dir) if spool_dir else state_folder()
        return Spool(folder / _service_folder(base_url, known_as), max_bytes=max_bytes)
    except errors.ConfigurationError as error:
        if spool_dir:
            raise
        _LOGGER.warning("while the service is away, executions wait in memory only: %s", error)
        return None


def _service_folder(base_url: str, known_as: str) -> str:
    """Return a folder per service and key, so that one's executions never come as another's."""
    url = transport.checked_base_url(base_url)
    host = re.sub(r"[^a-z0-9.]+", "-", url.netloc.decode().lower()).strip("-.")
    said = " ".join((base_url.rstrip("/"), known_as)).strip()
    return f"{host}-{sha256(said.encode()).hexdigest()[:8]}"


def count_waiting(base_url: str, known_as: str) -> tuple[int, Path]:
    """Return how many calls wait in the spool for a service and a key, and its folder.

    `known_as` is the id of the key; empty for calls that were recorded without one.
    """
    folder = state_folder() / _service_folder(base_url, known_as)
    return (Spool(folder, max_bytes=1).count_waiting() if folder.is_dir() else 0), folder


def forget_waiting(base_url: str, known_as: str, is_gone: Callable[[bytes], bool]) -> int:
    """Take calls that were not sent yet out of the spool for a service and a key; how many.

    `is_gone` is given each execution as JSON. One that is being sent at this moment is waited for.
    """
    spool = state_folder() / _service_folder(base_url, known_as)
    return Spool(spool, max_bytes=1).erase_executions(is_gone) if spool.is_dir() else 0


class LossReport:
    """Warns of lost executions: the first at once, further ones together once per minute."""

    def __init__(self) -> None:
        self._next_at = 0.0  # time.monotonic()
        self._lost: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, reason: str, lost: int) -> None:
        """Note `lost` executions; `reason` is logged, so it holds nothing of what they stated."""
        with self._lock:
            self._lost[reason] += lost

    def warn_of_loss(self, *, now: bool = False) -> None:
        """Log what was noted, if the minute is over or `now` states so."""
        with self._lock:
            if not self._lost or (time.monotonic() < self._next_at and not now):
                return
            self._next_at = time.monotonic() + _WARN_AGAIN_S
            lost, self._lost = self._lost, Counter()
        for reason, number in lost.items():
            _LOGGER.warning("%d executions were not recorded: %s", number, reason)


@dataclass(eq=False)
class Courier:
    """Carries executions from the queue to the service, or to the spool while it is away.

    One thread makes the rounds. `rescue` may be called from another one when that thread hangs in a
    request: what it holds is in `_hand` until it is acknowledged, and so can be put aside.

    `connect` is called when something is first sent: a client costs some 20 ms (TLS).
    """

    queue: deque[Execution]
    connect: Callable[[], Client]
    _: KW_ONLY
    redactor: Redactor | None
    spool: Spool | None
    losses: LossReport
    max_batch: int
    quiet_until: float = 0.0

    def __post_init__(self) -> None:
        self._client: Client | None = None
        self._hand: list[bytes] = []
        self._disk_failed = False
        self._is_warned = False
        self._failures = 0  # of requests, since the last answer
        self._retry_at = 0.0  # time.monotonic()
        self._lock = threading.Lock()  # of _hand and counts
        self.counts: Counter[str] = Counter()  # see `RecorderStats`

    @property
    def pause_s(self) -> float:
        """Seconds until the service should be tried again; 0 while it answers."""
        return max(0.0, self._retry_at - time.monotonic())

    def make_round(self, *, try_now: bool) -> None:
        """Deliver what the queue holds now, then what the spool holds.

        With `try_now` the service is asked even if it was away a moment ago.
        """
        if try_now:
            self._retry_at = 0.0
        self._empty_queue()
        try:
            while self.spool is not None and not self.pause_s and self._send_oldest(self.spool):
                self._empty_queue()  # or it would overflow while a long backlog is sent
        except OSError as error:
            self._disk_trouble(error)

    def all_acknowledged(self) -> bool:
        """Return whether nothing of this recorder waits here or in the spool."""
        return not self._hand and not (self.spool and self.spool.holds_own())

    def rescue_all(self) -> None:
        """Put all that is not acknowledged into the spool, from whichever thread."""
        with self._lock:
            self._hand = self._hand.copy()  # another list: not the one that may be on its way
            while self.queue:
                self._encode_next()
        self._put_aside()

    def close(self) -> None:
        """Put aside or give up what is left."""
        self.rescue_all()
        self._count_lost(len(self._hand), "the service was away at the end, and there was no spool")
        self._hand = []

    def close_client(self) -> None:
        """Close the client; for the thread that made the rounds, after the last one."""
        if self._client is not None:
            self._client.close()

    def _empty_queue(self) -> None:
        waiting = len(self.queue)
        while self._hand or (waiting > 0 and self.queue):
            if not self._hand:
                waiting -= self._take_lines(min(waiting, self.max_batch))
            # Behind what waits already: a repair is found by the order of failure and success.
            behind = self.spool is not None and self.spool.holds_own()
            if not behind and not self.pause_s:
                lines = self._hand
                unsent = self._send_lines(lines)
                with self._lock:
                    if self._hand is lines:
                        self._hand = unsent
            if not self._put_aside():
                return

    def _take_lines(self, most: int) -> int:
        """Fill the hand with a request's worth; returns how many were taken."""
        taken = size = 0
        with self._lock:
            while self.queue and taken < most and size < transport.MAX_BODY_BYTES:
                size += self._encode_next()
                taken += 1
        return taken

    def _encode_next(self) -> int:
        """Move an execution from the queue to the hand; returns its bytes. Holds the lock."""
        # Encoding is plain Python: without this, a recording thread could wait 5 ms for its turn.
        time.sleep(0)
        execution = self.queue.popleft()
        try:
            line = transport.encode_execution(execution, self.redactor)
        # What callers hand over, or change later, may be anything.
        except Exception as error:  # noqa: BLE001
            problem = f"they could not be encoded ({type(error).__name__})"
        else:
            if len(line) + 2 <= transport.MAX_BODY_BYTES:
                self._hand.append(line)
                return len(line)
            problem = f"an execution of {len(line):,} bytes is larger than a request may be"
        self.counts["rejected"] += 1
        self.losses.add(problem, 1)
        return 0

    def _put_aside(self) -> bool:
        """Spool what is in hand; False where it stays there."""
        with self._lock:
            if not self._hand:
                return True
            if self.spool is None:
                return False
            try:
                dropped = self.spool.append(self._hand)
            except OSError as error:
                self._disk_trouble(error)
                return False
            self._disk_failed = False
            self._hand = []
        self._count_lost(
            dropped, "the spool was full; raise max_spool_bytes or bring the service back"
        )
        return True

    def _send_oldest(self, spool: Spool) -> bool:
        with spool.lock_oldest() as segment:
            if segment is None or self._send_lines(segment.lines):
                return False
            segment.remove()
            return True

    def _send_lines(self, lines: Sequence[bytes]) -> list[bytes]:
        """Send executions until the service turns out to be away; what may be sent again."""
        groups = deque(
            transport.in_groups(
                lines,
                lambda line: len(line) + 1,
                most=self.max_batch,
                most_bytes=transport.MAX_BODY_BYTES - 2,  # the brackets of the list
            )
        )
        while groups and not self.pause_s:
            group = groups.popleft()
            try:
                self._client = self._client or self.connect()
                receipt = self._client.send(transport.record_encoded(group))
            except (
                errors.InvalidRequestError,
                errors.TooLargeError,
                errors.ConflictError,
            ) as error:
                # One bad record must not take its neighbours with it.
                if middle := len(group) // 2:
                    groups.extendleft((group[middle:], group[:middle]))
                else:
                    self._count_lost(
                        1, f"the service answered {error.status} {error.code}", "rejected"
                    )
            except errors.AftercallError as error:
                self._back_off(error)
                groups.appendleft(group)
            else:
                if self._is_warned:
                    _LOGGER.info("the service takes executions again")
                self._failures, self._is_warned = 0, False
                with self._lock:
                    self.counts.update(sent=receipt.accepted, duplicates=receipt.duplicates)
                named = "the service named them in its receipt"
                self._count_lost(len(receipt.rejected), named, "rejected")
        return [line for group in groups for line in group]

    def _back_off(self, error: errors.AftercallError) -> None:
        self._failures += 1
        wait_s = transport.full_jitter_s(self._failures, base_s=0.5, cap_s=30.0)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, errors.ApiError):
            # Without a word of what was sent: a service's message may quote its input.
            reason = f"it answered {error.status} {error.code}"
            wait_s = max(wait_s, min(error.retry_after_s or 0.0, _MAX_RETRY_AFTER_S))
        self._retry_at = time.monotonic() + max(wait_s, 0.01)
        if not self._is_warned and time.monotonic() >= self.quiet_until:
            self._is_warned = True
            _LOGGER.warning("the service takes no executions at the moment: %s", reason)

    def _count_lost(self, number: int, reason: str, how: str = "dropped") -> None:
        if number:
            with self._lock:
                self.counts[how] += number
            self.losses.add(reason, number)

    def _disk_trouble(self, error: OSError) -> None:
        if not self._disk_failed:
            _LOGGER.warning(
                "the spool cannot be used (%s); executions wait in memory", error.strerror
            )
        self._disk_failed = True


_RECORDERS: "weakref.WeakSet[Recorder]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for recorder in list(_RECORDERS):
        recorder._begin_process(is_forked=True)  # noqa: SLF001  # of this module


os.register_at_fork(after_in_child=_after_fork_in_child)
