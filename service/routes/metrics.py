"""What is counted, for Prometheus."""

from fastapi import APIRouter, Request, Response

from service.metrics_page import MetricsPage
from service.openapi import answers
from service.routes import metrics_examples as examples

router = APIRouter(tags=["service"])

_RESPONSES = answers(200, None)
_RESPONSES[200] = {
    "description": "In Prometheus' text format or OpenMetrics, as `Accept` asks for.",
    "content": {
        "text/plain": {"schema": {"type": "string"}, "example": examples.TEXT},
        "application/openmetrics-text": {
            "schema": {"type": "string"},
            "example": examples.OPEN_METRICS,
        },
    },
}


@router.get(
    "/metrics",
    summary="Counters, latencies and gauges for Prometheus",
    response_class=Response,
    responses=_RESPONSES,
)
async def metrics(request: Request) -> Response:
    """Answers also while the service is starting, and without waiting for a store that hangs.

    What a store would have to say is left out when it does not within a second, and
    `aftercall_store_up` is 0. The label `tool` is `name`, or `server/name`; tools beyond
    `AFTERCALL_METRICS_TOOLS` are `other`.
    """
    page: MetricsPage = request.app.state.metrics_page
    written = await page.write(
        ",".join(request.headers.getlist("accept")),
        ",".join(request.headers.getlist("accept-encoding")),
    )
    return Response(written.content, headers=written.headers)
