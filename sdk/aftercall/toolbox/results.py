"""What a toolbox gives back."""

from dataclasses import dataclass
from typing import Literal

from aftercall.evolution import EvolutionResult
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ExecutionError, Severity, Tool

AttemptOutcome = Literal["success", "failed", "rejected", "refused"]
"""How an attempt ended.

`failed`: the tool ran, or may have. `rejected`: the input did not fit it, and it did not run.
`refused`: this machine did not run it, which says nothing about the tool.
"""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a tool returned, and which version of it that was.

    `execution_id` is the recorded execution's; None when nothing was recorded. `status` is the
    tool's own word for its success.
    """

    value: JsonValue
    tool: Tool
    execution_id: str | None
    duration_ms: float
    details: JsonObject
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """One tool that was tried.

    Attributes:
        score: its rank's, 0 to 1; None when there was none, as for an evolved version.
        execution_id: of the recorded execution; None when nothing was recorded.
        severity: what it was marked with; None when it was not marked.
        mark_problem: why it could not be marked.
    """

    tool_id: str
    version: str | None
    outcome: AttemptOutcome
    duration_ms: float
    score: float | None = None
    error: ExecutionError | None = None
    execution_id: str | None = None
    severity: Severity | None = None
    mark_problem: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """One tool that was not tried, and why."""

    tool_id: str
    version: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResilientResult:
    """How a resilient call ended.

    Attributes:
        result: what the tool returned; None also when none succeeded.
        tool: the version that succeeded.
        why: how it ended, in a sentence.
        attempts: in their order, an evolved version last.
        skipped: in rank order.
        evolution_tried: whether a tool was to be evolved.
        evolution: what came of it; None also when it could not be begun, which `why` tells.
        from_service: whether the service ranked the candidates; else the local tools were taken.
    """

    success: bool
    result: JsonValue
    tool: Tool | None
    why: str
    attempts: tuple[Attempted, ...]
    skipped: tuple[Skipped, ...]
    evolution_tried: bool = False
    evolution: EvolutionResult | None = None
    from_service: bool = True
