"""What the service states of itself: its status, whether it is up and ready, and its metrics."""

import time

from fastapi import APIRouter, Request, Response

from aftercall.models import ALL_WORKSPACES, CalibrationStatus, Status
from retrieval.knowledge.rows.log import count_rows, lag_s
from service.context import Lifecycle
from service.errors import ProblemError, UnavailableError
from service.metrics_page import Agreement, agreement, log_store_answers, metrics_page
from service.middleware import access_of
from service.requests import Reading, check_scope
from service.statistics import missing
from service.stores import where_store_is
from service.version import VERSION

router = APIRouter(tags=["service"])


@router.get("/status", summary="How much there is, and what is still to be learned from")
async def status(space: Reading, request: Request) -> Status:
    """`pendingIndexing` counts all that is durable but not yet usable in answers."""
    context, workspace = space
    known = await count_rows(context.store, workspace)
    agreed = await agreement(context)
    if context.caller.workspace != ALL_WORKSPACES:  # what it states is of all workspaces
        own = known.documents - known.pending_vectors
        agreed = Agreement(None if agreed.vectors is None else own, agreed.consistent)
    scaling = (await context.memory.read_calibration(workspace)).scaling
    return Status(
        version=VERSION,
        ready=context.learning.problem is None,
        executions=known.executions,
        tools=await context.store.events.count_state(workspace, "tool"),
        pending_indexing=known.pending,
        documents=known.documents,
        seed_patterns=context.seed_patterns,
        embedder=context.embedder.name,
        log_store=context.store.name,
        vector_index=context.index.name,
        uptime_s=round(time.monotonic() - context.opened_at, 1),
        calibration=CalibrationStatus(
            source="own" if scaling.outcomes else "shipped",
            **scaling.model_dump(include={"outcomes", "shift", "slope", "fitted_at"}),
        ),
        vectors=agreed.vectors,
        consistent=agreed.consistent,
        problem=context.learning.problem or agreed.problem,
        generation=context.store.knowledge.generation,
        indexing="here" if context.settings.indexing.here else "workers",
        indexing_lag_s=round(await lag_s(context.store, workspace), 1),
        missing=await missing(context, workspace),
        linger_s=request.app.state.lifecycle.linger_s,
    )


@router.get("/healthz", summary="The process is up")
async def healthz() -> Response:
    """For a supervisor that restarts what hangs; states nothing about the stores."""
    return Response('{"status":"up"}', media_type="application/json")


@router.get("/readyz", summary="Calls are served")
async def readyz(request: Request) -> Response:
    """503 until everything is open, and while the log store does not answer or nothing is learned.

    A service that waits for a restart with another model answers meanwhile, so it counts as ready.
    """
    lifecycle: Lifecycle = request.app.state.lifecycle
    if (context := lifecycle.context) is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    if not await log_store_answers(context):
        raise UnavailableError(
            "store_unavailable",
            f"the log store at {where_store_is(context.settings)} does not answer; "
            "it is asked again",
            retry_after_s=2,
        )
    if context.indexer.learning_problem is not None:
        raise UnavailableError(
            "indexing_stopped",
            "executions are stored, but learning from them fails; see the service's log",
            retry_after_s=5,
        )
    return Response('{"status":"ready"}', media_type="application/json")


@router.get(
    "/metrics", summary="Counters, latencies and gauges for Prometheus", response_class=Response
)
async def metrics(request: Request) -> Response:
    """Answers also while the service is starting, and without waiting for a store that hangs.

    What a store would have to say is left out when it does not within a second, and
    `aftercall_store_up` is 0. The label `tool` is `name`, or `server/name`; tools beyond
    `AFTERCALL_METRICS_TOOLS` are `other`. All workspaces are counted together, so where keys are
    required this wants an operator's, with `read`.
    """
    lifecycle, access = request.app.state.lifecycle, access_of(request.scope)
    if lifecycle.context is not None and access is not None:
        check_scope(access, "read")
        if access.workspace != ALL_WORKSPACES:
            raise ProblemError(
                403,
                "outside_scope",
                "the metrics are of all workspaces: ask for a key of the workspace `*`",
            )
    return await metrics_page(request.app.state.requests, lifecycle)
