"""The recorder: takes executions over in microseconds and delivers them in the background."""

import atexit
import logging
import os
import re
import threading
import time
import traceback
import weakref
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from aftercall.client import Client
from aftercall.client.transport import BASE_URL, checked_base_url
from aftercall.errors import ConfigurationError
from aftercall.files import user_folder
from aftercall.models import MAX_BATCH, Execution
from aftercall.recording.delivery import Courier, LossReport
from aftercall.recording.spool import Spool
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

_LOGGER = logging.getLogger("aftercall")
STATE_FOLDER: Final = ""
"""Spool in `aftercall/spool` below `$XDG_STATE_HOME`, or `~/.local/state` when that is not set."""


@dataclass(frozen=True, slots=True)
class RecorderStats:
    """What became of executions since the recorder was made.

    `recorded` were handed over. Of these, and of what dead processes left in the spool: `sent` were
    stored by the service, `duplicates` it had already, `rejected` it refused or nobody could
    encode, `dropped` found no room. `spooled` wait in the spool now, from whichever process.
    """

    recorded: int
    sent: int
    duplicates: int
    rejected: int
    spooled: int
    dropped: int


class Recorder:
    """Takes executions over at once and delivers them from a background thread.

    For synchronous and asynchronous programs alike: `record` takes some microseconds, never blocks
    and never raises. An execution is read later, in the other thread: do not change its parameters
    after handing it over.

    While the service is away, executions wait on disk, masked, oldest first, and survive the
    process; the next recorder on the folder sends them. Memory is bounded by `max_queue` executions
    and disk by `max_spool_bytes`. Beyond the one the newest are dropped, as what was taken over is
    kept; beyond the other the oldest, as what a tool does today says more than what it did last
    week. Both are counted in `stats()`, and logged once a minute.

    Forking: the child begins anew, with an empty queue and counts at zero; what the parent had
    stays the parent's. A `client` that was passed in is shared with the parent, which HTTP
    connections do not stand: leave it out in a program that forks, or make the recorder after it.
    A child that ends by `os._exit`, as those of `multiprocessing` do, runs no exit handlers: flush.

    Args:
        client: sends; stays open after `close`. Without one the recorder makes its own.
        base_url: where the service is, for the recorder's own client.
        redactor: masks secrets; without one the client's, or the default one.
        spool_dir: folder for executions that wait, with one subfolder per service; None does
            without. The default folder is given up with a warning when it cannot be written.
        max_queue: most executions in memory that nobody has dealt with.
        max_batch: most executions in one request, up to 1,000.
        max_spool_bytes: most bytes on disk, per service, over all processes.
        flush_interval_s: how long executions gather before they are sent, in seconds.

    Raises:
        ConfigurationError: a setting is out of range, or a given `spool_dir` cannot be written.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        base_url: str = BASE_URL,
        redactor: Redactor | None = None,
        spool_dir: Path | str | None = STATE_FOLDER,
        max_queue: int = 10_000,
        max_batch: int = 500,
        max_spool_bytes: int = 64 * 1024 * 1024,
        flush_interval_s: float = 0.2,
    ) -> None:
        if max_queue < 1 or not 1 <= max_batch <= MAX_BATCH:
            raise ConfigurationError(
                f"max_queue must be 1 or more and max_batch 1 to {MAX_BATCH}, "
                f"not {max_queue} and {max_batch}"
            )
        if max_spool_bytes < 1 or flush_interval_s < 0:
            raise ConfigurationError(
                "max_spool_bytes must be positive and flush_interval_s not negative, "
                f"not {max_spool_bytes} and {flush_interval_s}"
            )
        self._client = client
        self._base_url = str(checked_base_url(base_url)) if client is None else client.base_url
        client_redactor = DEFAULT_REDACTOR if client is None else client.redactor
        self._redactor = redactor or client_redactor
        self._max_queue = max_queue
        self._max_batch = max_batch
        self._flush_interval_s = flush_interval_s
        self._spool = _open_spool(spool_dir, self._base_url, max_spool_bytes)
        self._closed = False
        self._begin()
        self._start()
        _RECORDERS.add(self)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

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
                self._start()  # in the child of a fork there is no thread yet
            except RuntimeError:  # no further thread to be had: the next record tries again
                return
            self._wake.set()
        if len(self._queue) >= self._max_batch and not self._hurry.is_set():
            self._hurry.set()

    def stats(self) -> RecorderStats:
        """What became of the executions so far."""
        counts = self._courier.counts
        return RecorderStats(
            recorded=self._recorded,
            sent=counts["sent"],
            duplicates=counts["duplicates"],
            rejected=counts["rejected"],
            spooled=self._spool.waiting() if self._spool else 0,
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
        self._start()
        self._wake_now()
        try:
            return acknowledged.result(timeout_s)
        except TimeoutError:
            self._courier.rescue()
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
        self._losses.warn(now=True)

    def begin_anew(self) -> None:
        """For the child of a fork: leave to the parent what is the parent's."""
        if self._spool is not None:
            self._spool.forget()
        self._begin()

    def _begin(self) -> None:
        """All that a process must not share with the one it was forked from."""
        self._queue: deque[Execution] = deque()
        self._wake = threading.Event()  # something is to be done
        self._hurry = threading.Event()  # no batch is to gather first
        self._requests: deque[Future[bool]] = deque()
        self._counting = threading.Lock()
        self._recorded = self._refused = 0
        self._losses = LossReport()
        self._courier = Courier(
            self._queue,
            self._connect,
            redactor=self._redactor,
            spool=self._spool,
            losses=self._losses,
            max_batch=self._max_batch,
        )
        self._stopping = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _connect(self) -> Client:
        return self._client or Client(self._base_url, retries=0, redactor=self._redactor)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._wake_now()  # something may wait in the spool
                thread = threading.Thread(target=self._run, name="aftercall-recorder", daemon=True)
                thread.start()
                self._thread = thread

    def _wake_now(self) -> None:
        self._hurry.set()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping:
            self._wait()
            requests = [self._requests.popleft() for _ in range(len(self._requests))]
            acknowledged = False
            try:
                self._courier.round(try_now=bool(requests))
                acknowledged = self._courier.all_acknowledged()
            except Exception as error:  # noqa: BLE001  # whatever happens, recording goes on
                # The traceback without the message, which may quote what was recorded.
                where = "".join(traceback.format_tb(error.__traceback__))
                kind = type(error).__name__
                _LOGGER.error("the recorder failed with %s:\n%s", kind, where)  # noqa: TRY400
            for request in requests:
                request.set_result(acknowledged)
            self._losses.warn()
        if self._client is None:
            self._courier.disconnect()

    def _wait(self) -> None:
        """Sleep until there is something to do, then let a batch gather."""
        if self._wake.wait(self._courier.idle_s):
            self._hurry.wait(self._flush_interval_s)
        # Before the queue is looked at: what comes later finds them down and wakes the thread.
        self._wake.clear()
        self._hurry.clear()


def state_folder() -> Path:
    """The default spool folder."""
    try:
        return user_folder("XDG_STATE_HOME", ".local/state") / "spool"
    except RuntimeError as error:
        raise ConfigurationError(f"no home for the spool ({error}); set XDG_STATE_HOME") from error


def _open_spool(spool_dir: Path | str | None, base_url: str, max_bytes: int) -> Spool | None:
    if spool_dir is None:
        return None
    try:
        folder = Path(spool_dir) if spool_dir else state_folder()
        return Spool(folder / _subfolder(base_url), max_bytes=max_bytes)
    except ConfigurationError as error:
        if spool_dir:
            raise
        _LOGGER.warning("while the service is away, executions wait in memory only: %s", error)
        return None


def _subfolder(base_url: str) -> str:
    """A folder per service, so that one's executions are never sent to another."""
    url = checked_base_url(base_url)
    host = re.sub(r"[^a-z0-9.]+", "-", url.netloc.decode().lower()).strip("-.")
    return f"{host}-{sha256(base_url.rstrip('/').encode()).hexdigest()[:8]}"


_RECORDERS: "weakref.WeakSet[Recorder]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for recorder in list(_RECORDERS):
        recorder.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
