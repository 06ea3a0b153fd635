"""Reflection: call a tool, ask when it fails, and retry where that is safe and sure."""

from aftercall._generated.reflection_driver import Suggester, call_with_reflection_sync
from aftercall.reflection.async_driver import AsyncSuggester, call_with_reflection
from aftercall.reflection.reflected_call import ExecutionSink, FailureRates
from aftercall.reflection.results import Attempt, CallObserver, ReflectedResult, ResultReader
from aftercall.reflection.retry_rules import ReflectionPolicy

__all__ = [
    "AsyncSuggester", "Attempt", "CallObserver", "ExecutionSink", "FailureRates", "ReflectedResult",
    "ReflectionPolicy", "ResultReader", "Suggester", "call_with_reflection",
    "call_with_reflection_sync",
]  # fmt: skip
