"""Examples shown in OpenAPI. The tests send each request to a real service."""

from typing import Any

FAILED_EXECUTION: dict[str, Any] = {
    "executionId": "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11",
    "timestamp": "2026-02-20T14:30:00Z",
    "agent": "librarian",
    "serverName": "rag-server",
    "toolName": "rag_query",
    "parameters": {"query": "How do agents reflect?", "topK": 50},
    "context": "Look up what is known about reflection",
    "outcome": "failure",
    "durationMs": 245.0,
    "error": {
        "type": "ValidationError",
        "message": "Invalid parameter: topK must be <= 10",
        "code": "PARAM_INVALID",
    },
    "sessionId": "s-1",
    "sequence": 7,
}

MENDED_EXECUTION: dict[str, Any] = {
    "executionId": "9d2f7c52-1c7b-4b51-8b7a-5f0c9a0c3d22",
    "timestamp": "2026-02-20T14:30:02Z",
    "agent": "librarian",
    "serverName": "rag-server",
    "toolName": "rag_query",
    "parameters": {"query": "How do agents reflect?", "topK": 10},
    "outcome": "success",
    "durationMs": 310.5,
    "result": {"matches": 10},
    "sessionId": "s-1",
    "sequence": 8,
    "attempt": 2,
    "repairOf": "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11",
}

SUGGESTION_ID = "5b8a1f7e-64a1-4f5c-8f0e-2d3c4b5a6f33"

RECORDING: dict[str, Any] = {
    "a batch": [FAILED_EXECUTION, MENDED_EXECUTION],
    "one execution": FAILED_EXECUTION,
}

RECEIPT: dict[str, Any] = {
    "accepted": 998,
    "duplicates": 1,
    "rejected": [{"index": 17, "message": "unknown field `params`; did you mean `parameters`?"}],
}

_FAILED_CALL = {
    name: value
    for name, value in FAILED_EXECUTION.items()
    if name not in {"executionId", "timestamp"}
}

SUGGESTING: dict[str, Any] = {
    "a failed call": {
        "execution": _FAILED_CALL,
        "limit": 3,
        "annotations": {"readOnlyHint": True},
    }
}

SUGGESTED: dict[str, Any] = {
    "pattern": {
        "category": "invalid_parameters",
        "signature": "Invalid parameter: topK must be <= <n>",
        "confidence": 0.97,
    },
    "suggestions": [
        {
            "suggestionId": SUGGESTION_ID,
            "action": "change_parameters",
            "changes": [
                {
                    "op": "replace",
                    "path": "/topK",
                    "from": 50,
                    "value": 10,
                    "reason": "the error states the limit 10; 212 successes stay at or under it",
                }
            ],
            "correctedParameters": {"query": "How do agents reflect?", "topK": 10},
            "tool": None,
            "retryAfterMs": None,
            "confidence": 0.94,
            "confidenceInterval": [0.88, 0.97],
            "evidence": {
                "repairs": 12,
                "successes": 212,
                "failures": 1,
                "executionIds": ["9d2f7c52-1c7b-4b51-8b7a-5f0c9a0c3d22"],
                "sources": ["error", "repairs", "profile"],
            },
            "lesson": "topK has a hard limit of 10; page through more results with offset.",
            "example": {"failed": {"topK": 50}, "successful": {"topK": 10}},
        }
    ],
    "retry": {"safe": True, "reason": "the call was rejected before it ran"},
    "abstained": False,
    "reason": None,
    "tookMs": 5.2,
}

REPORTING: dict[str, Any] = {
    "it worked": {"outcome": "success", "executionId": "9d2f7c52-1c7b-4b51-8b7a-5f0c9a0c3d22"}
}

ASKING_SIMILAR: dict[str, Any] = {
    "calls that worked": {
        "toolName": "rag_query",
        "serverName": "rag-server",
        "context": "Look up what is known about reflection",
        "parameters": {"query": "How do agents reflect?", "topK": 50},
        "outcome": "success",
        "limit": 5,
    }
}

SIMILAR: dict[str, Any] = {"executions": [{"execution": MENDED_EXECUTION, "similarity": 0.91}]}

TOOL_ID = "rag-server.rag_query"

_TOOL: dict[str, Any] = {
    "namespace": "retrieval",
    "name": "rag_query",
    "serverName": "rag-server",
    "version": "1.0",
    "description": "Searches the library for passages.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "topK": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        "required": ["query"],
    },
    "annotations": {"readOnlyHint": True},
    "tags": ["search"],
}

REGISTERING: dict[str, Any] = {"a read-only tool": _TOOL}

TOOL: dict[str, Any] = {
    **_TOOL,
    "toolId": TOOL_ID,
    "schemaHash": "5f3c1f0d7c0f4a0f9a3f1c8b9f5c2a7e6d4b3a291817161514131211100f0e0d",
    "updatedAt": "2026-02-20T14:30:00Z",
}

STATUS: dict[str, Any] = {
    "version": "0.1.0",
    "ready": True,
    "executions": 100_000,
    "tools": 200,
    "pendingIndexing": 0,
    "documents": 4_180,
    "seedPatterns": 80,
    "embedder": "all-MiniLM-L6-v2",
    "logStore": "sqlite",
    "vectorIndex": "qdrant-edge",
    "uptimeS": 86_400.0,
    "calibration": {
        "source": "own",
        "outcomes": 640,
        "shift": -0.21,
        "slope": 0.93,
        "fittedAt": "2026-02-20T02:30:00Z",
    },
    "vectors": 4_260,
    "consistent": True,
    "generation": 1,
    "indexing": "here",
    "indexingLagS": 0.0,
}
