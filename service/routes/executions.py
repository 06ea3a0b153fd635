"""Recording executions, and reading one back."""

from fastapi import APIRouter, Request, Response

from aftercall.models import Execution, RecordReceipt
from service.bodies import parse, parse_records, read_body
from service.errors import NotFoundError
from service.middleware import count
from service.openapi import answers, json_body
from service.routes import examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, ExecutionId, answer

router = APIRouter(tags=["recording"])


@router.post(
    "/executions",
    summary="Record one execution, or a list of at most 1,000",
    status_code=202,
    response_model=RecordReceipt,
    responses=answers(202, examples.RECEIPT, errors=(400, 408, 409, 413, 415, 422, 503)),
    openapi_extra=json_body(Execution, examples.RECORDING, or_list=True),
)
async def record(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Answers when the executions are durable. `executionId` makes sending them again harmless.

    In a list, one bad record never rejects its neighbours: it is named in `rejected`. A single
    execution that is malformed is a 422, one whose id is taken by other content a 409.
    """
    body = await read_body(request)
    records = await parse(body, parse_records, context.parsers)
    if isinstance(records, Execution):
        receipt = await context.intake.accept_one(workspace, records)
    else:
        receipt = await context.intake.accept(workspace, records)
    count(
        request,
        accepted=receipt.accepted,
        duplicates=receipt.duplicates,
        rejected=len(receipt.rejected),
    )
    return answer(receipt, status=202)


@router.get(
    "/executions/{executionId}",
    summary="One execution, as it is stored",
    response_model=Execution,
    responses=answers(200, examples.FAILED_EXECUTION, errors=(404, 422, 503)),
)
async def read_execution(
    execution_id: ExecutionId, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Secrets were masked before it was written, and are masked again before it is returned."""
    execution = await context.store.get_execution(workspace, execution_id)
    if execution is None:
        raise NotFoundError("there is no execution of that id")
    return answer(context.redactor.call(execution))
