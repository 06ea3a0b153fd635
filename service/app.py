"""The FastAPI app: routes, errors, limits, OpenAPI."""

import asyncio

from fastapi import FastAPI
from starlette.responses import HTMLResponse

from service.context import Lifecycle
from service.errors import install_error_handlers
from service.metrics import RequestMetrics
from service.metrics_page import MetricsPage
from service.middleware import (
    BodyLimits,
    HostGuard,
    KeyGuard,
    RequestLog,
)
from service.routes import (
    boundaries,
    choosing,
    keys,
    known_tools,
    promotions,
    recording,
    service,
    statistics,
    suggesting,
    tools,
)
from service.routes.dashboard import install_dashboard
from service.routes.mcp import install_mcp
from service.routes.openapi_document import install_openapi, render_docs
from service.settings import Settings
from service.version import VERSION

_DESCRIPTION = (
    "The institutional memory of tool calls: record every call, ask when one fails. "
    'Every error is `{"error": {"code", "message", "details"}}`. '
    "Bodies are JSON with Content-Type application/json; names are camelCase. "
    "Where a key stands twice in an object, the last value counts."
)


def create_app(settings: Settings, lifecycle: Lifecycle) -> FastAPI:
    """The app over services that `lifecycle` holds, or will hold once they are open.

    Args:
        settings: for limits and host names; nothing is read from the environment.
        lifecycle: its `services` are set and taken away by the process that opens and closes them.
    """
    app = FastAPI(
        title="Aftercall",
        version=VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own telemetry exports rejected input with its values to whatever OpenTelemetry
        # provider the process has; calls are private.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.lifecycle = lifecycle
    app.state.limits = settings.limits
    # Requests of spans that are unpacked at a time: while one is stored, the next one is read. Each
    # may hold as much as `limits.unpacked_bytes`, many times what came.
    app.state.trace_turns = asyncio.Semaphore(2)
    requests = RequestMetrics()
    app.state.metrics_page = MetricsPage(requests, lifecycle)
    install_error_handlers(app)
    # Names in paths may hold slashes, so what is longer comes before what would take it whole.
    for topic in (
        recording, suggesting, choosing, boundaries, tools, promotions, known_tools, statistics,
        keys,
        service,
    ):  # fmt: skip
        app.include_router(topic.router)
    install_mcp(app, settings)
    if settings.server.dashboard:
        install_dashboard(app, settings, lifecycle)
    install_openapi(app)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return render_docs(app.openapi())

    # The last added is the outermost.
    app.add_middleware(BodyLimits, limits=settings.limits)
    app.add_middleware(KeyGuard, lifecycle=lifecycle)
    app.add_middleware(HostGuard, server=settings.server)
    app.add_middleware(RequestLog, on_request=requests.observe)
    return app
