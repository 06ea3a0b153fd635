"""The steps of the nightly job, in order."""

import asyncio
import logging

from ingest import fold
from ingest.axes import AxisClusterer
from ingest.fitting_process import FittingProcess
from ingest.indexer import BATCH, learn_batch
from ingest.nightly.classifier import refit_classifiers
from ingest.nightly.job import NightlyJob, Step
from ingest.nightly.patterns import consolidate
from ingest.workspace import WorkspaceCache
from mongo.records import Row, encoded
from retrieval.confidence import ENOUGH_OUTCOMES, Scaling
from retrieval.memory import CALIBRATION, JUDGED

_LATEST = 20_000
"""Outcomes that calibration looks at; older ones speak of tools that have changed since."""

_ERASED_AT_ONCE = 2_000
"""Events in one deletion: a fraction of a second in which others wait."""

log = logging.getLogger("aftercall.nightly")


async def recalibrate(job: NightlyJob) -> dict[str, int]:
    """Fit each workspace's scaling of confidence anew on what became of its suggestions.

    A new scaling that is worse than the current one on the newest outcomes is not taken.

    Raises:
        NightlyLostError, StoreError: it cannot be read or written; it can be run again.
        FittingError: no process can be had for the fitting; likewise.
    """
    changed = 0
    async with FittingProcess() as fitting:
        for workspace in await job.knowledge.cursors():
            rows = await job.knowledge.scan(workspace, JUDGED.name, _LATEST, by="rank")
            judged = [each for row in rows if (each := JUDGED.decode(row)).estimate is not None]
            known = (await job.memory.calibration(workspace)).scaling
            enough = len(judged) >= ENOUGH_OUTCOMES
            fitted = await fitting.refit(known, judged) if enough else Scaling()
            if fitted.model_copy(update={"fitted_at": known.fitted_at}) == known:
                continue
            scaling = fitted.model_copy(update={"fitted_at": job.clock()})
            await job.commit(workspace, [Row(CALIBRATION, "", encoded(scaling))])
            changed += 1
            log.info(
                "confidence of workspace %s is scaled by %.2f and shifted by %.2f, "
                "from %d outcomes",
                workspace, scaling.slope, scaling.shift, scaling.outcomes,
            )  # fmt: skip
    return {"workspaces": changed}


async def cluster_axes(job: NightlyJob) -> dict[str, int]:
    """Cluster the boundary axes of every workspace anew."""
    books = [await job.memory.axis_book(each) for each in await job.knowledge.cursors()]
    if not any(book.axes for book in books):
        return {"workspaces": 0}
    job.check()
    clusterer = AxisClusterer(
        knowledge=lambda: job.knowledge,
        memory=job.memory,
        embedder=await job.embedder(),
        clock=job.clock,
    )
    return {"workspaces": len(await clusterer.cluster_all())}


async def expire(job: NightlyJob) -> dict[str, int]:
    """Fold events that are older than the retention into the base, and delete them a day later.

    The base never passes the cursor of the current generation. A kill in between repeats at most a
    batch that was not committed.
    """
    done = {"learned": 0, "events": 0}
    if job.retention is None:
        return done
    edge = job.clock() - job.retention
    base = await job.store.open_generation(0)
    for workspace, cursor in (await job.knowledge.cursors()).items():
        known = (await base.cursors()).get(workspace)
        position, cache = known.position if known else 0, WorkspaceCache(workspace)
        cache.serial = known.serial if known else 0
        while True:
            job.check()
            events = await job.store.events.after(workspace, position, BATCH)
            old = [e for e in events if e.received_at < edge and e.position <= cursor.position]
            if not old:
                break
            await learn_batch(job.store, base, cache, old, position)
            position = old[-1].position
            done["learned"] += len(old)
            job.on_progress("expiry", done["learned"])
        while erased := await job.store.events.erase(
            workspace, position, edge - fold.MARGIN, _ERASED_AT_ONCE
        ):
            done["events"] += erased
            await asyncio.sleep(0)
    return done


STEPS: tuple[Step, ...] = (
    Step("patterns", consolidate),
    Step("calibration", recalibrate),
    Step("classifier", refit_classifiers),
    Step("axes", cluster_axes),
    Step("expiry", expire),
)

RESULTS = ("patterns", "calibration", "classifier", "axes")
"""The steps whose results a new generation needs before it is current."""

STEP_NAMES = tuple(step.name for step in STEPS)
