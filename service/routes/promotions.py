"""Promotions: which evolved version stands in for the original of a namespace."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import from_json

from aftercall.models import (
    Promotion,
    PromotionHistory,
    PromotionsReceipt,
    PromotionStatus,
)
from aftercall.promotions_file import KEYS, PromotionsFileError, parse_promotions
from service.bodies import parse, read_body, read_model
from service.errors import MalformedJsonError, ProblemError
from service.openapi import answers, body_of, json_body
from service.routes import fitness_examples as examples
from service.routes.parameters import (
    CurrentContext,
    CurrentWorkspace,
    HistoryQuery,
    Namespace,
    answer,
)

router = APIRouter(tags=["promotions"])

_PATH = "/namespaces/{namespace:path}/promotion"

_ENTRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        key: {"type": ["string", "null"] if key == "evolved_file" else "string"} for key in KEYS
    },
    "required": list(KEYS),
    "additionalProperties": False,
}

_FILE: dict[str, Any] = {
    "title": "The file .tool_promotions.json",
    "type": "object",
    "additionalProperties": _ENTRY,
}


@router.get(
    f"{_PATH}/history",
    summary="What was promoted in a namespace, and when",
    response_model=PromotionHistory,
    responses=answers(200, examples.HISTORY, errors=(422, 503), own={404: examples.NOT_PROMOTED}),
)
async def promotion_history(
    namespace: Namespace, query: HistoryQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Latest first; a change's `promotion` is null where the original served again."""
    return answer(await context.promotions.history(workspace, namespace, query.limit))


@router.post(
    f"{_PATH}/rollback",
    summary="Back to what held before",
    response_model=PromotionHistory,
    responses=answers(
        200,
        examples.ROLLED_BACK,
        errors=(422, 503),
        own={404: examples.NOT_PROMOTED, 409: examples.NOTHING_BEFORE},
    ),
)
async def roll_back(
    namespace: Namespace, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Undoes the latest change that is not undone yet; the answer is the history, latest first.

    Before the first promotion the original served. Each call goes back one step further.
    """
    return answer(await context.promotions.roll_back(workspace, namespace))


@router.put(
    _PATH,
    summary="Promote an evolved version",
    response_model=PromotionStatus,
    responses=answers(
        200,
        examples.PROMOTION_STATUS,
        errors=(400, 408, 413, 415, 422, 503),
        own={404: examples.UNKNOWN_NAMESPACE},
    ),
    openapi_extra=json_body(Promotion, examples.PROMOTING),
)
async def promote(
    namespace: Namespace, request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """From now on it stands in for the original, and starts with the original's quality.

    It needs a file, or a registered tool of that version with `evolvedFrom`. Files are the
    callers': the service cannot see whether one is there. The same again changes nothing. Where
    that tool is deleted later and there is no file, the original serves until the tool is back.
    """
    promotion = await read_model(request, Promotion, context.parsers)
    return answer(await context.promotions.promote(workspace, namespace, promotion))


@router.get(
    _PATH,
    summary="What is promoted in a namespace, and how it fares",
    response_model=PromotionStatus,
    responses=answers(
        200, examples.PROMOTION_STATUS, errors=(422, 503), own={404: examples.NOT_PROMOTED}
    ),
)
async def read_promotion(
    namespace: Namespace, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """`failsMore` says that the evolved version does worse than the original; nothing is undone."""
    return answer(await context.promotions.read(workspace, namespace))


@router.delete(
    _PATH,
    summary="Let the original serve again",
    status_code=204,
    response_class=Response,
    responses=answers(204, None, errors=(422, 503), own={404: examples.NOT_PROMOTED}),
)
async def remove_promotion(
    namespace: Namespace, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Its history stays."""
    await context.promotions.remove(workspace, namespace)
    return Response(status_code=204)


@router.get(
    "/promotions",
    summary="All promotions, as the file .tool_promotions.json",
    responses=answers(200, examples.PROMOTIONS_FILE, errors=(503,)),
)
async def export_promotions(context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """Exactly as the file has them: by namespace, with keys in snake_case."""
    text = await context.promotions.export_file(workspace)
    return Response(text, media_type="application/json")


@router.put(
    "/promotions",
    summary="Replace all promotions by a file .tool_promotions.json",
    response_model=PromotionsReceipt,
    responses=answers(200, examples.PROMOTIONS_RECEIPT, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=body_of(_FILE, {"a file": examples.PROMOTIONS_FILE}),
)
async def import_promotions(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """All of it or nothing; what is wrong is named with its line and entry.

    What the file does not name is promoted no more; all of it is in the histories.
    """
    body = await read_body(request)
    promotions = await parse(body, _parse_file, context.parsers)
    return answer(await context.promotions.import_file(workspace, promotions))


def _parse_file(body: bytes) -> dict[str, Promotion]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise MalformedJsonError(
            f"line {line}: the body is not UTF-8; send JSON in UTF-8"
        ) from None
    try:
        return parse_promotions(text)
    except PromotionsFileError as error:
        details = {"line": error.line, "entry": error.entry}
        status, code = (422, "invalid_request") if _is_json(body) else (400, "malformed_json")
        message = f"{error}; nothing was imported"
        raise ProblemError(status, code, message, details=details) from None


def _is_json(body: bytes) -> bool:
    try:
        from_json(body)
    except ValueError:
        return False
    return True
