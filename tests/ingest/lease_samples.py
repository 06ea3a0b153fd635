"""A store of leases in memory, and a clock that a test sets, for the tests of who holds what."""

from dataclasses import replace

from mongo.errors import StoreUnavailableError
from mongo.records import Lease


class Clock:
    """Seconds that only a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Leases:
    """What a store knows of leases, as `mongo.protocol.Leases` says; it can be away."""

    def __init__(self) -> None:
        self.rows: dict[str, Lease] = {}
        self.is_away = False
        self.answers_get_lost = False
        """Writes are done, and the caller hears an error."""

    async def read(self, name: str) -> Lease | None:
        self._reach()
        return self.rows.get(name)

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        self._reach()
        if self.rows.get(name) != seen:
            return None
        self.rows[name] = Lease(name, holder, token=seen.token + 1 if seen else 1)
        self._answer()
        return self.rows[name]

    async def renew_lease(self, lease: Lease) -> Lease | None:
        self._reach()
        now = self.rows.get(lease.name)
        if now is None or (now.token, now.holder, now.held) != (lease.token, lease.holder, True):
            return None
        self.rows[lease.name] = replace(now, beat=now.beat + 1)
        self._answer()
        return self.rows[lease.name]

    async def give_back(self, lease: Lease) -> None:
        self._reach()
        now = self.rows.get(lease.name)
        if now is not None and (now.token, now.holder) == (lease.token, lease.holder):
            self.rows[lease.name] = replace(now, held=False)
        self._answer()

    def writes(self, lease: Lease) -> bool:
        """Whether what this holder writes is taken."""
        now = self.rows.get(lease.name)
        return now is not None and now.token == lease.token

    def _reach(self) -> None:
        if self.is_away:
            raise StoreUnavailableError("away")

    def _answer(self) -> None:
        if self.answers_get_lost:
            raise StoreUnavailableError("the answer was lost")
