"""Observers of a call: what looks on while a tool is called, such as events and traces."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

from aftercall.json_values import JsonObject
from aftercall.models.calls import ExecutionError, Suggestion, ToolAnnotations

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """Who calls what, and why."""

    tool_name: str
    agent: str
    server_name: str | None = None
    session_id: str | None = None
    context: str | None = None
    annotations: ToolAnnotations | None = None
    """Hints of the live tool that are trusted; None where none are known here."""
    kept: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """What observers keep from one attempt of the call to the next, each under itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAttempt:
    """One attempt of a call, before it is made. `execution_id` is what it is recorded under."""

    facts: CallFacts
    execution_id: str
    parameters: JsonObject
    number: int
    """From 1."""
    repair_of: str | None = None
    """The execution id of the first attempt; None for that one itself."""
    suggestion: Suggestion | None = None
    """What it follows, if it follows one."""


class ObservedAttempt(Protocol):
    """What an observer keeps of one attempt. Its methods return at once and never raise."""

    def stopped(self) -> None:
        """The tool returned or raised; told in the task and thread that the attempt began in."""

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        """How it ended, as it was read; told after `stopped`, perhaps in another thread.

        Left out where the result is no outcome yet, such as a question to the user, and where the
        caller gave up (a cancelled task).
        """


@runtime_checkable
class AskingAttempt(Protocol):
    """An observed attempt that wants to know when the service is asked about it."""

    def asking(self) -> AbstractContextManager[None]:
        """The service is asked inside of it, in the caller's task and thread, after `ended`.

        It sees what is raised instead of an answer, and lets it through.
        """


class CallObserver(Protocol):
    """Looks on. Its methods return at once and never raise."""

    def planned(self, attempt: PlannedAttempt) -> ObservedAttempt:
        """An attempt is about to be made, in this task and thread."""


class ObservedByAll:
    """What several observers keep of one attempt; what one raises is logged, and harms no other.

    They are asked in their order, and `stopped` and `ended` are told in the reverse order.
    """

    def __init__(self, observers: Sequence[CallObserver], attempt: PlannedAttempt) -> None:
        self._attempts: list[ObservedAttempt] = []
        for observer in observers:
            with _logged(observer):
                self._attempts.append(observer.planned(attempt))

    def stopped(self) -> None:
        """As `ObservedAttempt.stopped`."""
        for attempt in reversed(self._attempts):
            with _logged(attempt):
                attempt.stopped()

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        """As `ObservedAttempt.ended`."""
        for attempt in reversed(self._attempts):
            with _logged(attempt):
                attempt.ended(duration_ms=duration_ms, error=error)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """As `AskingAttempt.asking`; an answer is not lost by what an observer raises."""
        with ExitStack() as stack:
            for attempt in self._attempts:
                if isinstance(attempt, AskingAttempt):
                    with _logged(attempt):
                        inside = attempt.asking()
                        inside.__enter__()
                        stack.push(partial(_leave, attempt, inside))
            yield


def _leave(attempt: object, inside: AbstractContextManager[None], *raised: Any) -> None:
    with _logged(attempt):
        inside.__exit__(*raised)


@contextmanager
def _logged(observer: object) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  # never a call's fault, nor a failure of it
        # Its type alone: the text of an exception often quotes a value.
        _logger.warning("%s raised %s", type(observer).__name__, type(error).__name__)
