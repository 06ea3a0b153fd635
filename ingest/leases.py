"""Leases: one process at a time does a thing, and another goes on when it is gone.

No clock of one machine is compared with that of another. The holder beats; who waits looks whether
the beat changes, by a clock of its own that never steps (monotonic). A holder that could not beat
for the ttl knows itself that it lost the lease, at the same time at the latest as others see it so.
Clocks that run at different rates, or a process that was stopped between looking and writing, are
what tokens are for: a store refuses what a former holder writes (`mongo.errors.StoreFencedError`).

A holder is a text: host, process and a random part. The host stands for one run of one machine and,
where processes are numbered apart in containers, for one container: two that share a host name must
never take each other for dead.
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from mongo.errors import StoreError
from mongo.protocol import Leases
from mongo.records import Lease

Clock = Callable[[], float]
_BEATS = 3
"""Beats in a ttl: two may fail before the lease is lost."""
_LOOKS = 8
log = logging.getLogger("aftercall.leases")


class _Sight(NamedTuple):
    token: int
    beat: int
    since: float


class BeatWatch:
    """Find out from what is seen of one lease whether its holder lives."""

    def __init__(self, ttl: float, clock: Clock = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._sight: _Sight | None = None
        self.has_beaten = False
        """Whether the holder was seen to beat since it was first seen."""

    def is_free(self, seen: Lease | None) -> bool:
        """Return whether the lease, as it was read just now, may be taken from its holder."""
        if seen is None or not seen.held or is_gone(seen.holder):
            self._sight, self.has_beaten = None, False
            return True
        now, last = self._clock(), self._sight
        if last is None or last.token != seen.token or last.beat != seen.beat:
            self.has_beaten = last is not None and last.token == seen.token
            self._sight = _Sight(seen.token, seen.beat, now)
            return False
        return now - last.since >= self._ttl


class LeaseKeeper:
    """Takes one lease and keeps it while it lives; for one task at a time.

    After `ttl` seconds without a beat others may take it. The maker of a `holder` retires it.
    """

    def __init__(
        self,
        leases: Leases,
        name: str,
        *,
        ttl: float,
        holder: str | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.name = name
        self._leases = leases
        self.ttl = ttl
        self._clock = clock
        self._own_holder = holder is None
        self._holder = holder_id() if holder is None else holder
        self._watch = BeatWatch(ttl, clock)
        self._lease: Lease | None = None
        self._confirmed = 0.0
        """When what the store last confirmed was asked for: it held the lease at that time."""
        self._beating: asyncio.Task[None] | None = None
        self._said = False

    @property
    def lease(self) -> Lease | None:
        """Return what is held, as it was last confirmed.

        None when nothing is, or no longer for sure.
        """
        return self._lease if self.is_held else None

    @property
    def is_held(self) -> bool:
        """Return whether it is held, for sure by our own clock."""
        return self._lease is not None and self._clock() - self._confirmed < self.ttl

    @property
    def is_held_elsewhere(self) -> bool:
        """Return whether someone else was seen to beat it since it was seen first."""
        return not self.is_held and self._watch.has_beaten

    async def try_take(self) -> bool:
        """Take it if no one alive has it; whether it is held now."""
        if self.is_held:
            return True
        await self._stop_beating()
        self._lease = None
        seen = await self._leases.read(self.name)
        # What we have by an answer that never came is ours to take again.
        is_ours = seen is not None and seen.holder == self._holder
        if not is_ours and not self._watch.is_free(seen):
            return False
        asked = self._clock()
        if (taken := await self._leases.take_lease(self.name, self._holder, seen)) is None:
            return False
        self._lease, self._confirmed = taken, asked
        self._watch = BeatWatch(self.ttl, self._clock)
        self._beating = asyncio.create_task(self._keep_renewing(), name=f"beats of {self.name}")
        return self.is_held

    async def wait(self, patience: float | None = None) -> bool:
        """Take it when no one alive has it, within `patience` seconds; whether it is held now."""
        started = self._clock()
        while not await self.try_take():
            self.say_waiting()
            pause = self.ttl / _LOOKS
            if patience is not None:
                left = patience - (self._clock() - started)
                if left <= 0:
                    return False
                pause = min(pause, left)
            await asyncio.sleep(pause)
        return True

    def say_waiting(self) -> None:
        """Log once that its last holder is looked for."""
        if not self._said:
            self._said = True
            log.warning(
                "the last %s job has not given its lease back: waiting some %.0f s to see whether "
                "it still runs", self.name, self.ttl,
            )  # fmt: skip

    async def renew_lease(self) -> bool:
        """Say once that we live; whether the lease is still held. The background does it by itself.

        After a `StoreError` it is held until the ttl has passed.
        """
        if (held := self._lease) is None:
            return False
        asked = self._clock()
        beaten = await self._leases.renew_lease(held)
        now = self._lease
        if now is None or now.token != held.token:  # given back or taken again meanwhile
            return self.is_held
        if beaten is None:
            self._lease = None
        else:
            # Answers may come in another order than they were asked for.
            self._lease = max(now, beaten, key=lambda each: each.beat)
            self._confirmed = max(self._confirmed, asked)
        return self.is_held

    async def give_back(self) -> None:
        """Let others have it at once; nothing when it is not held."""
        await self._stop_beating()
        held, self._lease = self._lease, None
        if held is not None:
            await self._leases.give_back(held)

    async def close(self) -> None:
        """Give it back, if the store can be reached; others of this host need not wait."""
        try:
            await self.give_back()
        except StoreError as error:
            log.warning("the lease %s was not given back: %s", self.name, error)
        finally:
            if self._own_holder:
                retire_holder(self._holder)

    async def _keep_renewing(self) -> None:
        """Beat as long as it is held; a beat that gets no answer does not hold up the next one."""
        period = self.ttl / _BEATS
        pause = period
        under_way: set[asyncio.Task[bool]] = set()
        try:
            while True:
                await asyncio.sleep(pause)
                if not self.is_held:
                    break
                began = time.monotonic()
                beat = asyncio.create_task(self._try_beat(), name=f"beat of {self.name}")
                under_way.add(beat)
                beat.add_done_callback(under_way.discard)
                await asyncio.wait([beat], timeout=period)
                is_failed = beat.done() and not beat.result()
                spent = time.monotonic() - began
                pause = period / 4 if is_failed else max(0.0, period - spent)
        finally:
            for beat in under_way:
                beat.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        why = (
            "another process has it"
            if self._lease is None
            else f"no sign of life came through for {self.ttl:g} s"
        )
        log.warning("the lease %s is lost: %s", self.name, why)

    async def _try_beat(self) -> bool:
        """Beat once; whether the store answered."""
        try:
            await self.renew_lease()
        except StoreError as error:
            log.warning("the lease %s could not be kept alive yet: %s", self.name, error)
            return False
        return True

    async def _stop_beating(self) -> None:
        task, self._beating = self._beating, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])


_ours: set[str] = set()
"""Holders of this process that were not retired."""


def holder_id() -> str:
    """Return a new holder of this process.

    `host/pid/random`. Retire it when it is not used any more.
    """
    made = f"{_host_name()}/{os.getpid()}/{secrets.token_hex(6)}"
    _ours.add(made)
    return made


def retire_holder(holder: str) -> None:
    """Say that a holder of this process is no more: what it still holds may be taken at once."""
    _ours.discard(holder)


def is_gone(holder: str) -> bool:
    """Return whether a holder certainly lives no more.

    False where that cannot be shown from here.
    """
    host, _, rest = holder.partition("/")
    pid, _, _ = rest.partition("/")
    if host != _host_name() or not pid.isascii() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return holder not in _ours  # of an earlier process of the same number, or retired
    return not _is_alive(int(pid))


def _is_alive(pid: int) -> bool:
    if os.name != "posix" or not 0 < pid < 2**31:
        return True  # elsewhere asking would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # someone else's
        return True
    return True


@cache
def _host_name() -> str:
    """Return the host's name with what identifies this run of it."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    run = sha256("\x1f".join(parts).encode()).hexdigest()[:8]
    return f"{socket.gethostname().replace('/', '-')}~{run}"
