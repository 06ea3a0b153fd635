"""One call with its attempts: what was sent, what came back, what is recorded, what is shown.

No I/O but handing executions to the recorder; `aftercall.reflection` drives it.
"""

import logging
import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Generic, Protocol, TypeVar
from uuid import uuid4

from aftercall.arguments import arguments_of
from aftercall.client.transport import current_trace_id
from aftercall.error_texts import ToolKey
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, bounded_json, bounded_text, make_json_value
from aftercall.models.calls import Execution, ExecutionError, SuggestResponse, make_execution
from aftercall.outcomes import Outcome, is_referral, log_line
from aftercall.reflection import results
from aftercall.reflection.retry_rules import ReflectionPolicy, Retry, RetryRules
from aftercall.tables import keep_latest

ResultT = TypeVar("ResultT")
_logger = logging.getLogger(__name__)
_NOTES = {1: "succeeded", 2: "repaired via reflection", 3: "repaired on second try"}
"""By the number of attempts; the words of seed 004."""


class ExecutionSink(Protocol):
    """The one method of `Recorder` that reflection needs."""

    def record(self, execution: Execution) -> None:
        """Take an execution over; returns at once and never raises."""


MIN_CALLS = 20
"""Of a tool, from which on its rate is stated."""
_MAX_TOOLS = 10_000
"""Counted at a time: names come from agents, and must not grow without end."""


class FailureRates:
    """Counts calls and failures per tool; safe to share between threads."""

    def __init__(self) -> None:
        self._counts: dict[ToolKey, tuple[int, int]] = {}
        self._lock = Lock()

    def count_call(self, tool: ToolKey, *, failed: bool) -> None:
        """Count one call of `tool`."""
        with self._lock:
            calls, failures = self._counts.get(tool, (0, 0))
            keep_latest(self._counts, tool, (calls + 1, failures + failed), _MAX_TOOLS)

    def failure_rate(self, tool: ToolKey) -> float | None:
        """Share of failed calls, 0 to 1; None before there are 20 calls."""
        with self._lock:
            calls, failures = self._counts.get(tool, (0, 0))
        return failures / calls if calls >= MIN_CALLS else None


