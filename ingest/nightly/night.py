"""What every step of a night is given: the store, the model when it is needed, who still holds it.

Steps write through it: whoever has lost the lease must not go on, for another one does. The store
looks again in the step that writes, since a process may be stopped between a look and its write.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from aftercall.errors import AftercallError
from embeddings.protocol import Embedder
from mongo.errors import StoreFencedError
from mongo.protocol import LogStore
from mongo.records import Lease, PatternRow, UsageRow
from retrieval.memory import Memory


class NightlyLostError(AftercallError):
    """Another process runs the nightly ingest by now; what was done so far holds."""


class Keeper(Protocol):
    """Knows whether the lease is still held (`ingest.leasing.LeaseKeeper`)."""

    @property
    def is_held(self) -> bool:
        """Whether it is, for sure."""
        ...

    @property
    def lease(self) -> Lease | None:
        """What the store checks of it; None while it is not held."""
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
            raise _lost()

    async def put_fact(self, name: str, value: str) -> None:
        """Set a fact, if this is still ours to do.

        Raises:
            NightlyLostError: the lease is lost; nothing was written.
            StoreError: the store does not take it.
        """
        with self._writing() as lease:
            await self.store.put_fact(name, value, lease)

    async def put_usage(self, rows: Sequence[UsageRow]) -> None:
        """As `LogStore.put_usage`; raises as `put_fact`."""
        with self._writing() as lease:
            await self.store.put_usage(rows, lease)

    async def put_patterns(
        self, workspace: str, rows: Sequence[PatternRow], removed: Sequence[str]
    ) -> None:
        """As `LogStore.put_patterns`; raises as `put_fact`."""
        with self._writing() as lease:
            await self.store.put_patterns(workspace, rows, removed, lease)

    @contextmanager
    def _writing(self) -> Iterator[Lease | None]:
        self.check()
        try:
            yield self.keeper.lease
        except StoreFencedError as error:
            raise _lost() from error


def _lost() -> NightlyLostError:
    return NightlyLostError(
        "another process took over the nightly ingest, as this one gave no sign of life for too "
        "long; what it did holds, and the other one goes on from there"
    )
