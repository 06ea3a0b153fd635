"""A span for each stage."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import Span, StatusCode, Tracer

from aftercall.stages import Stage


class StageSpans:
    """Measures stages as spans below the one that is current."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """A stage begins, and ends with the block."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _Noting(span)
            except Exception as error:
                # Its type only: the text often quotes a value.
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise


class _Noting:
    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, **facts: str | float | bool) -> None:
        self._span.set_attributes({f"aftercall.{name}": fact for name, fact in facts.items()})
