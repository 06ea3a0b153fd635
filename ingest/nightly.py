"""The nightly job: what is consolidated once a day, one run at a time over all processes.

Every step makes its results again from what was learned, and writes them under the lease: one who
has lost it must not go on, for another one does. A step that fails does not keep the others from
running: none needs what another one made tonight.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, Field

from aftercall.errors import AftercallError
from embeddings.protocol import Embedder
from ingest.leases import LeaseKeeper
from mongo.errors import StoreError, StoreFencedError
from mongo.protocol import Knowledge, Store
from mongo.records import Commit, Removal, Row
from retrieval.knowledge.memory import Memory

LEASE, REBUILD = "nightly", "rebuild"
REPORT_FACT = "nightly"
"""The store's fact with the report of the latest run that came to its end."""
DAYS_LEFT = "days left"
"""Counted by the expiry: days' worth of events that are for later runs."""
_LOOK_S = 0.5
log = logging.getLogger("aftercall.nightly")


class NightlyBusyError(AftercallError):
    """Another process runs the nightly job at the moment."""


class NightlyLostError(AftercallError):
    """Another process runs the nightly job by now; what was done so far holds."""


OnProgress = Callable[[str, int], None]
"""Given a step's name and how much of it is done, in its own unit."""


@dataclass(slots=True)
class NightlyJob:
    """One run: on a generation, with a reading side of its own over it.

    `open_model` is called when a step first needs the embedder, which its maker closes; `keeper`
    holds the lease, and is `None` where no one else can be at it, as in a rebuild; events expire at
    the age of `retention`, at most a day's worth a run unless `expire_all`.
    """

    store: Store
    memory: Memory
    open_model: Callable[[], Awaitable[Embedder]]
    keeper: LeaseKeeper | None
    knowledge: Knowledge
    retention: timedelta | None = None
    expire_all: bool = False
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_progress: OnProgress = lambda *_: None
    _embedder: Embedder | None = field(default=None, init=False)

    async def open_embedder(self) -> Embedder:
        """Return the model, opened once."""
        if self._embedder is None:
            self._embedder = await self.open_model()
        return self._embedder

    def check_lease(self) -> None:
        """Go on only as the one who does it."""
        if self.keeper is not None and not self.keeper.is_held:
            raise NightlyLostError(_LOST)

    async def commit(
        self,
        workspace: str,
        put: Sequence[Row] = (),
        removed: Sequence[Removal] = (),
        *,
        lasts: bool = False,
    ) -> None:
        """Write results, if this is still ours to do; with `lasts` as `Commit.lasts`."""
        self.check_lease()
        lease = self.keeper.lease if self.keeper else None
        commit = Commit(workspace, list(put), list(removed), lease=lease, lasts=lasts)
        try:
            serial = await self.knowledge.commit(commit)
        except StoreFencedError as error:
            raise NightlyLostError(_LOST) from error
        self.memory.forget_rows(workspace, [(row.kind, row.key) for row in put], serial)


_LOST = (
    "another process took over the nightly job, as this one gave no sign of life for too long, or "
    "all was learned anew meanwhile (`aftercall rebuild`); what it did holds, and the other one, "
    "or the next run, goes on from there"
)


class StepReport(BaseModel):
    """What one step did."""

    name: str
    seconds: float
    counts: dict[str, int] = Field(default_factory=dict)
    problem: str | None = None


class NightlyReport(BaseModel):
    """What a run came to."""

    started_at: datetime
    seconds: float
    steps: list[StepReport] = Field(default_factory=list)

    @property
    def is_behind(self) -> bool:
        """Return whether events are left that are older than the retention."""
        return any(each.counts.get(DAYS_LEFT) for each in self.steps)

    @property
    def failed(self) -> list[StepReport]:
        """Steps that did not come to their end."""
        return [each for each in self.steps if each.problem is not None]


Step = Callable[[NightlyJob], Awaitable[dict[str, int]]]
"""Returns what it counted."""


async def take_lease(store: Store, ttl: float, name: str = LEASE) -> LeaseKeeper:
    """Return the lease of the nightly job, or another one, taken; the caller closes it.

    A holder that is gone is waited for as long as it takes to be sure of that, about `ttl` seconds.
    """
    keeper = LeaseKeeper(store.leases, name, ttl=ttl)
    try:
        await _take_lease(keeper, ttl)
    except BaseException:
        await keeper.close()
        raise
    return keeper


async def _take_lease(keeper: LeaseKeeper, ttl: float) -> None:
    while not await keeper.try_take():
        if keeper.is_held_elsewhere:
            raise NightlyBusyError(
                f"another process runs the {keeper.name} job at the moment; nothing was done here"
            )
        keeper.say_waiting()
        await asyncio.sleep(min(_LOOK_S, ttl / 4))


async def is_rebuilding(store: Store, ttl: float) -> bool:
    """Return whether anyone alive does.

    Who begins after this was asked begins with the base as it is.
    """
    if (lease := await store.leases.read(REBUILD)) is None or not lease.held:
        return False
    try:
        await (await take_lease(store, ttl, REBUILD)).close()
    except NightlyBusyError:
        return True
    return False


async def run_steps(job: NightlyJob, steps: Mapping[str, Step]) -> NightlyReport:
    """Run the steps in their order; the report is kept where it is of a run that others look for.

    After a `NightlyLostError` another process goes on, and no report is kept; after a `StoreError`
    all was done without one.
    """
    started_at, started = job.clock(), time.monotonic()
    reports = [await _run_step(name, step, job) for name, step in steps.items()]
    seconds = round(time.monotonic() - started, 1)
    report = NightlyReport(started_at=started_at, seconds=seconds, steps=reports)
    if job.keeper is not None:
        await job.store.metadata.put(REPORT_FACT, report.model_dump_json())
    return report


async def last_report(store: Store) -> NightlyReport | None:
    """Return the report of the latest run; None when there was none."""
    fact = await store.metadata.get(REPORT_FACT)
    return NightlyReport.model_validate_json(fact) if fact else None


async def _run_step(name: str, step: Step, job: NightlyJob) -> StepReport:
    job.check_lease()
    started = time.monotonic()
    job.on_progress(name, 0)
    counts: dict[str, int] = {}
    problem = None
    try:
        counts = await step(job)
    except NightlyLostError:
        raise
    except (StoreError, AftercallError, OSError) as error:
        problem = " ".join(str(error).split())
        # The operator reads it in one line, without a traceback.
        log.error("the nightly step %s failed: %s", name, problem)  # noqa: TRY400
    except Exception:
        problem = "an internal error; see the log"
        log.exception("the nightly step %s failed", name)
    seconds = round(time.monotonic() - started, 3)
    return StepReport(name=name, seconds=seconds, counts=counts, problem=problem)
