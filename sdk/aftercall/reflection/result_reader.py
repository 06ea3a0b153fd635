"""How the results and exceptions of a kind of tool are read: which of them are failures."""

import errno
from typing import Protocol, TypeVar, runtime_checkable

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import Outcome

ReadT_contra = TypeVar("ReadT_contra", contravariant=True)

_MAX_NAME_CHARS = 256  # as the wire models have it
_MAX_MESSAGE_CHARS = 8000


class ResultReader(Protocol[ReadT_contra]):
    """How the results and exceptions of a kind of tool are read."""

    def read_failure(self, result: ReadT_contra) -> ExecutionError | None:
        """The failure that a result tells of; None for a success."""

    def read_exception(self, error: Exception) -> ExecutionError:
        """The failure that an exception tells of."""

    def is_outcome(self, result: ReadT_contra) -> bool:
        """False for what is neither success nor failure yet, such as a question to the user."""

    def summarise(self, result: ReadT_contra) -> JsonValue:
        """What to record of a success: small, plain JSON."""


@runtime_checkable
class StatusReader(Protocol[ReadT_contra]):
    """A reader that also knows what a tool calls its success; it need not be one."""

    def read_status(self, result: ReadT_contra) -> str | None:
        """The tool's own word for its success, such as `success_no_parse`."""


@runtime_checkable
class ThreadedReader(Protocol):
    """A reader that may take long over a large result; it need not be one.

    `call_with_reflection` has it read in a thread, so that nothing else waits on the event loop.
    """

    reads_in_thread: bool


class OutcomeReader:
    """The reader for plain callables: exceptions and typed errors fail, all else succeeds.

    A typed error is an `Outcome`, or a mapping that is unmistakably a serialised one (see
    `Outcome.coerce`). What a success says of itself is recorded, and changes nothing.
    """

    def read_failure(self, result: object) -> ExecutionError | None:
        """The typed error that was returned."""
        return Outcome.coerce(result).error

    def read_exception(self, error: Exception) -> ExecutionError:
        """Type and text of the exception, and its `code` when it has one."""
        return read_exception(error)

    def read_status(self, result: object) -> str | None:
        """The status of an `Outcome`, or of a mapping."""
        return Outcome.coerce(result).status

    def is_outcome(self, result: object) -> bool:
        """Always."""
        del result
        return True

    def summarise(self, result: object) -> JsonValue:
        """The result, or the value of an `Outcome`, cut to a few thousand characters."""
        return bounded_json(Outcome.coerce(result).value)


def read_exception(error: Exception, *, message: str | None = None) -> ExecutionError:
    """An exception in the words of the wire; `message` replaces its text.

    One that carries an `error: ExecutionError` (`ToolFailedError`) is that error. When its text is
    replaced, for the caller must not see it, its details and stack are left out as well.
    """
    carried = _attribute(error, "error")
    if isinstance(carried, ExecutionError):
        if message is None or message == _text_of(error):
            return carried
        shown = bounded_text(message, _MAX_MESSAGE_CHARS)
        return carried.model_copy(update={"message": shown, "details": {}, "stack": None})
    code = _code_of(error)
    return ExecutionError(
        type=type(error).__name__[:_MAX_NAME_CHARS],
        message=bounded_text(_text_of(error) if message is None else message, _MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), _MAX_NAME_CHARS),
    )


def _code_of(error: Exception) -> int | str | None:
    """Its own `code` (JSON-RPC, most libraries), its POSIX name, or the status of its response."""
    code = _attribute(error, "code")
    if isinstance(error, OSError) and error.errno is not None:
        code = errno.errorcode.get(error.errno)
    if code is None:
        code = _attribute(_attribute(error, "response"), "status_code")
    return code if isinstance(code, int | str) else None


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # a tool's own exception may raise anything here
        return "(its text cannot be read)"


def _attribute(value: object, name: str) -> object:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # as above
        return None
