"""The service's own spans (extra `otel`): whether and where they go.

Nothing of OpenTelemetry is imported unless they are set; `service.spans` makes them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from aftercall.errors import ConfigurationError
from aftercall.stages import measured_by
from service.settings import Settings
from service.version import VERSION


@contextmanager
def traced(settings: Settings) -> Iterator[Callable[[ASGIApp], ASGIApp]]:
    """Stages are measured until the block ends, and an app can be given a span of each request.

    Nothing is measured, and an app stays as it is, unless `tracing.url` is set.

    Raises:
        ConfigurationError: it is set, and the extra is missing.
    """
    url = settings.tracing.url
    if url is None:
        yield lambda app: app
        return
    try:
        from aftercall.span_export import (  # noqa: PLC0415  # only where spans are wanted
            exporting,
        )
        from service.spans import RequestSpans, StageSpans  # noqa: PLC0415  # as above
    except ImportError as error:
        raise ConfigurationError(
            "AFTERCALL_TRACING_URL is set, and OpenTelemetry is not installed: run "
            "`pip install 'aftercall-service[otel]'`, or take the variable away"
        ) from error
    service = {"service.name": "aftercall", "service.version": VERSION}
    with exporting(
        service,
        url=url,
        sampled_share=settings.tracing.sampled_share,
        close_within_s=settings.server.shutdown_s,
    ) as provider:
        tracer = provider.get_tracer("aftercall-service", VERSION)
        stages = StageSpans(tracer)
        with measured_by(stages):
            yield lambda app: RequestSpans(app, tracer, stages)
