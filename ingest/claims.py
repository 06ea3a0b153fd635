"""Claims: which workspaces this process learns and embeds at the moment, each by a lease.

What a process has at hand of a workspace stays valid while nobody else has learned there. Every
holder takes the next token, so a line of tokens of our own without a gap says that nobody has.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ingest.holders import holder_id, retire
from ingest.leasing import Clock, LeaseKeeper, LeaseWatch
from mongo.records import Lease
from mongo.upkeep import Upkeep

REBUILD = "rebuild"
"""The lease of who learns everything anew; nobody else learns meanwhile."""

IDLE_S = 3.0
"""Seconds without work after which a workspace is given back."""

SLICE_S = 5.0
"""Seconds after which a workspace is offered to other processes, while another one waits here."""

_OFFER_S = 0.4
"""How long it is offered: others look each quarter of a second."""

_LOOK_S = 0.25
"""How long an answer whether a rebuild is on stays good."""

_MAX_HELD = 64
"""Each costs a write in a third of the ttl."""

_MAX_LINES = 10_000


def learning_lease(workspace: str) -> str:
    """The name of the lease of who learns and embeds a workspace."""
    return f"learning:{workspace}"


@dataclass(slots=True)
class _Hold:
    keeper: LeaseKeeper
    users: int = 0
    used_at: float = 0.0
    taken_at: float = 0.0
    is_stale: bool = False
    """To be given back before it is used again."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Line:
    since: int
    last: int


