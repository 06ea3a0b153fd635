"""Aftercall's SDK: record what tools did, and ask what to do when they fail.

`Client` and `AsyncClient` have one method per endpoint of the service, `Recorder` records from
running programs, `Redactor` masks secrets before anything leaves the process.
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
from aftercall.recorder import Recorder, RecorderStats
from aftercall.redaction import Redactor
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
]
