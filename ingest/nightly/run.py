"""A night: every step in order, one run at a time over all processes, with a report at its end.

A step that fails does not keep the others from running: none needs what another one made tonight.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, Field

from aftercall.errors import AftercallError
from embeddings.protocol import EmbeddingError
from ingest.axes import AxisClusterer
from ingest.fitting_process import FittingError
from ingest.leasing import LeaseKeeper
from ingest.nightly.classifier import refit_classifiers
from ingest.nightly.expiry import expire
from ingest.nightly.night import Night, NightlyLostError
from ingest.nightly.patterns import consolidate
from ingest.nightly.statistics import count_usage
from ingest.nightly.vanished import remove_vanished
from ingest.recalibration import recalibrate
from mongo.errors import StoreError
from mongo.protocol import LogStore

LEASE = "nightly"

REPORT_FACT = "nightly"
"""The store's fact with the report of the latest run that came to its end."""

_LOOK_S = 0.5

log = logging.getLogger("aftercall.nightly")


class NightlyBusyError(AftercallError):
    """Another process runs the nightly ingest at the moment."""


class StepReport(BaseModel):
    """What one step did."""

    name: str
    seconds: float
    counts: dict[str, int] = Field(default_factory=dict)
    """What it did, in units of its own."""
    problem: str | None = None
    """Why it failed; None when it did not."""


class NightlyReport(BaseModel):
    """What a night came to."""

    started_at: datetime
    seconds: float
    steps: list[StepReport] = Field(default_factory=list)

    @property
    def failed(self) -> list[StepReport]:
        """The steps that did not come to their end."""
        return [each for each in self.steps if each.problem is not None]


@dataclass(frozen=True, slots=True)
class Step:
    """A step by its name; it returns what it counted."""

    name: str
    run: Callable[[Night], Awaitable[dict[str, int]]]


async def _calibrate(night: Night) -> dict[str, int]:
    night.check()
    return {"workspaces": len(await recalibrate(night.store, night.memory, clock=night.clock))}


async def _cluster_axes(night: Night) -> dict[str, int]:
    if not await night.store.workspaces_with_health():
        return {"workspaces": 0}
    night.check()
    clusterer = AxisClusterer(
        store=night.store, memory=night.memory, embedder=await night.embedder(), clock=night.clock
    )
    return {"workspaces": len(await clusterer.cluster_all())}


STEPS: tuple[Step, ...] = (
    Step("statistics", count_usage),
    Step("patterns", consolidate),
    Step("calibration", _calibrate),
    Step("classifier", refit_classifiers),
    Step("axes", _cluster_axes),
    Step("expiry", expire),
    Step("vanished", remove_vanished),
)
"""Expiry comes behind what reads the log; what it takes away was counted."""

STEP_NAMES = tuple(step.name for step in STEPS)


async def take_night(store: LogStore, ttl: float) -> LeaseKeeper:
    """The lease of the night, taken; the caller closes it.

    A holder that is gone is waited for as long as it takes to be sure of that, about `ttl` seconds.

    Raises:
        NightlyBusyError: another process lives and has it.
        StoreError: the store cannot say.
    """
    keeper = LeaseKeeper(store, LEASE, ttl=ttl)
    try:
        await _take(keeper, ttl)
    except BaseException:
        await keeper.close()
        raise
    return keeper


async def _take(keeper: LeaseKeeper, ttl: float) -> None:
    while not await keeper.try_take():
        if keeper.is_in_living_hands:
            raise NightlyBusyError(
                "another process runs the nightly ingest at the moment; nothing was done here"
            )
        await asyncio.sleep(min(_LOOK_S, ttl / 4))


async def run_night(night: Night, only: Collection[str] = ()) -> NightlyReport:
    """Run the steps; the report is kept in the store when none was stopped by a lost lease.

    Args:
        night: what is worked on.
        only: names of steps (`STEP_NAMES`), when not all are to be run. Such a run is none of the
            nights that others look for: its report is told, and not kept.

    Raises:
        NightlyLostError: another process goes on.
        StoreError: the report cannot be kept; everything was done.
    """
    started_at, started = night.clock(), time.monotonic()
    reports = [await _run(step, night) for step in STEPS if not only or step.name in only]
    report = NightlyReport(
        started_at=started_at, seconds=round(time.monotonic() - started, 1), steps=reports
    )
    if not only:
        await night.put_fact(REPORT_FACT, report.model_dump_json())
    return report


async def last_night(store: LogStore) -> NightlyReport | None:
    """The report of the latest run; None when there was none.

    Raises:
        StoreError: when the store cannot be read.
    """
    fact = await store.get_fact(REPORT_FACT)
    return NightlyReport.model_validate_json(fact) if fact else None


async def _run(step: Step, night: Night) -> StepReport:
    night.check()
    started = time.monotonic()
    night.on_progress(step.name, 0)
    counts: dict[str, int] = {}
    problem = None
    try:
        counts = await step.run(night)
    except NightlyLostError:
        raise
    except (StoreError, EmbeddingError, FittingError, OSError) as error:
        problem = " ".join(str(error).split())
        log.error("the nightly step %s failed: %s", step.name, problem)  # noqa: TRY400 - an operator's matter
    except Exception:
        problem = "an internal error; see the log"
        log.exception("the nightly step %s failed", step.name)
    seconds = round(time.monotonic() - started, 3)
    return StepReport(name=step.name, seconds=seconds, counts=counts, problem=problem)