class Claims:
    """The `learning:` leases of one process.

    Args:
        store: where the leases are.
        ttl: seconds without a sign of life after which others may go on.
        for_rebuild: this is the rebuild: it claims in spite of its own lease, as many workspaces as
            there are, and gives none back before it is closed.
        is_shared: whether other processes may learn too, so that long work has to be shared out.
        clock: tells the time, in seconds that only grow.
    """

    def __init__(
        self,
        store: Upkeep,
        *,
        ttl: float,
        for_rebuild: bool = False,
        is_shared: bool = True,
        clock: Clock = time.monotonic,
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._for_rebuild = for_rebuild
        self._is_shared = is_shared
        self._clock = clock
        self._holder = holder_id()
        self._holds: dict[str, _Hold] = {}
        self._lines: dict[str, _Line] = {}
        self._offered: dict[str, float] = {}
        self._is_closed = False
        self._rebuild = LeaseWatch(store, REBUILD, ttl, clock=clock)
        self._rebuild_seen: tuple[float, bool] | None = None

    @property
    def held(self) -> list[Lease]:
        """What is held at the moment."""
        leases = (hold.keeper.lease for hold in self._holds.values())
        return [lease for lease in leases if lease is not None]

    def held_since(self, workspace: str) -> int | None:
        """The token from which on nobody else held the workspace, up to our latest claim of it."""
        line = self._lines.get(workspace)
        return None if line is None else line.since

    def is_in_living_hands(self, workspace: str) -> bool:
        """Whether another process was seen alive that has it, or has all for a rebuild."""
        hold = self._holds.get(workspace)
        return self._rebuild.has_beaten or (hold is not None and hold.keeper.is_in_living_hands)

    def is_held(self, lease: Lease) -> bool:
        """Whether a lease that `claim` returned is ours still, for sure by our own clock."""
        return any(each.name == lease.name and each.token == lease.token for each in self.held)

    async def claim(self, workspace: str) -> Lease | None:
        """The workspace's lease; None while another process has it, or is offered it.

        Raises:
            StoreError: when the store cannot say; it may be tried again.
        """
        if await self._is_rebuilding():
            await self._release(workspace)
            return None
        if self._offered.get(workspace, 0.0) > self._clock():
            return None
        if workspace not in self._holds:
            await self._make_room()
        if self._is_closed:
            return None
        hold = self._holds.get(workspace) or self._new(workspace)
        hold.used_at = self._clock()
        async with hold.lock:
            if self._holds.get(workspace) is not hold:  # given back meanwhile
                return None
            if hold.is_stale and not await self._renewed(hold):
                return None
            return hold.keeper.lease or await self._taken(workspace, hold)

    @asynccontextmanager
    async def using(self, workspace: str) -> AsyncIterator[Lease | None]:
        """As `claim`; it is not given back before the block ends."""
        lease = await self.claim(workspace)
        hold = self._holds.get(workspace)
        if lease is None or hold is None:
            yield None
            return
        hold.users += 1
        try:
            yield lease
        finally:
            hold.users -= 1
            hold.used_at = self._clock()

    def doubt(self, workspace: str) -> None:
        """Something went wrong with it: the next claim takes the lease anew, with what that cures.

        What was committed and not applied is applied by that; who took it meanwhile has it.
        """
        hold = self._holds.get(workspace)
        if hold is not None:
            hold.is_stale = True
        self._lines.pop(workspace, None)

    async def tend(self, waiting: Collection[str]) -> None:
        """Give back what others should have; to be called after each round over the queues.

        Args:
            waiting: workspaces with work.

        Raises:
            StoreError: when the store cannot be told; others get it when the ttl has passed.
        """
        if self._for_rebuild:
            return
        now = self._clock()
        self._offered = {each: until for each, until in self._offered.items() if until > now}
        is_rebuilding = bool(self._holds) and await self._is_rebuilding()
        for workspace, hold in list(self._holds.items()):
            is_idle = workspace not in waiting and now - hold.used_at >= IDLE_S
            if is_idle or is_rebuilding:
                await self._release(workspace)
        if self._is_shared and not self._offered:
            await self._offer(waiting, now)

    async def give_back_all(self) -> None:
        """Give back what is not in use; the next claim takes it anew.

        Raises:
            StoreError: when the store cannot be told; others get it when the ttl has passed.
        """
        if not self._for_rebuild:
            for workspace in list(self._holds):
                await self._release(workspace)

    async def close(self) -> None:
        """Give everything back, as far as the store can be told."""
        self._is_closed = True
        for hold in list(self._holds.values()):
            async with hold.lock:
                await hold.keeper.close()
        self._holds.clear()
        retire(self._holder)

    def _new(self, workspace: str) -> _Hold:
        keeper = LeaseKeeper(
            self._store,
            learning_lease(workspace),
            ttl=self._ttl,
            holder=self._holder,
            clock=self._clock,
        )
        hold = self._holds[workspace] = _Hold(keeper)
        return hold

    async def _taken(self, workspace: str, hold: _Hold) -> Lease | None:
        if not await hold.keeper.try_take():
            return None
        lease = hold.keeper.lease
        if lease is None:
            return None
        hold.taken_at = self._clock()
        line = self._lines.pop(workspace, None)
        is_ours = line is not None and line.last + 1 == lease.token
        since = line.since if line is not None and is_ours else lease.token
        self._lines[workspace] = _Line(since, lease.token)
        while len(self._lines) > _MAX_LINES:
            self._lines.pop(next(iter(self._lines)))
        return lease

    async def _renewed(self, hold: _Hold) -> bool:
        """Give a doubtful one back, unless it is in use."""
        if hold.users:
            return False
        await hold.keeper.give_back()
        hold.is_stale = False
        return True

    async def _release(self, workspace: str) -> None:
        """Give one back that is not in use."""
        hold = self._holds.get(workspace)
        if hold is None or hold.users or hold.lock.locked():
            return
        del self._holds[workspace]
        await hold.keeper.give_back()

    async def _offer(self, waiting: Collection[str], now: float) -> None:
        """Let others have the workspace that was worked on longest, while there is another one."""
        longest = [
            (hold.taken_at, workspace)
            for workspace, hold in self._holds.items()
            if hold.keeper.is_held and not hold.users and workspace in waiting
        ]
        if len(waiting) > 1 and longest and now - min(longest)[0] >= SLICE_S:
            _, workspace = min(longest)
            self._offered[workspace] = self._clock() + _OFFER_S
            await self._release(workspace)

    async def _make_room(self) -> None:
        if self._for_rebuild or len(self._holds) < _MAX_HELD:
            return
        unused = [(hold.used_at, name) for name, hold in self._holds.items() if not hold.users]
        if unused:
            await self._release(min(unused)[1])

    async def _is_rebuilding(self) -> bool:
        if self._for_rebuild:
            return False
        seen = self._rebuild_seen
        if seen is None or self._clock() - seen[0] >= _LOOK_S:
            seen = (self._clock(), await self._rebuild.is_held())
            self._rebuild_seen = seen
        return seen[1]
