"""Failures of a tool that somebody marked, and all that are remembered."""

from fastapi import APIRouter, Request, Response

from aftercall.models import FailureMark, MarkedFailure, ToolFailures
from service.bodies import read_model
from service.openapi import answers, json_body
from service.routes import fitness_examples as examples
from service.routes.parameters import (
    CurrentContext,
    CurrentWorkspace,
    FailuresQuery,
    ToolId,
    answer,
)

router = APIRouter(tags=["choosing a tool"])

_PATH = "/tools/{toolId:path}/failures"


@router.post(
    _PATH,
    summary="Mark a failure of a tool",
    status_code=202,
    response_model=MarkedFailure,
    responses=answers(
        202,
        examples.MARKED,
        errors=(400, 408, 413, 415, 422, 503),
        own={404: examples.UNKNOWN_TOOL},
    ),
    openapi_extra=json_body(FailureMark, examples.MARKING),
)
async def mark_failure(
    tool_id: ToolId, request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """It is durable now, and counts against the tool, the more in scenarios like this one.

    The same `markId` twice counts once. Recorded executions count without being marked; with
    `executionId` the mark says how bad that one was, and of what version it was when `version` is
    left out; without either it is of the version in force.
    """
    mark = await read_model(request, FailureMark, context.parsers)
    return answer(await context.marks.mark(workspace, tool_id, mark), status=202)


@router.get(
    _PATH,
    summary="Failures of a tool",
    response_model=ToolFailures,
    responses=answers(
        200, examples.FAILURES, errors=(414, 422, 503), own={404: examples.UNKNOWN_TOOL}
    ),
)
async def tool_failures(
    tool_id: ToolId, query: FailuresQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Marked or recorded, of all versions: nearest to the scenario first, without one the latest.

    Without a scenario every `similarity` is 0, and `weight` says how far time has worn it off.
    """
    failures = await context.history.failures(
        workspace, tool_id, scenario=query.scenario, limit=query.limit
    )
    return answer(failures)
