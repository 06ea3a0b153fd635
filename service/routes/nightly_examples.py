"""Examples of what the nightly run makes, shown in OpenAPI. The tests read each as its model."""

from typing import Any

_TOOL: dict[str, Any] = {"toolId": "rag", "serverName": "rag-server", "toolName": "rag_query"}

PATTERNS: dict[str, Any] = {
    "patterns": [
        {
            "patternId": "9c0f5f0e-7a1e-5c55-9b7e-0d6f3f1b2a44",
            "tool": _TOOL,
            "category": "invalid_parameters",
            "signature": "Invalid parameter: topK must be <= <n>",
            "wordings": [
                "Invalid parameter: topK must be <= <n>",
                "parameter topK: <n> is greater than the maximum of <n>",
            ],
            "count": 80,
            "mended": 64,
            "agents": ["librarian", "planner"],
            "examples": ["0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"],
            "lesson": "topK must be at most 10.",
            "firstSeen": "2026-02-02T09:12:00Z",
            "lastSeen": "2026-02-19T23:40:00Z",
        }
    ],
    "consolidatedAt": "2026-02-20T02:30:04Z",
}
