"""Aftercall's SDK: record what tools did, and ask what to do when they fail.

`Client` and `AsyncClient` have one method per endpoint of the service, `Recorder` records from
running programs, `call_with_reflection` asks and retries by itself, `Toolbox` and `AsyncToolbox`
call the fittest tool of a capability and evolve what fails, `Deliverable` states what a tool's
result must be, `Redactor` masks secrets before anything leaves the process. A name is imported when
it is first used: a hook, which is started for every call, uses none of them.
"""

TYPE_CHECKING = False  # as type checkers read it; the import of `typing` takes 3 ms of a hook's 60
if TYPE_CHECKING:
    from typing import Any

    from aftercall.adapters.functions import recorded, reflecting
    from aftercall.client import AsyncClient, Client
    from aftercall.contracts import (
        ContractViolationError,
        Deliverable,
        Violation,
        checked,
        deliverable,
    )
    from aftercall.corrections import CorrectionProposal, propose_correction
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
    from aftercall.evolution import ChatEvolver, EvolutionResult, Evolver
    from aftercall.executors import (
        CommandExecutor,
        Executor,
        ExecutorResult,
        Executors,
        PythonExecutor,
        ToolFailedError,
        ToolRefusedError,
    )
    from aftercall.models import (
        BestTool,
        Execution,
        ExecutionError,
        FailedCall,
        FoundTools,
        Promotion,
        RankedTool,
        RecordReceipt,
        SimilarResponse,
        Status,
        Suggestion,
        SuggestResponse,
        Tool,
        ToolAnnotations,
        ToolSpec,
    )
    from aftercall.outcomes import Outcome
    from aftercall.prompts import self_evaluation
    from aftercall.recording.recorder import Recorder, RecorderStats
    from aftercall.redaction import Redactor
    from aftercall.reflection import (
        ReflectedResult,
        ReflectionPolicy,
        call_with_reflection,
        call_with_reflection_sync,
    )
    from aftercall.toolbox import Toolbox
    from aftercall.toolbox.async_toolbox import AsyncToolbox
    from aftercall.toolbox.rules import Attempted, CallResult, ResilientResult, Skipped

__all__ = [
    "AftercallError", "ApiError", "AsyncClient", "AsyncToolbox", "Attempted", "BestTool",
    "CallResult", "ChatEvolver", "Client", "CommandExecutor", "ConfigurationError",
    "ConflictError", "ContractViolationError", "CorrectionProposal", "Deliverable",
    "EvolutionResult", "Evolver", "Execution", "ExecutionError", "Executor", "ExecutorResult",
    "Executors", "FailedCall", "FoundTools", "InvalidRequestError", "NotAllowedError",
    "NotFoundError", "Outcome", "Promotion", "ProtocolError", "PythonExecutor", "RankedTool",
    "RateLimitedError", "RecordReceipt", "Recorder", "RecorderStats", "Redactor", "ReflectedResult",
    "ReflectionPolicy", "ResilientResult", "ServiceFailedError", "ServiceTimeoutError",
    "ServiceUnreachableError", "SimilarResponse", "Skipped", "Status", "SuggestResponse",
    "Suggestion", "TooLargeError", "Tool", "ToolAnnotations", "ToolFailedError", "ToolRefusedError",
    "ToolSpec", "Toolbox", "Violation", "call_with_reflection", "call_with_reflection_sync",
    "checked", "deliverable", "propose_correction", "recorded", "reflecting",
    "self_evaluation",
]  # fmt: skip

_HOMES = {
    "aftercall.adapters.functions": ("recorded", "reflecting"),
    "aftercall.client": ("AsyncClient", "Client"),
    "aftercall.contracts": (
        "ContractViolationError",
        "Deliverable",
        "Violation",
        "checked",
        "deliverable",
    ),
    "aftercall.corrections": ("CorrectionProposal", "propose_correction"),
    "aftercall.errors": (
        "AftercallError",
        "ApiError",
        "ConfigurationError",
        "ConflictError",
        "InvalidRequestError",
        "NotAllowedError",
        "NotFoundError",
        "ProtocolError",
        "RateLimitedError",
        "ServiceFailedError",
        "ServiceTimeoutError",
        "ServiceUnreachableError",
        "TooLargeError",
    ),
    "aftercall.evolution": ("ChatEvolver", "EvolutionResult", "Evolver"),
    "aftercall.executors": (
        "CommandExecutor",
        "Executor",
        "ExecutorResult",
        "Executors",
        "PythonExecutor",
        "ToolFailedError",
        "ToolRefusedError",
    ),
    "aftercall.models": (
        "BestTool",
        "Execution",
        "ExecutionError",
        "FailedCall",
        "FoundTools",
        "Promotion",
        "RankedTool",
        "RecordReceipt",
        "SimilarResponse",
        "Status",
        "Suggestion",
        "SuggestResponse",
        "Tool",
        "ToolAnnotations",
        "ToolSpec",
    ),
    "aftercall.outcomes": ("Outcome",),
    "aftercall.prompts": ("self_evaluation",),
    "aftercall.recording.recorder": ("Recorder", "RecorderStats"),
    "aftercall.redaction": ("Redactor",),
    "aftercall.reflection": (
        "ReflectedResult",
        "ReflectionPolicy",
        "call_with_reflection",
        "call_with_reflection_sync",
    ),
    "aftercall.toolbox": ("Toolbox",),
    "aftercall.toolbox.async_toolbox": ("AsyncToolbox",),
    "aftercall.toolbox.rules": ("Attempted", "CallResult", "ResilientResult", "Skipped"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> "Any":
    from importlib import import_module  # noqa: PLC0415  # as above

    if (home := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
