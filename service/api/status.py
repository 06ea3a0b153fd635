"""The state of the service: its status, whether it is up and ready, and its metrics."""

import time

from fastapi import APIRouter, Request, Response

from aftercall.models import ALL_WORKSPACES, CalibrationStatus, Status
from retrieval.knowledge.rows.log import count_rows, lag_s
from service.api.reflection import find_missing
from service.context import Lifecycle
from service.databases import where_store_is
from service.errors import ProblemError, UnavailableError
from service.metrics_page import Agreement, log_store_answers, metrics_page, read_agreement
from service.middleware import access_of
from service.requests import Read, check_scope
from service.version import VERSION

router = APIRouter(tags=["service"])


@router.get(
    "/status", summary="How much there is, and what is still to be learned from", name="status"
)
async def read_status(space: Read, request: Request) -> Status:
    """Return the counts and the state of the service.

    `pendingIndexing` counts all that is durable but not yet usable in answers, and answers that are
    stored within a moment.
    """
    context, workspace = space
    # First: what is stored meanwhile is counted twice, and not missed. The outcome of an answer is
    # learned only after it.
    unsaved = context.suggester.count_unsaved(workspace)
    known = await count_rows(context.store, workspace)
    agreed = await read_agreement(context)
    if context.caller.workspace != ALL_WORKSPACES:  # `agreed` is about all workspaces
        own = known.documents - known.pending_vectors
        agreed = Agreement(None if agreed.vectors is None else own, agreed.consistent)
    scaling = await context.memory.read_scaling(workspace)
    return Status(
        version=VERSION,
        ready=context.learning.problem is None,
        executions=known.executions,
        tools=await context.store.events.count_state(workspace, "tool"),
        pending_indexing=known.pending + unsaved,
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
        missing=await find_missing(space),
        linger_s=request.app.state.lifecycle.linger_s,
    )


@router.get("/healthz", summary="The process is up", name="healthz")
async def answer_heartbeat() -> Response:
    """Answer a supervisor that restarts what hangs; the answer ignores the stores."""
    return Response('{"status":"up"}', media_type="application/json")


@router.get("/readyz", summary="Calls are served", name="readyz")
async def answer_readiness(request: Request) -> Response:
    """Answer 503 until everything is open, while the log store is away, or while learning fails.

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
    "/metrics",
    summary="Counters, latencies and gauges for Prometheus",
    response_class=Response,
    name="metrics",
)
async def read_metrics(request: Request) -> Response:
    """Return the metrics, also while the service starts, without waiting for a store that hangs.

    Values of a store that does not answer within a second are left out, and `aftercall_store_up` is
    0. The label `tool` is `name`, or `server/name`; tools beyond `AFTERCALL_METRICS_TOOLS` are
    `other`. All workspaces are counted together, so if keys are required this needs an operator's,
    with `read`.
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
