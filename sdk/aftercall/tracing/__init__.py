"""Spans of tool calls (extra `otel`).

    observers=[TracingObserver()]

in `call_with_reflection` or `ReflectionMiddleware` makes a span of every attempt.
"""

try:
    from aftercall.tracing.observer import TracingObserver
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("opentelemetry"):
        raise
    raise ImportError(
        "aftercall.tracing needs OpenTelemetry; install it with `pip install 'aftercall[otel]'`"
    ) from error

__all__ = ["TracingObserver"]
