"""The endpoints for calls and tools as plain data: what is sent, and how the answer is read.

Both clients share them; those for fitness and boundaries stand in `fitness_endpoints` and
`boundary_endpoints`. Nothing is sent from here; secrets are masked here.
"""

from collections.abc import Sequence

from aftercall.client.requests import (
    MAX_BODY_BYTES,
    Request,
    body,
    query,
    reads,
    reads_nothing,
    segment,
)
from aftercall.errors import ProtocolError
from aftercall.models import (
    Execution,
    FailedCall,
    Outcome,
    OutcomeReport,
    RecordReceipt,
    SimilarRequest,
    SimilarResponse,
    Status,
    SuggestRequest,
    SuggestResponse,
    Tool,
    ToolAnnotations,
    ToolList,
    ToolSpec,
)
from aftercall.redaction import Redactor

__all__ = [
    "MAX_BODY_BYTES",
    "Request",
    "delete_tool",
    "encode",
    "get_execution",
    "get_tool",
    "healthy",
    "list_tools",
    "put_tool",
    "ready",
    "record",
    "record_encoded",
    "report_outcome",
    "similar",
    "status",
    "suggest",
]


def record(
    executions: Execution | Sequence[Execution], redactor: Redactor | None
) -> Request[RecordReceipt]:
    """`POST /executions`."""
    batch = [executions] if isinstance(executions, Execution) else executions
    return record_encoded([encode(execution, redactor) for execution in batch])


def encode(execution: Execution, redactor: Redactor | None) -> bytes:
    """An execution as it goes over the wire: one line of JSON, without secrets."""
    clean = execution if redactor is None else redactor.call(execution)
    return clean.model_dump_json().encode()


def record_encoded(lines: Sequence[bytes]) -> Request[RecordReceipt]:
    """`POST /executions` with what `encode` made."""

    def read(content: bytes) -> RecordReceipt:
        receipt = reads(RecordReceipt)(content)
        answered = receipt.accepted + receipt.duplicates + len(receipt.rejected)
        if answered != len(lines):
            # Whoever believed this receipt would throw away what was never stored.
            raise ProtocolError(f"the receipt is for {answered} executions, {len(lines)} were sent")
        return receipt

    return Request("POST", "/executions", read, b"[" + b",".join(lines) + b"]")


def get_execution(execution_id: str) -> Request[Execution]:
    """`GET /executions/{executionId}`."""
    return Request("GET", f"/executions/{segment(execution_id)}", reads(Execution))


def status() -> Request[Status]:
    """`GET /status`."""
    return Request("GET", "/status", reads(Status))


def suggest(
    execution: FailedCall | Execution,
    limit: int,
    annotations: ToolAnnotations | None,
    redactor: Redactor | None,
) -> Request[SuggestResponse]:
    """`POST /suggest`."""
    failed = _failed_call(execution)
    question = SuggestRequest(
        execution=failed if redactor is None else redactor.call(failed),
        limit=limit,
        annotations=annotations,
    )
    return Request("POST", "/suggest", reads(SuggestResponse), body(question))


def report_outcome(suggestion_id: str, outcome: Outcome, execution_id: str) -> Request[None]:
    """`POST /suggestions/{suggestionId}/outcome`."""
    report = OutcomeReport(outcome=outcome, execution_id=execution_id)
    path = f"/suggestions/{segment(suggestion_id)}/outcome"
    return Request("POST", path, reads_nothing, body(report))


def similar(question: SimilarRequest, redactor: Redactor | None) -> Request[SimilarResponse]:
    """`POST /similar`."""
    if redactor is not None:
        context = question.context
        question = question.model_copy(
            update={
                "parameters": redactor.parameters(question.tool_name, question.parameters),
                "context": None if context is None else redactor.text(context),
            }
        )
    return Request("POST", "/similar", reads(SimilarResponse), body(question))


def put_tool(tool_id: str, spec: ToolSpec, redactor: Redactor | None) -> Request[Tool]:
    """`PUT /tools/{toolId}`."""
    clean = spec if redactor is None else redactor.tool(spec)
    return Request("PUT", f"/tools/{segment(tool_id)}", reads(Tool), body(clean))


def get_tool(tool_id: str, use_evolved: bool) -> Request[Tool]:  # noqa: FBT001  # by its name
    """`GET /tools/{toolId}`."""
    asked = query({"useEvolved": True}) if use_evolved else ""
    return Request("GET", f"/tools/{segment(tool_id)}{asked}", reads(Tool))


def list_tools() -> Request[list[Tool]]:
    """`GET /tools`."""
    read = reads(ToolList)
    return Request("GET", "/tools", lambda content: read(content).tools)


def delete_tool(tool_id: str) -> Request[None]:
    """`DELETE /tools/{toolId}`."""
    return Request("DELETE", f"/tools/{segment(tool_id)}", reads_nothing)


def healthy() -> Request[None]:
    """`GET /healthz`."""
    return Request("GET", "/healthz", reads_nothing, retried=False)


def ready() -> Request[None]:
    """`GET /readyz`."""
    return Request("GET", "/readyz", reads_nothing, retried=False)


def _failed_call(execution: FailedCall | Execution) -> FailedCall:
    if isinstance(execution, FailedCall):
        return execution
    if execution.outcome != "failure":
        raise ValueError(
            f"execution {execution.execution_id} is a success; only a failure can be asked about"
        )
    return FailedCall.model_validate(dict(execution))
