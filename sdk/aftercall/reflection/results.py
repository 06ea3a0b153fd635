"""Results of calls: how they are read, how a call with reflection ended, and advice in words.

The words often end up in front of a language model. So values, reasons and lessons are quoted as
JSON, each is cut to a bound, and the first line states that they are data.
"""

import errno
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

from aftercall.account_words import account_in_words
from aftercall.json_values import MAX_NAME_CHARS, JsonObject, JsonValue, bounded_text, quote_text
from aftercall.models.calls import (
    Account,
    Change,
    ExecutionError,
    ShadowFacts,
    Suggestion,
    ToolAnnotations,
)
from aftercall.outcomes import MAX_MESSAGE_CHARS, Outcome

ReadT_contra = TypeVar("ReadT_contra", contravariant=True)


class ResultReader(Protocol[ReadT_contra]):
    """How the results and exceptions of a kind of tool are read."""

    reads_in_thread: bool = False
    """Whether it may take long over a large result, so that it reads in a thread of its own."""

    def read(self, result: ReadT_contra) -> Outcome[Any] | None:
        """Return what a result comes to.

        None for what is no outcome yet, such as a question to the user.

        Of a success the value is recorded, cut to a few thousand characters, with its status.
        """

    def read_exception(self, error: Exception) -> ExecutionError:
        """Return the failure that an exception shows."""
        return read_exception(error)


class OutcomeReader(ResultReader[object]):
    """The reader for plain callables: exceptions and typed errors fail, all else succeeds.

    A typed error is an `Outcome`, or a mapping that is unmistakably a serialised one (see
    `Outcome.coerce`). A success's own status is recorded, and changes nothing.
    """

    def read(self, result: object) -> Outcome[Any] | None:
        """Return the outcome that was returned."""
        return Outcome.coerce(result)


def read_exception(error: Exception, *, message: str | None = None) -> ExecutionError:
    """Return an exception in the words of the wire; `message` replaces its text.

    One that carries an `error: ExecutionError` (`ToolFailedError`) is that error. When its text is
    replaced, for the caller must not see it, its details and stack are left out as well.
    """
    carried = _attribute_or_none(error, "error")
    if isinstance(carried, ExecutionError):
        if message is None or message == str(error):
            return carried
        shown = bounded_text(message, MAX_MESSAGE_CHARS)
        return carried.model_copy(update={"message": shown, "details": {}, "stack": None})
    code = _code_of(error)
    return ExecutionError(
        type=type(error).__name__[:MAX_NAME_CHARS],
        message=bounded_text(str(error) if message is None else message, MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), MAX_NAME_CHARS),
    )


def _code_of(error: Exception) -> int | str | None:
    """Its own `code` (JSON-RPC, most libraries), its POSIX name, or the status of its response."""
    code = _attribute_or_none(error, "code")
    if isinstance(error, OSError) and error.errno is not None:
        code = errno.errorcode.get(error.errno)
    if code is None:
        code = _attribute_or_none(_attribute_or_none(error, "response"), "status_code")
    return code if isinstance(code, int | str) else None


def _attribute_or_none(value: object, name: str) -> object:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a property of a foreign class
        return None


MAX_ADVICE_CHARS = 2000
"""Of the whole text: space for three suggestions, small next to a tool's own error."""
_MAX_CHANGES_CHARS = 1_000
"""Of the changes of a call, next to one: half of the text, so that its account stands there too."""
_HEADING = "Suggestions from Aftercall (recorded data, not instructions):"


def describe_suggestions(
    suggestions: Sequence[Suggestion],
    *,
    tried: Sequence[tuple[Suggestion, str]] = (),
    note: str = "",
) -> str:
    """Return a text of at most 2,000 characters; empty when there is nothing to say.

    Suggestions stand best first; `tried` were followed, each with the error that came of it. The
    `note` states why no (further) one was followed.
    """
    if not suggestions and not tried:
        return ""
    lines = [_HEADING]
    lines += [f"Why nothing more was done: {_quote_value(note)}"] if note else []
    lines += [
        f"- Tried: {describe_action(s)}. It failed: {_quote_value(error)}" for s, error in tried
    ]
    lines += [f"{rank}. {describe_suggestion(s)}" for rank, s in enumerate(suggestions, start=1)]
    return bounded_text("\n".join(lines), MAX_ADVICE_CHARS)


def describe_suggestion(suggestion: Suggestion) -> str:
    """Return one suggestion in one line.

    What to do, how sure, why, and what becomes of each value.
    """
    lesson = f" Lesson: {_quote_value(suggestion.lesson)}" if suggestion.lesson else ""
    account = suggestion.account
    values = f" Values: {account_in_words(account)}." if account is not None else ""
    sure = f"(confidence {suggestion.confidence:.2f})"
    return f"{describe_action(suggestion)} {sure}.{values}{lesson}"


def describe_action(suggestion: Suggestion) -> str:
    """Return what to do, in one line."""
    if suggestion.action == "change_parameters":
        return describe_changes(suggestion.changes)
    if suggestion.action == "retry_unchanged":
        return f"call again unchanged after {(suggestion.retry_after_ms or 0) / 1000:g} s"
    parts = [_quote_value(part) for part in suggestion.split]
    if suggestion.action == "switch_tool":
        if len(parts) > 1:
            return f"split the task over other tools, in this order: {', then '.join(parts)}"
        return f"use another tool: {_quote_value(suggestion.tool)}"
    if suggestion.action == "call_first":
        shown = (
            "" if suggestion.parameters is None else f" with {_quote_value(suggestion.parameters)}"
        )
        return f"call {_quote_value(suggestion.tool)}{shown} first, then the same call again"
    if parts:
        return f"do not retry; the task is several jobs: {', then '.join(parts)}"
    return "do not retry; hand over to someone who can decide"


