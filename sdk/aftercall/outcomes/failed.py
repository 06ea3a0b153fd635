"""The exception form of a typed error."""

from typing import Any

from aftercall.errors import AftercallError
from aftercall.models.calls import ExecutionError


class ToolFailedError(AftercallError):
    """A tool failed. `error` is what it said; `ran` tells whether it may have done anything.

    `execution_id` is the recorded call's, once it has been recorded.
    """

    ran = True

    def __init__(self, error: ExecutionError, *, ran: bool = True) -> None:
        super().__init__(f"{error.type}: {error.message}")
        self.error = error
        self.ran = ran
        self.execution_id: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from what it says, for it crosses processes (`ProcessPoolExecutor`)."""
        return _bare, (type(self), self.args), self.__dict__


def _bare(kind: type[ToolFailedError], args: tuple[Any, ...]) -> ToolFailedError:
    return kind.__new__(kind, *args)
