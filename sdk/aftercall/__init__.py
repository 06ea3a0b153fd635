"""Aftercall's SDK: record what tools did, and ask what to do when they fail.

`Client` and `AsyncClient` have one method per endpoint of the service, `Recorder` records from
running programs, `call_with_reflection` asks and retries by itself, `Toolbox` and `AsyncToolbox`
call the fittest tool of a capability, `Redactor` masks secrets before anything leaves the process.
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
from aftercall.executors import (
    Command,
    CommandExecutor,
    Executor,
    ExecutorResult,
    Executors,
    PythonExecutor,
    ToolFailedError,
    ToolRefusedError,
)
from aftercall.recording import Recorder, RecorderStats
from aftercall.redaction import Redactor
from aftercall.reflection import (
    ReflectedResult,
    ReflectionPolicy,
    call_with_reflection,
    call_with_reflection_sync,
)
from aftercall.toolbox import AsyncToolbox, CallResult, ResilientResult, Toolbox
from aftercall.wire import (
    BestTool,
    Execution,
    ExecutionError,
    FailedCall,
    FoundTools,
    Promotion,
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
    "AsyncToolbox",
    "BestTool",
    "CallResult",
    "Client",
    "Command",
    "CommandExecutor",
    "ConfigurationError",
    "ConflictError",
    "Execution",
    "ExecutionError",
    "Executor",
    "ExecutorResult",
    "Executors",
    "FailedCall",
    "FoundTools",
    "InvalidRequestError",
    "NotAllowedError",
    "NotFoundError",
    "Promotion",
    "ProtocolError",
    "PythonExecutor",
    "RateLimitedError",
    "RecordReceipt",
    "Recorder",
    "RecorderStats",
    "Redactor",
    "ReflectedResult",
    "ReflectionPolicy",
    "ResilientResult",
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
    "ToolFailedError",
    "ToolRefusedError",
    "ToolSpec",
    "Toolbox",
    "call_with_reflection",
    "call_with_reflection_sync",
]
