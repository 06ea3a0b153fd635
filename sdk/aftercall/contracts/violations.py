"""What a result breaks of its deliverable, and the error that it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.executors.failures import ToolFailedError, tool_error
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.calls import ExecutionError

MAX_VIOLATIONS = 20
"""Told of one result; of more, the first."""

CONTRACT_VIOLATION = "contract_violation"


@dataclass(frozen=True, slots=True)
class Violation:
    """One constraint that a result does not meet.

    Attributes:
        path: JSON Pointer (RFC 6901) to the place in the result; `""` is the result itself. For
            something that is missing, the place that lacks it.
        mismatch: the constraint: `type`, `required`, `non_empty`, `min_items`, `json_schema` ...
        expected: what the constraint says.
        actual: a count, a type or a size; never the value itself, which may be private.
    """

    path: str
    mismatch: str
    expected: JsonValue
    actual: JsonValue

    def __str__(self) -> str:
        place = f" at {self.path}" if self.path else ""
        return f"the result breaks its contract{place}: {_WORDS[self.mismatch].format(self)}"

    def to_dict(self) -> JsonObject:
        """Plain JSON, with one member for each attribute."""
        return {
            "path": self.path,
            "mismatch": self.mismatch,
            "expected": self.expected,
            "actual": self.actual,
        }


_WORDS = {
    "type": "must be of type {0.expected}, but it is: {0.actual}",
    "required": "the key {0.expected!r} is missing ({0.actual})",
    "non_empty": "must not be empty, but it is: {0.actual}",
    "min_items": "needs {0.expected} or more items, but has {0.actual}",
    "max_items": "may have {0.expected} items at most, but has {0.actual}",
    "min_length": "needs {0.expected} or more characters, but has {0.actual}",
    "max_length": "may have {0.expected} characters at most, but has {0.actual}",
    "minimum": "must be {0.expected} or more; it is a {0.actual}",
    "maximum": "must be {0.expected} or less; it is a {0.actual}",
    "json_schema": "does not fit the JSON Schema, {0.expected} ({0.actual})",
}


def violation_error(violations: Sequence[Violation]) -> ExecutionError:
    """The violations (one or more) as the error of a failed call, in the words of the wire.

    `details` has the first one's `path`, `mismatch`, `expected` and `actual`, and all of them
    under `violations`.
    """
    first = violations[0]
    message = str(first)
    more = len(violations) - 1
    if more:
        least = "at least " if len(violations) >= MAX_VIOLATIONS else ""
        message += f"; and {least}{more} more"
    told: list[JsonValue] = [violation.to_dict() for violation in violations]
    details: JsonObject = {**first.to_dict(), "violations": told}
    return tool_error(CONTRACT_VIOLATION, message, details=details)


class ContractViolationError(ToolFailedError):
    """The tool ran and returned, but not what its deliverable asks for.

    `error` is what a failed call is recorded with; `violations` are one to twenty.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(violation_error(violations))
        self.violations = tuple(violations)
