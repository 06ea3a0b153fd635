"""Sending spans to a collector, by OTLP over HTTP (extra `otel`): for entry points.

A collector that is away, slow or refusing costs spans and nothing else: they are sent from a
thread of their own, out of a bounded queue, and what does not arrive is given up.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from aftercall.errors import ConfigurationError

_WHILE_AWAY_S = 0.5
"""What a collector that did not answer last time gets at the end."""
_logger = logging.getLogger(__name__)


@contextmanager
def exporting(
    service: Mapping[str, str],
    *,
    url: str | None,
    close_within_s: float,
) -> Iterator[TracerProvider]:
    """A tracer provider whose spans are sent until the block ends; never the global one.

    What other libraries in the process trace goes elsewhere: their spans may hold messages.

    Args:
        service: `service.name`, `service.version`; OpenTelemetry's own variables
            (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`) say more, and win.
        url: where spans go, with its path; None leaves all of it to OpenTelemetry's variables.
            Headers, certificates, the sizes of batches and the share of traces that is sent are
            read from those in either case.
        close_within_s: seconds in which the last spans have to be delivered.

    Raises:
        ConfigurationError: one of those variables has a value that cannot be.
    """
    compression = None if url is None else Compression.Gzip
    try:
        exporter = _ToldOnce(OTLPSpanExporter(endpoint=url, compression=compression))
        provider = TracerProvider(
            resource=Resource.create(dict(service)).merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,  # it would wait half a minute for a collector that hangs
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except ValueError as error:
        raise ConfigurationError(f"a variable of OpenTelemetry (OTEL_...): {error}") from error
    # The exporter says each failed attempt, every second or two; `_ToldOnce` says what changes.
    chatter = logging.getLogger("opentelemetry.exporter")
    level = chatter.level
    chatter.setLevel(logging.CRITICAL)
    try:
        yield provider
    finally:
        _close(provider, exporter, close_within_s)
        chatter.setLevel(level)


def _close(provider: TracerProvider, exporter: "_ToldOnce", within_s: float) -> None:
    """Send what is left, for so long; the threads that may still wait are daemons."""
    closing = threading.Thread(target=provider.shutdown, name="aftercall-last-spans", daemon=True)
    closing.start()
    closing.join(min(within_s, _WHILE_AWAY_S) if exporter.is_away else within_s)
    if closing.is_alive():
        exporter.shutdown()  # ends its wait between two attempts
        _logger.warning("the last spans were not delivered in time")


class _ToldOnce(SpanExporter):
    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._lost = 0

    @property
    def is_away(self) -> bool:
        return self._lost > 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is not SpanExportResult.SUCCESS:
            if not self._lost:
                _logger.warning(
                    "spans cannot be delivered; is the collector running, and is its address right?"
                )
            self._lost += len(spans)
        elif self._lost:
            _logger.warning("spans are delivered again; %d were lost", self._lost)
            self._lost = 0
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()
