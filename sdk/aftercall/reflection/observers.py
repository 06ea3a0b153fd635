"""Who may look on while a tool is called: events, traces."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, runtime_checkable

from aftercall.json_values import JsonObject
from aftercall.models.calls import ExecutionError, Suggestion

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """Who calls what, and why."""

    tool_name: str
    agent: str
    server_name: str | None = None
    session_id: str | None = None
    context: str | None = None


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


class Observers:
    """Several observers as one; what one of them raises is logged, and harms nothing else.

    Args:
        observers: told in their order; `stopped` and `ended` in the reverse order.
    """

    def __init__(self, observers: Sequence[CallObserver]) -> None:
        self._observers = tuple(observers)

    def planned(self, attempt: PlannedAttempt) -> ObservedAttempt:
        """Tell all of them."""
        observed = []
        for observer in self._observers:
            try:
                observed.append(observer.planned(attempt))
            except Exception as error:  # noqa: BLE001  # never a call's fault, nor a failure of it
                _complain(observer, error)
        return _All(observed)


class _All:
    def __init__(self, attempts: Sequence[ObservedAttempt]) -> None:
        self._attempts = attempts[::-1]

    def stopped(self) -> None:
        for attempt in self._attempts:
            try:
                attempt.stopped()
            except Exception as error:  # noqa: BLE001  # as above
                _complain(attempt, error)

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        for attempt in self._attempts:
            try:
                attempt.ended(duration_ms=duration_ms, error=error)
            except Exception as raised:  # noqa: BLE001  # as above
                _complain(attempt, raised)

    @contextmanager
    def asking(self) -> Iterator[None]:
        with ExitStack() as stack:
            for attempt in reversed(self._attempts):
                if isinstance(attempt, AskingAttempt):
                    stack.enter_context(_Harmless(attempt))
            yield


class _Harmless:
    """What an observer has around a question; an answer is not lost by what it raises."""

    def __init__(self, attempt: AskingAttempt) -> None:
        self._attempt = attempt
        self._inside: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        try:
            inside = self._attempt.asking()
            inside.__enter__()
            self._inside = inside
        except Exception as error:  # noqa: BLE001  # as above
            _complain(self._attempt, error)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._inside is not None:
                self._inside.__exit__(exc_type, exc, traceback)
        except Exception as error:  # noqa: BLE001  # as above
            if error is not exc:
                _complain(self._attempt, error)


def _complain(observer: object, error: Exception) -> None:
    # Its type alone: the text of an exception often quotes a value.
    _logger.warning("%s raised %s", type(observer).__name__, type(error).__name__)