@dataclass(eq=False)
class ReflectedCall(Generic[ResultT]):
    """The attempts of one call, in order: `begin`, `stopped`, `returned` or `raised`, `question`.

    The arguments are those of `call_with_reflection`; of the parameters a copy is taken at once,
    since tools may change theirs.
    """

    facts: results.CallFacts
    parameters: JsonObject | str
    policy: ReflectionPolicy
    recorder: ExecutionSink
    rates: FailureRates | None = None
    reader: results.ResultReader[ResultT] | None = None
    may_repeat: bool = False
    observers: Sequence[results.CallObserver] = ()

    def __post_init__(self) -> None:
        self._reader: results.ResultReader[ResultT] = self.reader or results.OutcomeReader()
        self.arguments = arguments_of(self.parameters)
        """What `parameters` say, which may be a text."""
        copy = make_json_value(self.arguments.parameters)
        self._sent: JsonObject = copy if isinstance(copy, dict) else {}
        self._can_be_replayed = same_json(self._sent, self.arguments.parameters)
        self._retry: Retry | None = None
        self._attempts: list[results.Attempt] = []
        self.question: Execution | None = None
        """What to ask the service; None when there is nothing to ask about."""
        self._rules: RetryRules | None = None
        self._unmade: JsonObject | None = None
        self._is_open = False
        self._first_result: ResultT | None = None
        self._first_exception: Exception | None = None
        self._last_result: ResultT | None = None
        self._observed: results.ObservedByAll
        self._execution_id, self._trace_id = "", current_trace_id()
        self._timestamp = datetime.now(UTC)
        self._started = self._first_failed = time.perf_counter()
        self._duration_ms = 0.0

    def begin_attempt(self) -> None:
        """Note that an attempt starts now."""
        self._execution_id = str(uuid4())
        attempt = results.PlannedAttempt(
            facts=self.facts,
            execution_id=self._execution_id,
            parameters=self._sent,
            number=len(self._attempts) + 1,
            repair_of=self._attempts[0].execution_id if self._attempts else None,
            suggestion=self._retry.suggestion if self._retry else None,
        )
        self._observed = results.ObservedByAll(self.observers, attempt)
        self._trace_id = current_trace_id()
        self._timestamp = datetime.now(UTC)
        self._started = time.perf_counter()

    def note_stopped(self, given_up: BaseException | None = None) -> None:
        """Note that the tool returned, raised or was given up, where the attempt began."""
        self._duration_ms = _ms_since(self._started)  # the tool's own, without the reading
        self._observed.stopped(given_up)

    def note_returned(self, result: ResultT) -> None:
        """Note that the attempt returned."""
        self._last_result = result
        self.question = None
        if (outcome := self._reader.read(result)) is None:
            self._is_open = True
        elif outcome.error is None:
            self._end_attempt(None, bounded_json(outcome.value), outcome.status)
        else:
            self._end_attempt(outcome.error)
            if len(self._attempts) == 1:
                self._first_result = result

    def note_raised(self, error: Exception) -> None:
        """Note that the attempt raised."""
        self._end_attempt(self._reader.read_exception(error))
        if len(self._attempts) == 1:
            self._first_exception = error

    def observe_question(self) -> AbstractContextManager[None]:
        """Return what the question is asked inside of."""
        return self._observed.asking()

    def decide_retry(self, answer: SuggestResponse | Exception) -> Retry | None:
        """Return what to do next, given the service's answer or what came instead of one."""
        if isinstance(answer, Exception):
            _logger.warning(
                "no suggestion for %s: %s: %s",
                self.facts.tool_name,
                type(answer).__name__,
                bounded_text(str(answer), 300),
            )
        last = self._attempts[-1]
        if last.error is None or self._rules is None:
            return None
        answered = answer if isinstance(answer, SuggestResponse) else None
        retry = self._rules.next_retry(last.error, answered)
        if self.arguments.parameters is None:
            self._rules.reason = "the arguments are a text that says no object: cut off, perhaps"
            return None
        if retry is None:
            return None
        if not self._can_be_replayed:
            self._rules.reason = "the parameters hold values outside JSON"
            return None
        if self.facts.shadow is not None:
            self._unmade = retry.parameters
            self._rules.reason = "the call is only watched"
            return None
        self._sent, self._retry = retry.parameters, retry
        return retry

    def finish_call(self, *, raise_on_failure: bool) -> results.ReflectedResult[ResultT]:
        """Return how the call ended."""
        attempts = self._attempts
        if self._is_open or attempts[-1].error is None:
            note = _NOTES.get(len(attempts), _NOTES[1])
            return results.ReflectedResult(
                succeeded=True,
                result=self._last_result,
                attempts=attempts,
                note="; ".join(filter(None, (note, self.arguments.note))),
                time_to_repair_ms=_ms_since(self._first_failed) if len(attempts) > 1 else None,
            )
        note = f"not repaired: all {len(attempts)} attempts failed"
        if self._rules is None:
            note = "not reflected on"
        elif len(attempts) == 1 or len(attempts) < self.policy.max_attempts:
            note = f"not repaired: {self._rules.reason}"
        exception = self._first_exception
        failed = results.ReflectedResult(
            succeeded=False,
            result=self._first_result,
            exception=exception,
            error=attempts[0].error,
            attempts=attempts,
            note=note,
            suggestions=self._rules.remaining if self._rules else [],
            unmade=self._unmade,
        )
        if raise_on_failure and exception is not None:
            if failed.advice:
                exception.add_note(failed.advice)
            with suppress(AttributeError):  # an exception class with slots takes no attribute
                exception.aftercall = failed  # type: ignore[attr-defined]  # the point
            raise exception
        return failed

    def _end_attempt(
        self, error: ExecutionError | None, summary: JsonValue = None, status: str | None = None
    ) -> None:
        facts = self.facts
        attempt = results.Attempt(
            execution_id=self._execution_id,
            parameters=self._sent,
            outcome="success" if error is None else "failure",
            error=error,
            duration_ms=self._duration_ms,
            suggestion=self._retry.suggestion if self._retry else None,
            changes=self._retry.changes if self._retry else (),
        )
        self._attempts.append(attempt)
        self._observed.ended(duration_ms=self._duration_ms, error=error)
        first = self._attempts[0]
        if attempt is first and error is not None:
            self._first_failed = time.perf_counter()
        if self.rates is not None and attempt is first:
            self.rates.count_call((facts.server_name, facts.tool_name), failed=error is not None)
        if error is not None and is_referral(error):
            _logger.info("%s", log_line(Outcome(failure=error), tool=facts.tool_name))
        is_read = self.arguments.parameters is not None
        execution = make_execution(
            execution_id=attempt.execution_id,
            timestamp=self._timestamp,
            agent=facts.agent,
            server_name=facts.server_name,
            tool_name=facts.tool_name,
            parameters=attempt.parameters,
            parameters_known=is_read,
            arguments_text=self.arguments.text if attempt is first else None,
            context=facts.context,
            shadow=facts.shadow,
            repaired_before=facts.repaired_before and attempt is first,
            outcome=attempt.outcome,
            duration_ms=attempt.duration_ms,
            error=attempt.error,
            result=summary,
            result_status=status,
            session_id=facts.session_id,
            attempt=len(self._attempts),
            repair_of=None if attempt is first else first.execution_id,
            suggestion_id=attempt.suggestion.suggestion_id if attempt.suggestion else None,
            trace_id=self._trace_id,
        )
        if execution is not None and facts.agent not in self.policy.unrecorded_agents:
            self.recorder.record(execution)
        self.question = None
        if self._is_asked_about(attempt) and execution is not None:
            # Of arguments that were read the object was sent, and changes are to be made to that.
            without_text = execution.model_copy(update={"arguments_text": None})
            self.question = without_text if is_read else execution

    def _is_asked_about(self, attempt: results.Attempt) -> bool:
        if attempt.error is None or self.policy.leaves_alone(self.facts.agent):
            return False
        if attempt is self._attempts[0]:
            tool = (self.facts.server_name, self.facts.tool_name)
            rate = None if self.rates is None else self.rates.failure_rate(tool)
            if rate is not None and rate < self.policy.min_failure_rate:
                return False
            self._rules = RetryRules(
                self.policy,
                self._sent,
                may_repeat=self.may_repeat,
                jitter=random.random,
                tool_name=self.facts.tool_name,
                annotations=self.facts.annotations,
            )
            return True
        return len(self._attempts) < self.policy.max_attempts  # else no one could act on it


def _ms_since(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000
