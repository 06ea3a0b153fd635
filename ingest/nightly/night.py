"""What every step of a night is given: the store, the model when it is needed, who still holds it.

Steps call `check` before they write: whoever has lost the lease must not go on, for another one
does.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from aftercall.errors import AftercallError
from embeddings.protocol import Embedder
from mongo.protocol import LogStore
from retrieval.memory import Memory


class NightlyLostError(AftercallError):
    """Another process runs the nightly ingest by now; what was done so far holds."""


class Keeper(Protocol):
    """Knows whether the lease is still held (`ingest.leasing.LeaseKeeper`)."""

    @property
    def is_held(self) -> bool:
        """Whether it is, for sure."""
        ...


OnProgress = Callable[[str, int], None]
"""Told a step's name and how much of it is done, in its own unit."""


def _now() -> datetime:
    return datetime.now(UTC)


def _silent(step: str, done: int) -> None:
    del step, done


@dataclass(slots=True)
class Night:
    """One run.

    Args:
        store: what is worked on.
        memory: a reading side of its own over the store.
        open_model: opens the embedder when a step first needs it; whoever made it closes it.
        keeper: holds the lease `nightly`.
        retention: age at which executions expire; None for never.
        clock: tells the time.
        on_progress: told how far it is.
    """

    store: LogStore
    memory: Memory
    open_model: Callable[[], Awaitable[Embedder]]
    keeper: Keeper
    retention: timedelta | None = None
    clock: Callable[[], datetime] = _now
    on_progress: OnProgress = _silent
    _embedder: Embedder | None = field(default=None, init=False)

    async def embedder(self) -> Embedder:
        """The model, opened once.

        Raises:
            EmbeddingError: it cannot be opened; steps that need none go on.
        """
        if self._embedder is None:
            self._embedder = await self.open_model()
        return self._embedder

    def check(self) -> None:
        """Go on only as the one who does it.

        Raises:
            NightlyLostError: the lease is lost.
        """
        if not self.keeper.is_held:
            raise NightlyLostError(
                "another process took over the nightly ingest, as this one gave no sign of life "
                "for too long; what it did holds, and the other one goes on from there"
            )

    async def put_fact(self, name: str, value: str) -> None:
        """Set a fact, if this is still ours to do.

        Raises:
            NightlyLostError: the lease is lost; nothing was written.
            StoreError: the store does not take it.
        """
        self.check()
        await self.store.put_fact(name, value)
