"""What was played: calls as they are recorded, and tasks with their hidden truth."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Execution, FailedCall, Severity
from service.demo.history.faults import FaultKind, ToolFault
from service.demo.history.tools import SimTool

Ending = Literal["at once", "suggested", "by hand", "by itself", "elsewhere", "not mended"]
"""How a task ended: right at once; mended by a suggestion, as the rules of retries allow; by one
that these left to the agent, who took it; by the agent's own skill; done by another tool after a
referral; or not at all."""


@dataclass(frozen=True, slots=True)
class SimCall:
    """One call of one simulated tool."""

    execution_id: str
    at: datetime
    agent: str
    session: str
    sequence: int
    tool: SimTool
    parameters: JsonObject
    context: str
    duration_ms: float
    result: JsonValue = None
    fault: ToolFault | None = None
    attempt: int = 1
    repair_of: str | None = None
    suggestion_id: str | None = None

    def execution(self) -> Execution:
        """As it is recorded."""
        return Execution(
            execution_id=self.execution_id,
            timestamp=self.at,
            agent=self.agent,
            server_name=self.tool.server,
            tool_name=self.tool.name,
            tool_version=self.tool.version,
            parameters=self.parameters,
            context=self.context,
            duration_ms=self.duration_ms,
            outcome="success" if self.fault is None else "failure",
            error=None if self.fault is None else self.fault.error(),
            result=self.result,
            session_id=self.session,
            sequence=self.sequence,
            attempt=self.attempt,
            repair_of=self.repair_of,
            suggestion_id=self.suggestion_id,
        )

    def question(self) -> FailedCall:
        """As the service is asked about it.

        Raises:
            ValueError: it is no failure.
        """
        if self.fault is None:
            raise ValueError("only failed calls are asked about")
        return FailedCall(
            execution_id=self.execution_id,
            timestamp=self.at,
            agent=self.agent,
            server_name=self.tool.server,
            tool_name=self.tool.name,
            tool_version=self.tool.version,
            parameters=self.parameters,
            context=self.context,
            duration_ms=self.duration_ms,
            error=self.fault.error(),
            session_id=self.session,
            sequence=self.sequence,
            attempt=self.attempt,
            repair_of=self.repair_of,
            suggestion_id=self.suggestion_id,
        )


@dataclass(slots=True)
class SimTask:
    """One thing that an agent wanted done, and what the simulator knows of it.

    `is_asking` says whether its agent asks, and was answered when it did. `right`, `wrong` and
    `failed` count followed suggestions: the call then succeeded and did what its caller meant,
    succeeded and did something else, or failed.
    """

    at: datetime
    agent: str
    tool: SimTool
    is_asking: bool
    kind: FaultKind | None = None
    """Of the first failure."""
    ending: Ending = "not mended"
    asked: int = 0
    abstained: int = 0
    followed: int = 0
    by_hand: int = 0
    right: int = 0
    wrong: int = 0
    failed: int = 0
    is_as_meant: bool = True


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A session when it is over."""

    calls: Sequence[SimCall]
    tasks: Sequence[SimTask]
    remarks: Sequence["Remark"] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person said of a call afterwards: of an answer, or of a failure.

    `severity` is set where a failure is marked, `words` are what the person or the tool said.
    """

    call: SimCall
    words: str
    severity: Severity | None = None