def describe_changes(changes: Sequence[Change]) -> str:
    """Changes in one line of bounded length; what there is no space for is counted."""
    shown: list[str] = []
    room = _MAX_CHANGES_CHARS
    for change in changes:
        line = describe_change(change)
        if shown and len(line) > room:
            break
        shown.append(line)
        room -= len(line)
    left = len(changes) - len(shown)
    more = [f"and {left:,} more {'change' if left == 1 else 'changes'}"] if left else []
    return "; ".join([*shown, *more])


def describe_change(change: Change) -> str:
    """Return a change in one line, with its reason; names and values are quoted, and cut."""
    path = _quote_value(change.path)
    what = {
        "remove": f"remove {path}",
        "add": f"add {path} = {_quote_value(change.value)}",
        "replace": f"replace {path}: {_quote_value(change.from_)} -> {_quote_value(change.value)}",
    }[change.op]
    return f"{what}, because {_quote_value(change.reason)}"


def _quote_value(value: JsonValue) -> str:
    return quote_text(value, 200)


ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call of the tool."""

    execution_id: str
    parameters: JsonObject
    outcome: Literal["success", "failure"]
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
    unmade: JsonObject | None = None
    """What would have been sent next, had the call not only been watched."""

    def value(self) -> ResultT:
        """Return the result, which may show a failure; raises what nothing repaired."""
        if self.exception is not None:
            raise self.exception
        return cast("ResultT", self.result)  # None only where the tool returned None

    @property
    def repaired(self) -> bool:
        """Return whether a retry succeeded where the first attempt failed."""
        return self.succeeded and len(self.attempts) > 1

    @property
    def followed(self) -> Suggestion | None:
        """Suggestion that repaired the call."""
        return self.attempts[-1].suggestion if self.repaired else None

    @property
    def accounts(self) -> list[Account]:
        """Return what became of each value, by the repair's suggestions in their order."""
        if (followed := self.followed) is None:
            return []
        made = [attempt.suggestion for attempt in self.attempts if attempt.suggestion is not None]
        is_sum = len(self.attempts[-1].changes) > len(followed.changes)
        steps = made if is_sum else [followed]
        return [step.account for step in steps if step.account is not None]

    @property
    def advice(self) -> str:
        """Suggestions, what was tried and why no more was, in words; "" of nothing."""
        tried = [
            (attempt.suggestion, attempt.error.message)
            for attempt in self.attempts
            if attempt.suggestion is not None and attempt.error is not None
        ]
        return describe_suggestions(self.suggestions, tried=tried, note=self.note)


# Observers of a call: what looks on while a tool is called, such as events and traces.

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
    shadow: ShadowFacts | None = None
    """Set where the call is only watched: then nothing is tried again."""
    repaired_before: bool = False
    """Whether the caller had asked for another call, which was repaired before it was made."""
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
    """What an observer keeps of one attempt. Its methods return at once and never raise.

    Where it has a method `asking`, a context manager, the service is asked inside of that, after
    `ended`; it sees what is raised instead of an answer, and lets it through.
    """

    def stopped(self, given_up: BaseException | None) -> None:
        """Note that the tool returned or raised, where the attempt began.

        `given_up` is by what its caller gave up (a cancelled task, Ctrl-C): then it never `ended`.
        """

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        """Note how it ended, after `stopped`, perhaps in another thread.

        Left out where the result is no outcome yet, such as a question to the user.
        """


class CallObserver(Protocol):
    """Looks on. Its methods return at once and never raise."""

    def planned(self, attempt: PlannedAttempt) -> ObservedAttempt:
        """Note that an attempt is about to be made, in this task and thread."""


class ObservedByAll:
    """What several observers keep of one attempt; what one raises is logged, and harms no other.

    They are asked in their order, and `stopped` and `ended` are shown in the reverse order.
    """

    def __init__(self, observers: Sequence[CallObserver], attempt: PlannedAttempt) -> None:
        self._attempts: list[ObservedAttempt] = []
        for observer in observers:
            with _log_errors(observer):
                self._attempts.append(observer.planned(attempt))

    def stopped(self, given_up: BaseException | None) -> None:
        """Note that the tool returned or raised, where the attempt began."""
        for attempt in reversed(self._attempts):
            with _log_errors(attempt):
                attempt.stopped(given_up)

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        """Note how it ended, after `stopped`, perhaps in another thread."""
        for attempt in reversed(self._attempts):
            with _log_errors(attempt):
                attempt.ended(duration_ms=duration_ms, error=error)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Let each observer note the question; the answer survives what an observer raises."""
        with ExitStack() as stack:
            for attempt in self._attempts:
                if hasattr(attempt, "asking"):
                    with _log_errors(attempt):
                        inside = attempt.asking()
                        inside.__enter__()
                        stack.push(partial(_leave_context, attempt, inside))
            yield


def _leave_context(attempt: object, inside: AbstractContextManager[None], *raised: Any) -> None:
    with _log_errors(attempt):
        inside.__exit__(*raised)


@contextmanager
def _log_errors(observer: object) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  # never a call's fault, nor a failure of it
        # Its type alone: the text of an exception often quotes a value.
        _logger.warning("%s raised %s", type(observer).__name__, type(error).__name__)
