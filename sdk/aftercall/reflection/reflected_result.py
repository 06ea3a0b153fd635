"""How a call with reflection ended: its result or first failure, and every attempt."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from aftercall.json_values import JsonObject
from aftercall.models.calls import Change, ExecutionError, Outcome, Suggestion
from aftercall.reflection.advice import describe_suggestions

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call of the tool."""

    execution_id: str
    parameters: JsonObject
    outcome: Outcome
    error: ExecutionError | None
    duration_ms: float
    suggestion: Suggestion | None = None
    """What this attempt followed; None for the first."""
    changes: tuple[Change, ...] = ()
    """From the first attempt's parameters to these."""


@dataclass(frozen=True, kw_only=True)  # no slots: they break `ReflectedResult[T](...)` on 3.11
class ReflectedResult(Generic[ResultT]):
    """How a call ended.

    When it did not succeed, `result`, `exception` and `error` are those of the *first* attempt:
    that is the call that was made; what the retries met stands in `attempts`.
    """

    succeeded: bool
    result: ResultT | None
    exception: Exception | None = None
    error: ExecutionError | None = None
    attempts: list[Attempt] = field(default_factory=list)
    note: str = ""
    """`succeeded`, `repaired via reflection`, `repaired on second try`, or why not."""
    time_to_repair_ms: float | None = None
    """From the first failure to the success, in milliseconds; None unless repaired."""
    suggestions: list[Suggestion] = field(default_factory=list)
    """Not tried, best first: for a manual fix."""

    def value(self) -> ResultT:
        """The result of the call, which may itself tell of a failure.

        Raises:
            Exception: the tool's own, when the first attempt raised and nothing repaired it.
        """
        if self.exception is not None:
            raise self.exception
        return cast("ResultT", self.result)  # None only where the tool returned None

    @property
    def repaired(self) -> bool:
        """Whether a retry succeeded where the first attempt failed."""
        return self.succeeded and len(self.attempts) > 1

    @property
    def followed(self) -> Suggestion | None:
        """The suggestion that repaired the call."""
        return self.attempts[-1].suggestion if self.repaired else None

    @property
    def advice(self) -> str:
        """The suggestions and what was tried, in plain words; empty when there is nothing."""
        tried = [
            (attempt.suggestion, attempt.error.message)
            for attempt in self.attempts
            if attempt.suggestion is not None and attempt.error is not None
        ]
        return describe_suggestions(self.suggestions, tried=tried)
