"""What the service says of itself, and its one form of error."""

from typing import Any, Literal

from pydantic import Field

from aftercall.wire.base import Timestamp, WireModel
from aftercall.wire.execution import Execution


class ErrorBody(WireModel):
    """What went wrong: a stable code, a sentence that names the cure, and details."""

    code: str = Field(examples=["invalid_request"])
    message: str
    details: Any = None


class ErrorResponse(WireModel):
    """Every error of the service has this form."""

    error: ErrorBody


class CalibrationStatus(WireModel):
    """How the workspace's confidence is calibrated.

    The log-odds of a confidence are those of the shipped calibration, times `slope`, plus `shift`.
    """

    source: Literal["shipped", "own"] = Field(
        description="`own` once there are enough recorded outcomes of suggestions."
    )
    outcomes: int = Field(ge=0, description="Outcomes that it was fitted on; 0 when shipped.")
    shift: float = Field(description="Above 0 raises every confidence, below lowers it.")
    slope: float = Field(gt=0, description="Below 1 draws confidences together.")
    fitted_at: Timestamp | None = None


class Status(WireModel):
    """Answer of `GET /status`."""

    version: str
    ready: bool
    executions: int = Field(ge=0)
    tools: int = Field(ge=0, description="Registered tools; others are learned from calls alone.")
    pending_indexing: int = Field(ge=0, description="Durable but not yet usable in answers.")
    documents: int = Field(ge=0, description="Distinct documents, one vector each.")
    seed_patterns: int = Field(ge=0, description="Entries of the shipped corpus in use.")
    embedder: str
    log_store: str
    vector_index: str
    uptime_s: float = Field(ge=0)
    calibration: CalibrationStatus | None = None
    vectors: int | None = Field(
        default=None,
        ge=0,
        description="Vectors in the index over all workspaces, those of the shipped corpus too; "
        "null when it does not answer.",
    )
    consistent: bool = Field(
        default=True, description="False when the vectors do not agree with the log store for good."
    )
    problem: str | None = Field(
        default=None, description="What is wrong with the service, with its cure; null for nothing."
    )
    generation: int | None = Field(
        default=None, ge=1, description="Grows by one with every rebuild of what was learned."
    )
    indexing: Literal["here", "workers"] | None = Field(
        default=None, description="Who learns: this process too, or `aftercall worker` alone."
    )
    indexing_lag_s: float | None = Field(
        default=None,
        ge=0,
        description="Seconds that the oldest execution has waited to be learned from; 0 for none.",
    )


class SimilarExecution(WireModel):
    """One hit of `POST /similar`."""

    execution: Execution
    similarity: float = Field(description="Cosine, -1 to 1; higher is nearer.")


class SimilarResponse(WireModel):
    """Answer of `POST /similar`, nearest first."""

    executions: list[SimilarExecution]
