"""Sending spans to a collector, by OTLP over HTTP (extra `otel`): for entry points.

A collector that is away, slow or refusing costs spans and nothing else: they are sent from a
thread of their own, out of a bounded queue, and what does not arrive is given up.
"""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from aftercall.errors import ConfigurationError

_logger = logging.getLogger(__name__)


@contextmanager
def export_spans(
    service: Mapping[str, str], *, url: str | None, close_within_s: float
) -> Iterator[TracerProvider]:
    """Yield a tracer provider whose spans are sent until the block ends; never the global one.

    What other libraries in the process trace goes elsewhere: their spans may hold messages.

    `service` has `service.name` and `service.version`; OpenTelemetry's own variables
    (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`) say more, and win. Spans go to `url`, with its
    path; None leaves all of it to OpenTelemetry's variables, from which headers, certificates, the
    sizes of batches and the share of traces that is sent are read in either case. The last spans
    have to be delivered within `close_within_s` seconds.
    """
    compression = None if url is None else Compression.Gzip
    try:
        exporter = OTLPSpanExporter(endpoint=url, compression=compression)
        provider = TracerProvider(
            resource=Resource.create(dict(service)).merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,  # it would wait half a minute for a collector that hangs
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except ValueError as error:
        raise ConfigurationError(f"a variable of OpenTelemetry (OTEL_...): {error}") from error
    try:
        yield provider
    finally:
        # In a daemon thread, which may wait for a collector longer than anyone should.
        last = threading.Thread(target=provider.shutdown, name="aftercall-last-spans", daemon=True)
        last.start()
        last.join(close_within_s)
        if last.is_alive():
            exporter.shutdown()  # type: ignore[no-untyped-call]  # ends its wait between attempts
            _logger.warning("the last spans were not delivered in time")
