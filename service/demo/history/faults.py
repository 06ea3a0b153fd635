"""How a simulated tool fails: an error of its own, and which kind of failure the simulator knows.

The kind is the hidden truth. It is never sent: the service has to read it out of the tool's words.
"""

from typing import Literal, get_args

from aftercall.json_values import JsonObject
from aftercall.models import ExecutionError

FaultKind = Literal[
    "unknown_parameter",
    "missing_parameter",
    "wrong_type",
    "out_of_range",
    "not_a_choice",
    "wrong_form",
    "hidden_rule",
    "not_found",
    "conflict",
    "timeout",
    "rate_limited",
    "unavailable",
    "permission",
    "wrong_tool",
    "little_use",
]
"""Why a call failed. `hidden_rule`: a rule of the tool that its schema does not tell."""

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

PASSING: frozenset[FaultKind] = frozenset({"timeout", "rate_limited", "unavailable"})
"""Failures that the same call may not meet again."""

HOPELESS: frozenset[FaultKind] = frozenset({"permission", "wrong_tool", "little_use"})
"""Failures that no other parameters of the same tool would mend."""


class ToolFault(Exception):  # noqa: N818  # a simulated tool's answer, not an error of ours
    """A refusal or a breakdown of a simulated tool, in the tool's own words.

    Args:
        kind: what it is, for the simulator alone.
        message: what the tool says.
        type: the name of the error, as the tool gives it.
        code: its code, where the tool has codes.
        details: more, where the tool gives more.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        type: str = "ToolError",  # noqa: A002  # as the wire calls it
        code: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.type = type
        self.code = code
        self.details = details or {}

    def error(self) -> ExecutionError:
        """As it is recorded."""
        return ExecutionError(
            type=self.type, message=self.message, code=self.code, details=self.details
        )
