"""Whether and where spans go."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from aftercall.errors import ConfigurationError
from aftercall.stages import measured_by
from service.config.settings import Settings
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
        from aftercall.tracing.exporting import (  # noqa: PLC0415  # only where spans are wanted
            exporting,
        )
        from service.tracing.request_spans import RequestSpans  # noqa: PLC0415  # as above
        from service.tracing.stage_spans import StageSpans  # noqa: PLC0415  # as above
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
