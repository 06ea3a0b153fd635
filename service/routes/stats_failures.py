"""Statistics of failures: which there are, what asking about them did, what it promised."""

from fastapi import APIRouter, Response

from aftercall.models import (
    ConfidenceStatistics,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
)
from service.openapi import answers
from service.routes import stats_examples as examples
from service.routes.parameters import (
    CurrentContext,
    CurrentWorkspace,
    ListQuery,
    NoQuery,
    PatternId,
    WindowQuery,
    answer,
)

router = APIRouter(tags=["statistics"])


@router.get(
    "/stats/reflection",
    summary="What asking about failures did",
    response_model=ReflectionStatistics,
    responses=answers(200, examples.REFLECTION, errors=(422, 503)),
)
async def reflection(
    query: WindowQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """How calls went before it and after it, what was answered, and how long repairs took.

    Repairs are of the latest 2,000, and of as many outcomes of suggestions (a success that followed
    one counts when it names in `repairOf` what it mends). Times are those that callers gave.
    """
    return answer(await context.statistics.reflection(workspace, query.window))


@router.get(
    "/stats/patterns",
    summary="Failure patterns by what was met lately",
    response_model=PatternStatistics,
    responses=answers(200, examples.PATTERNS, errors=(422, 503)),
)
async def patterns(
    query: ListQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Most failures in the window first. Empty before the first nightly run, which makes patterns.

    Failures that are of no pattern yet are counted together. What tools said is quoted as data.
    """
    return answer(await context.statistics.patterns(workspace, query.window, query.limit))


@router.get(
    "/stats/patterns/{patternId}",
    summary="How often a failure pattern was met over time",
    response_model=PatternHistory,
    responses=answers(
        200, examples.PATTERN, errors=(422, 503), own={404: examples.UNKNOWN_PATTERN}
    ),
)
async def pattern(
    pattern_id: PatternId, query: WindowQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Up to now, those without failures too. Ids are those of `GET /patterns`; they last."""
    return answer(await context.statistics.pattern(workspace, pattern_id, query.window))


@router.get(
    "/stats/confidence",
    summary="What suggestions promised, and what came of it",
    response_model=ConfidenceStatistics,
    responses=answers(200, examples.CONFIDENCE, errors=(422, 503)),
)
async def confidence(
    _query: NoQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """The latest 2,000 outcomes in tenths of the confidence that was told, with two errors.

    A success is a call that succeeded: whether it did what was meant is not known from outcomes.
    """
    return answer(await context.statistics.confidence(workspace))
