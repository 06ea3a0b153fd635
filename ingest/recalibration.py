"""Recalibration: each workspace's confidence, fitted anew on what became of its suggestions.

An edge of its own for the nightly run: reads outcomes, fits (pure), stores one small fact.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from ingest.fitting_process import FittingProcess
from mongo.protocol import LogStore
from retrieval.confidence import ENOUGH_OUTCOMES, Scaling
from retrieval.memory import Memory, calibration_fact

_LATEST = 20_000
"""Outcomes that are looked at; older ones speak of tools that have changed since."""

log = logging.getLogger("aftercall.calibration")


def _now() -> datetime:
    return datetime.now(UTC)


async def recalibrate(
    store: LogStore, memory: Memory, *, clock: Callable[[], datetime] = _now
) -> dict[str, Scaling]:
    """Fit the scaling of every workspace with outcomes; returns those that changed.

    A new scaling that is worse than the current one on the newest outcomes is not taken.

    Raises:
        StoreError: when the store cannot be read or written; it can be run again.
        FittingError: when no process can be had for the fitting; likewise.
    """
    changed = {}
    async with FittingProcess() as fitting:
        for workspace in await store.workspaces_with_outcomes():
            judged = await store.judged_suggestions(workspace, _LATEST)
            known = (await memory.calibration(workspace)).scaling
            enough = len(judged) >= ENOUGH_OUTCOMES
            fitted = await fitting.refit(known, judged) if enough else Scaling()
            if fitted.model_copy(update={"fitted_at": known.fitted_at}) == known:
                continue
            scaling = fitted.model_copy(update={"fitted_at": clock()})
            await store.put_fact(calibration_fact(workspace), scaling.model_dump_json())
            memory.forget_calibration(workspace)
            changed[workspace] = scaling
            log.info(
                "confidence of workspace %s is scaled by %.2f and shifted by %.2f, "
                "from %d outcomes",
                workspace, scaling.slope, scaling.shift, scaling.outcomes,
            )  # fmt: skip
    return changed
