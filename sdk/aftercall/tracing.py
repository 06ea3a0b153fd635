"""Spans of tool calls, by OpenTelemetry's conventions for generative AI (extra `otel`).

    observers=[TracingObserver()]

in `call_with_reflection` or `ReflectionMiddleware` makes a span of every attempt.

Only the API is needed: without an SDK that is set up in the process nothing is recorded. A span
holds names, ids, counts and the type of an error; never arguments, results, contexts or messages.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from aftercall.explain import require_extra

with require_extra("otel", "aftercall.tracing"):
    from opentelemetry import context as otel_context
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, TracerProvider
    from opentelemetry.util.types import AttributeValue

from aftercall.json_values import bounded_name
from aftercall.models.calls import ExecutionError
from aftercall.reflection.results import ObservedAttempt, PlannedAttempt


class TracingObserver:
    """Makes a span of each attempt, which is current while the tool runs, and of each question.

    A call is in one trace: that of the span that is current where it is made. Where none is, the
    first attempt begins a trace, and the question about it and later attempts stand below it.

    Without a `tracer_provider` spans go to the process's own (the global one).
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("aftercall", version("aftercall"), tracer_provider)

    def planned(self, attempt: PlannedAttempt) -> ObservedAttempt:
        """Note that an attempt is about to be made, in this task and thread."""
        current = parent = otel_context.get_current()
        kept = attempt.facts.kept
        begins_trace = not trace.get_current_span(current).get_span_context().is_valid
        if begins_trace and self in kept:
            parent = trace.set_span_in_context(trace.NonRecordingSpan(kept[self]), current)
        span = self._tracer.start_span(
            f"execute_tool {bounded_name(attempt.facts.tool_name) or 'unknown'}",
            context=parent,
            kind=SpanKind.INTERNAL,
            attributes=_span_attributes(attempt),
        )
        if begins_trace:
            kept.setdefault(self, span.get_span_context())
        return _TracedAttempt(self._tracer, span, current)


@dataclass(eq=False)
class _TracedAttempt:
    tracer: Tracer
    span: Span
    caller: Context

    def __post_init__(self) -> None:
        self._stopped_at: int | None = None
        self._has_ended = False
        otel_context.attach(trace.set_span_in_context(self.span, self.caller))

    def stopped(self, given_up: BaseException | None) -> None:
        self._stopped_at = time.time_ns()
        # Not by a token: hooks may say the end in another task, or while another call is current.
        if trace.get_current_span() is self.span:
            otel_context.attach(self.caller)
        if given_up is not None:
            self.span.set_attribute("error.type", type(given_up).__qualname__)
            self._end_span()

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        del duration_ms  # the span has its own
        if error is not None:
            self.span.set_attribute("error.type", bounded_name(error.type) or "unknown")
            self.span.set_status(StatusCode.ERROR)  # no description: it would be the message
        self._end_span()

    @contextmanager
    def asking(self) -> Iterator[None]:
        span = self.tracer.start_span(
            "aftercall.suggest",
            context=trace.set_span_in_context(self.span, self.caller),
            kind=SpanKind.CLIENT,
        )
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise

    def _end_span(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.span.end(self._stopped_at)

    def __del__(self) -> None:
        # No one states that a call ended whose result was a question to the user, or whose second
        # hook never came.
        self._end_span()


def _span_attributes(attempt: PlannedAttempt) -> dict[str, AttributeValue]:
    facts, suggestion = attempt.facts, attempt.suggestion
    attributes: dict[str, AttributeValue | None] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": bounded_name(facts.tool_name) or "unknown",
        "gen_ai.agent.name": bounded_name(facts.agent) or "unknown",
        "gen_ai.conversation.id": bounded_name(facts.session_id),
        "aftercall.execution_id": attempt.execution_id,
        "aftercall.attempt": attempt.number,
        "aftercall.server_name": bounded_name(facts.server_name),
        "aftercall.repair_of": attempt.repair_of,
        "aftercall.suggestion.id": suggestion.suggestion_id if suggestion else None,
        "aftercall.suggestion.confidence": suggestion.confidence if suggestion else None,
    }
    return {name: value for name, value in attributes.items() if value is not None}
