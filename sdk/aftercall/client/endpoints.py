"""The endpoints of the service as plain data: what is sent, and how the answer is read.

Both clients share them. Nothing is sent from here; secrets are masked here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from aftercall.errors import ProtocolError
from aftercall.redaction import Redactor
from aftercall.wire import (
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
    WireModel,
)

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=WireModel)

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Most bytes in the body of one request (contract)."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request. `path` is percent-encoded; `read` raises `ProtocolError` on a foreign answer.

    Doing any of them twice changes nothing, so all of them may be retried; a probe is not, as its
    question is how things are now.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    retried: bool = True


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
        receipt = _model(RecordReceipt)(content)
        answered = receipt.accepted + receipt.duplicates + len(receipt.rejected)
        if answered != len(lines):
            # Whoever believed this receipt would throw away what was never stored.
            raise ProtocolError(f"the receipt is for {answered} executions, {len(lines)} were sent")
        return receipt

    return Request("POST", "/executions", read, b"[" + b",".join(lines) + b"]")


def get_execution(execution_id: str) -> Request[Execution]:
    """`GET /executions/{executionId}`."""
    return Request("GET", f"/executions/{_segment(execution_id)}", _model(Execution))


def status() -> Request[Status]:
    """`GET /status`."""
    return Request("GET", "/status", _model(Status))


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
    return Request("POST", "/suggest", _model(SuggestResponse), _body(question))


def report_outcome(suggestion_id: str, outcome: Outcome, execution_id: str) -> Request[None]:
    """`POST /suggestions/{suggestionId}/outcome`."""
    report = OutcomeReport(outcome=outcome, execution_id=execution_id)
    path = f"/suggestions/{_segment(suggestion_id)}/outcome"
    return Request("POST", path, _nothing, _body(report))


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
    return Request("POST", "/similar", _model(SimilarResponse), _body(question))


def put_tool(tool_id: str, spec: ToolSpec, redactor: Redactor | None) -> Request[Tool]:
    """`PUT /tools/{toolId}`."""
    clean = spec if redactor is None else redactor.tool(spec)
    return Request("PUT", f"/tools/{_segment(tool_id)}", _model(Tool), _body(clean))


def get_tool(tool_id: str) -> Request[Tool]:
    """`GET /tools/{toolId}`."""
    return Request("GET", f"/tools/{_segment(tool_id)}", _model(Tool))


def list_tools() -> Request[list[Tool]]:
    """`GET /tools`."""
    read = _model(ToolList)
    return Request("GET", "/tools", lambda content: read(content).tools)


def delete_tool(tool_id: str) -> Request[None]:
    """`DELETE /tools/{toolId}`."""
    return Request("DELETE", f"/tools/{_segment(tool_id)}", _nothing)


def healthy() -> Request[None]:
    """`GET /healthz`."""
    return Request("GET", "/healthz", _nothing, retried=False)


def ready() -> Request[None]:
    """`GET /readyz`."""
    return Request("GET", "/readyz", _nothing, retried=False)


def _failed_call(execution: FailedCall | Execution) -> FailedCall:
    if isinstance(execution, FailedCall):
        return execution
    if execution.outcome != "failure":
        raise ValueError(
            f"execution {execution.execution_id} is a success; only a failure can be asked about"
        )
    return FailedCall.model_validate(dict(execution))


def _segment(text: str) -> str:
    """One segment of a path, whatever the id holds."""
    if not text:
        raise ValueError("the id is empty; a request would go to another endpoint")
    # Left as they are, dots would be resolved: DELETE /tools/.. would become DELETE /.
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _body(model: WireModel) -> bytes:
    return model.model_dump_json().encode()


def _model(model: type[ModelT]) -> Callable[[bytes], ModelT]:
    def read(content: bytes) -> ModelT:
        try:
            # A newer service may send further fields; that is no reason to fail.
            return model.model_validate_json(content, extra="ignore")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ProtocolError(
                f"the answer is no {model.__name__} of the contract ({where}: {first['msg']}); "
                "does base_url name an Aftercall service of this version?"
            ) from error

    return read


def _nothing(_content: bytes) -> None:
    """Any answer of success will do."""
