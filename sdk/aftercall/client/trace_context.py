"""Where the caller is in its trace, as headers (W3C Trace Context).

Nothing is imported for it: a process that has not imported OpenTelemetry has no current span.
"""

import sys
from typing import Final

_API: Final = "opentelemetry.trace"


def trace_headers() -> dict[str, str]:
    """`traceparent`, and `tracestate` where there is one, of the current span; empty without one.

    Only these two: baggage is the caller's own and may hold anything.
    """
    if _API not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415  # only where it is used
        TraceContextTextMapPropagator,
    )

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers
