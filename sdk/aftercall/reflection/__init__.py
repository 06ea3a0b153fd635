"""Reflection: call a tool, ask when it fails, and retry where that is safe and sure."""

from aftercall.reflection.calling import (
    AsyncSuggester,
    Attempt,
    CallObserver,
    ExecutionSink,
    FailureRates,
    ReflectedResult,
    ReflectionPolicy,
    ResultReader,
    Suggester,
    call_with_reflection,
    call_with_reflection_sync,
)

__all__ = [
    "AsyncSuggester",
    "Attempt",
    "CallObserver",
    "ExecutionSink",
    "FailureRates",
    "ReflectedResult",
    "ReflectionPolicy",
    "ResultReader",
    "Suggester",
    "call_with_reflection",
    "call_with_reflection_sync",
]
