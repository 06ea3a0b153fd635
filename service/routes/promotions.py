"""Promotions: which evolved version stands in for the original of a namespace."""

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from aftercall import models as m
from aftercall.promotions_file import PromotionsFileError, parse_promotions
from service import promotions
from service.errors import MalformedJsonError, ProblemError
from service.requests import Administering, JsonRoute, Namespace, Reading, parsed, read_body

router = APIRouter(tags=["promotions"], route_class=JsonRoute)
_PATH = "/namespaces/{namespace:name}/promotion"


class _HistoryQuery(m.WireModel):
    limit: int = Field(default=50, ge=1, le=500)


@router.get(f"{_PATH}/history", summary="What was promoted in a namespace, and when")
async def promotion_history(
    namespace: Namespace, query: Annotated[_HistoryQuery, Query()], space: Reading
) -> m.PromotionHistory:
    """Latest first; a change's `promotion` is null where the original served again."""
    return await promotions.promotion_history(*space, namespace, query.limit)


@router.post(f"{_PATH}/rollback", summary="Back to what held before")
async def roll_back(namespace: Namespace, space: Administering) -> m.PromotionHistory:
    """Undoes the latest change that is not undone yet; the answer is the history, latest first.

    Before the first promotion the original served. Each call goes back one step further.
    """
    return await promotions.roll_back(*space, namespace)


@router.put(_PATH, summary="Promote an evolved version")
async def promote(
    namespace: Namespace, promotion: m.Promotion, space: Administering
) -> m.PromotionStatus:
    """From now on it stands in for the original, and starts with the original's quality.

    It needs a file, or a registered tool of that version with `evolvedFrom`. Files are the
    callers': the service cannot see whether one is there. The same again changes nothing. Where
    that tool is deleted later and there is no file, the original serves until the tool is back.
    """
    return await promotions.promote(*space, namespace, promotion)


@router.get(_PATH, summary="What is promoted in a namespace, and how it fares")
async def read_promotion(namespace: Namespace, space: Reading) -> m.PromotionStatus:
    """`failsMore` says that the evolved version does worse than the original; nothing is undone."""
    return await promotions.read_promotion(*space, namespace)


@router.delete(
    _PATH, summary="Let the original serve again", status_code=204, response_class=Response
)
async def remove_promotion(namespace: Namespace, space: Administering) -> None:
    """Its history stays."""
    await promotions.remove_promotion(*space, namespace)


@router.get("/promotions", summary="All promotions, as the file .tool_promotions.json")
async def export_promotions(space: Reading) -> Response:
    """Exactly as the file has them: by namespace, with keys in snake_case."""
    return Response(await promotions.export_promotions(*space), media_type="application/json")


@router.put("/promotions", summary="Replace all promotions by a file .tool_promotions.json")
async def import_promotions(request: Request, space: Administering) -> m.PromotionsReceipt:
    """Return all of it or nothing; what is wrong is named with its line and entry.

    What the file does not name is promoted no more; all of it is in the histories.
    """
    file = await parsed(await read_body(request), _parse_file)
    return await promotions.import_promotions(*space, file)


def _parse_file(body: bytes) -> dict[str, m.Promotion]:
    try:
        return parse_promotions(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MalformedJsonError("the body is not UTF-8; send JSON in UTF-8") from None
    except PromotionsFileError as error:
        is_json = not isinstance(error.__cause__, json.JSONDecodeError | RecursionError)
        status, code = (422, "invalid_request") if is_json else (400, "malformed_json")
        message = f"{error}; nothing was imported"
        raise ProblemError(status, code, message, details={"entry": error.entry}) from None
