"""How the results and exceptions of a kind of tool are read: which of them are failures."""

import errno
from typing import Protocol, TypeVar

from aftercall.json_values import JsonValue
from aftercall.reflection.bounded import bounded_json, bounded_text
from aftercall.wire.execution import ExecutionError

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


class ExceptionsOnly:
    """The reader for plain callables: exceptions fail, whatever is returned succeeds."""

    def read_failure(self, result: object) -> ExecutionError | None:
        """Never a failure."""
        del result
        return None

    def read_exception(self, error: Exception) -> ExecutionError:
        """Type and text of the exception, and its `code` when it has one."""
        return read_exception(error)

    def is_outcome(self, result: object) -> bool:
        """Always."""
        del result
        return True

    def summarise(self, result: object) -> JsonValue:
        """The result, cut to a few thousand characters."""
        return bounded_json(result)


def read_exception(error: Exception, *, message: str | None = None) -> ExecutionError:
    """An exception in the words of the wire; `message` replaces its text."""
    code = _code_of(error)
    return ExecutionError(
        type=type(error).__name__[:_MAX_NAME_CHARS],
        message=bounded_text(str(error) if message is None else message, _MAX_MESSAGE_CHARS),
        code=None if code is None else bounded_text(str(code), _MAX_NAME_CHARS),
    )


def _code_of(error: Exception) -> int | str | None:
    """Its own `code` (JSON-RPC, most libraries), its POSIX name, or the status of its response."""
    code: object = getattr(error, "code", None)
    if isinstance(error, OSError) and error.errno is not None:
        code = errno.errorcode.get(error.errno)
    if code is None:
        code = getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int | str) else None
