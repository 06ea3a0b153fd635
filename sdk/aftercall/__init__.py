"""Aftercall's SDK: record what tools did, and ask what to do when they fail.

`Client` and `AsyncClient` have one method per endpoint of the service, `Recorder` records from
running programs, `call_with_reflection` asks and retries by itself, `Redactor` masks secrets before
anything leaves the process.
"""

from aftercall.client import AsyncClient, Client
from aftercall.errors import (
    AftercallError,
    ApiError,
    ConfigurationError,
    ConflictError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    ProtocolError,
    RateLimitedError,
    ServiceFailedError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    TooLargeError,
)
from aftercall.recording import Recorder, RecorderStats
from aftercall.redaction import Redactor
from aftercall.reflection import (
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
    call_with_reflection_sync,
)
from aftercall.wire import (
    Execution,
    ExecutionError,
    FailedCall,
    RecordReceipt,
    SimilarResponse,
    Status,
    Suggestion,
    SuggestResponse,
    Tool,
    ToolAnnotations,
    ToolSpec,
)

__all__ = [
    "AftercallError",
    "ApiError",
    "AsyncClient",
    "Client",
    "ConfigurationError",
    "ConflictError",
    "Execution",
    "ExecutionError",
    "FailedCall",
    "InvalidRequestError",
    "NotAllowedError",
    "NotFoundError",
    "ProtocolError",
    "RateLimitedError",
    "RecordReceipt",
    "Recorder",
    "RecorderStats",
    "Redactor",
    "ReflectedResult",
    "ReflectionPolicy",
    "ServiceFailedError",
    "ServiceTimeoutError",
    "ServiceUnreachableError",
    "SimilarResponse",
    "Status",
    "SuggestResponse",
    "Suggestion",
    "TooLargeError",
    "Tool",
    "ToolAnnotations",
    "ToolSpec",
    "call_with_reflection",
    "call_with_reflection_sync",
]
