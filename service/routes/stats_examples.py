"""Examples of statistics, shown in OpenAPI. The tests read each as its model."""

from typing import Any

from service.openapi import ErrorExample
from service.routes import nightly_examples

_TOOL: dict[str, Any] = {"toolId": "rag", "serverName": "rag-server", "toolName": "rag_query"}
_COUNTS = {"successes": 1_204, "failures": 96}
_RETRIES = {"successes": 71, "failures": 9}
_SUGGESTED = {"successes": 58, "failures": 4}
_QUANTILES = {"p50": 88.4, "p95": 340.2, "p99": 702.6}
_USAGE: dict[str, Any] = {
    **_COUNTS,
    "retries": _RETRIES,
    "suggested": _SUGGESTED,
    "durationMs": _QUANTILES,
}
_WINDOW: dict[str, Any] = {
    "window": "24h",
    "since": "2026-02-19T14:00:00Z",
    "until": "2026-02-20T14:30:00Z",
    "isComplete": True,
}
_PATTERN: dict[str, Any] = nightly_examples.PATTERNS["patterns"][0]

TOTALS: dict[str, Any] = {
    "windows": [
        {**_WINDOW, "totals": _USAGE, "before": {"successes": 1_180, "failures": 131}},
        {
            "window": "7d",
            "since": "2026-02-14T00:00:00Z",
            "until": "2026-02-20T14:30:00Z",
            "isComplete": True,
            "totals": {**_USAGE, "successes": 8_010, "failures": 702},
            "before": None,
        },
    ]
}

USAGE: dict[str, Any] = {
    "window": "24h",
    "computedAt": "2026-02-20T14:30:00Z",
    "since": "2026-02-19T14:00:00Z",
    "until": "2026-02-20T14:30:00Z",
    "isComplete": True,
    "totals": _USAGE,
    "byTool": [{"tool": _TOOL, **_USAGE}],
    "byAgent": [{"agent": "librarian", **_COUNTS}],
    "byCategory": [
        {"category": "invalid_parameters", "failures": 80},
        {"category": "timeout", "failures": 16},
    ],
    "otherTools": {"successes": 0, "failures": 0},
    "otherAgents": {"successes": 0, "failures": 0},
}

TREND: dict[str, Any] = {
    **_WINDOW,
    "step": "hour",
    "tool": _TOOL,
    "points": [
        {
            "at": "2026-02-20T14:00:00Z",
            "successes": 52,
            "failures": 5,
            "retries": {"successes": 4, "failures": 0},
            "suggested": {"successes": 3, "failures": 0},
        }
    ],
}

LATENCY: dict[str, Any] = {
    **_WINDOW,
    "step": "hour",
    "tool": None,
    "overall": _QUANTILES,
    "points": [{"at": "2026-02-20T14:00:00Z", "calls": 57, "durationMs": _QUANTILES}],
}

TOOLS: dict[str, Any] = {
    **_WINDOW,
    "tools": [
        {
            "tool": _TOOL,
            **_USAGE,
            "quality": 0.94,
            "cohesion": 0.68,
            "cohesionWarning": False,
        }
    ],
    "otherTools": {"successes": 12, "failures": 1},
}

AGENT: dict[str, Any] = {
    **_WINDOW,
    "agent": "librarian",
    "usage": {"agent": "librarian", **_COUNTS},
    "tools": [{"tool": _TOOL, **_COUNTS}],
}

REFLECTION: dict[str, Any] = {
    **_WINDOW,
    "firstAttempts": {"successes": 1_133, "failures": 87},
    "tasks": _COUNTS,
    "retries": _RETRIES,
    "suggested": _SUGGESTED,
    "answers": {
        "asked": 90,
        "abstained": 14,
        "confident": 61,
        "byAction": [
            {"action": "change_parameters", "answers": 68},
            {"action": "retry_unchanged", "answers": 8},
        ],
        "abstentions": [{"category": "unknown", "answers": 14}],
    },
    "withSuggestion": {"repairs": 58, "p50Ms": 1_240.0, "p95Ms": 6_830.0},
    "withoutSuggestion": {"repairs": 13, "p50Ms": 9_400.0, "p95Ms": 48_200.0},
}

PATTERNS: dict[str, Any] = {
    **_WINDOW,
    "patterns": [{"pattern": _PATTERN, "failures": 32, "before": 41}],
    "otherFailures": 64,
}

PATTERN: dict[str, Any] = {
    **_WINDOW,
    "window": "7d",
    "since": "2026-02-14T00:00:00Z",
    "pattern": _PATTERN,
    "points": [
        {"at": "2026-02-19T00:00:00Z", "failures": 48},
        {"at": "2026-02-20T00:00:00Z", "failures": 32},
    ],
}

CONFIDENCE: dict[str, Any] = {
    "judged": 62,
    "bins": [
        {
            "atLeast": 0.9,
            "below": 1.0,
            "judged": 62,
            "meanConfidence": 0.93,
            "succeeded": 0.935484,
        }
    ],
    "expectedCalibrationError": 0.005484,
    "brier": 0.060363,
}

UNKNOWN_PATTERN: ErrorExample = (
    "There is no pattern of that id.",
    "not_found",
    "there is no pattern '9c0f5f0e-7a1e-5c55-9b7e-0d6f3f1b2a45'; GET /patterns lists all",
)

UNKNOWN_AGENT: ErrorExample = (
    "No agent of that name called anything within 30 days.",
    "not_found",
    "there is no agent 'libarian'; did you mean 'librarian'?",
)
