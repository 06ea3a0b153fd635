"""What the service says of itself, and its one form of error."""

from typing import Any

from pydantic import Field

from aftercall.wire.base import WireModel
from aftercall.wire.execution import Execution


class ErrorBody(WireModel):
    """What went wrong: a stable code, a sentence that names the cure, and details."""

    code: str = Field(examples=["invalid_request"])
    message: str
    details: Any = None


class ErrorResponse(WireModel):
    """Every error of the service has this form."""

    error: ErrorBody


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


class SimilarExecution(WireModel):
    """One hit of `POST /similar`."""

    execution: Execution
    similarity: float = Field(description="Cosine, -1 to 1; higher is nearer.")


class SimilarResponse(WireModel):
    """Answer of `POST /similar`, nearest first."""

    executions: list[SimilarExecution]
