"""Whether a tool that failed had begun to run, where its code is at hand.

A function that has done its work may raise the very words that refuse a call: a validation error of
something it looked at, say. Its traceback tells the one from the other.
"""

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

_MAX_CAUSES = 5
"""Frameworks tell what a function raised in an error of their own, or two; causes may be a ring."""


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The innermost code behind decorators, a `partial`, a method or a callable object."""
    inner: Any = inspect.unwrap(function)
    while hasattr(inner, "func"):
        inner = inspect.unwrap(inner.func)
    if not hasattr(inner, "__code__"):
        inner = getattr(inner, "__call__", None)  # noqa: B004  # asks what it is
    code = getattr(inner, "__code__", None)
    return code if isinstance(code, CodeType) else None


def has_run(code: CodeType | None, error: BaseException) -> bool:
    """Whether the error, or what caused it, came out of the code; False where there is none."""
    told: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        trace = told.__traceback__ if told is not None else None
        while code is not None and trace is not None:
            if trace.tb_frame.f_code is code:
                return True
            trace = trace.tb_next
        told = told.__cause__ if told is not None else None
    return False


class Running:
    """Around each attempt of a call: whether the function's own code was reached."""

    def __init__(self, code: CodeType | None) -> None:
        self._code = code
        self._has_run = False

    def has_run(self) -> bool:
        """Of the latest attempt."""
        return self._has_run

    def __enter__(self) -> None:
        self._has_run = False

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # What it returned it has run for, whatever that says of a failure.
        self._has_run = error is None or has_run(self._code, error)
