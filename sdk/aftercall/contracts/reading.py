"""Reading results with a deliverable: one that breaks it is a failed call."""

from collections.abc import Callable
from typing import Generic, TypeVar

from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.enforcing import held_against
from aftercall.contracts.violations import violation_error
from aftercall.json_values import JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import Outcome
from aftercall.reflection.result_reader import ResultReader, StatusReader

ResultT = TypeVar("ResultT")


class DeliverableReader(Generic[ResultT]):
    """A `ResultReader` that holds what another one takes for a success against a deliverable.

    With it, `call_with_reflection` records a violation as the call's failure and asks about it.
    The result itself is neither changed nor recorded in another shape.

    Args:
        inner: says which results are failures by their own word; those are not checked.
        deliverable: what the successes must be, in their canonical shape.
        delivered: what a result delivers: the value that is checked. When left out, the value of
            an `Outcome`, and of anything else the result itself.
    """

    reads_in_thread = True  # the work is linear in the result, which may be of any size

    def __init__(
        self,
        inner: ResultReader[ResultT],
        deliverable: Deliverable,
        delivered: Callable[[ResultT], object] | None = None,
    ) -> None:
        self._inner = inner
        self._deliverable = deliverable
        self._delivered = delivered or _value_of

    def read_failure(self, result: ResultT) -> ExecutionError | None:
        """The failure that the result tells of, or its violation."""
        error = self._inner.read_failure(result)
        if error is not None:
            return error
        _, violations = held_against(self._delivered(result), self._deliverable)
        return violation_error(violations) if violations else None

    def read_exception(self, error: Exception) -> ExecutionError:
        """As the inner reader."""
        return self._inner.read_exception(error)

    def read_status(self, result: ResultT) -> str | None:
        """As the inner reader, where it knows one."""
        return self._inner.read_status(result) if isinstance(self._inner, StatusReader) else None

    def is_outcome(self, result: ResultT) -> bool:
        """As the inner reader."""
        return self._inner.is_outcome(result)

    def summarise(self, result: ResultT) -> JsonValue:
        """As the inner reader: what the tool said, in its own shape."""
        return self._inner.summarise(result)


def _value_of(result: object) -> object:
    return Outcome.coerce(result).value
