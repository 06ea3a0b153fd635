"""What users said of answers: recording it, and reading it back."""

from typing import Annotated, Self

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, model_validator

from aftercall.models import Correction, CorrectionList, RecordedCorrection, WireModel
from aftercall.models.base import Name
from service.bodies import read_model
from service.openapi import answers, json_body
from service.routes import correction_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, NoQuery, answer

router = APIRouter(tags=["boundaries"])

_PATH = "/corrections"


class _Corrections(WireModel):
    tool_name: Name | None = Field(
        default=None, description="Only those that count for this tool, by the name of its calls."
    )
    server_name: Name | None = Field(
        default=None, description="Its server; leave it out for a tool without one."
    )
    limit: int = Field(default=20, ge=1, le=100)

    @model_validator(mode="after")
    def _server_of_a_tool(self) -> Self:
        if self.server_name is not None and self.tool_name is None:
            raise ValueError("serverName belongs to a toolName; name the tool too")
        return self


CorrectionsQuery = Annotated[_Corrections, Query()]


@router.post(
    _PATH,
    summary="Tell what a user said of an answer",
    status_code=202,
    response_model=RecordedCorrection,
    responses=answers(
        202,
        examples.CORRECTED,
        errors=(400, 408, 413, 415, 422, 503),
        own={404: examples.NOTHING_TO_CORRECT, 409: examples.CONFLICT},
    ),
    openapi_extra=json_body(Correction, examples.CORRECTING),
)
async def correct(
    request: Request, _query: NoQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """It is durable now, and weighs more than the tool's own word.

    It is about one execution, which may be recorded later (`tied` is false until then), or about
    the latest recorded call of a session. The same `correctionId` twice counts once.
    """
    correction = await read_model(request, Correction, context.parsers)
    return answer(await context.corrections.correct(workspace, correction), status=202)


@router.get(
    _PATH,
    summary="What users said of answers",
    response_model=CorrectionList,
    responses=answers(200, examples.CORRECTIONS, errors=(414, 422, 503)),
)
async def list_corrections(
    query: CorrectionsQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Newest first. One counts for its tool soon after both are recorded, and is listed so then."""
    corrections = await context.corrections.latest(
        workspace, limit=query.limit, server_name=query.server_name, tool_name=query.tool_name
    )
    return answer(corrections)
