"""Examples of the health of a tool, shown in OpenAPI. The tests read each as its model."""

from typing import Any

from service.openapi import ErrorExample

UNKNOWN_TOOL: ErrorExample = (
    "No tool is registered under the id or recorded under the name; the nearest names are told.",
    "not_found",
    "there is no tool 'web/read_pages'; did you mean 'web/read_page'?",
)

_CALL = "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11"


def _count(count: int, weight: float, last_seen: str = "2026-02-20T14:30:00Z") -> dict[str, Any]:
    return {"count": count, "weight": weight, "lastSeen": last_seen}


TOOL_HEALTH: dict[str, Any] = {
    "tool": {"toolId": "page_reader", "serverName": "web", "toolName": "read_page"},
    "successes": _count(57, 31.2),
    "failures": _count(9, 6.4),
    "categories": [
        {"category": "wrong_tool_boundary", **_count(6, 4.9)},
        {"category": "timeout", **_count(3, 1.5, "2026-02-18T09:12:00Z")},
    ],
    "signatures": [
        {
            "signature": "this page has to be fetched and then read",
            "category": "wrong_tool_boundary",
            "count": 6,
            "lastSeen": "2026-02-20T14:30:00Z",
        }
    ],
    "methods": [
        {"method": "list_titles", "successes": _count(40, 22.0), "failures": _count(0, 0.0)}
    ],
    "repairs": {"attempts": 4, "succeeded": 3},
    "utility": {
        "lowUtility": {"count": 0, "weight": 0.0},
        "weakSuccesses": _count(2, 1.6),
        "corrections": _count(1, 0.9),
        "score": 0.8978,
        "recentWeak": [
            {
                "executionId": _CALL,
                "at": "2026-02-20T14:30:00Z",
                "why": "the tool calls it 'success_no_parse'",
            }
        ],
        "recentCorrections": [
            {
                "correctionId": "7c0d2c50-33a5-4e05-9f5c-6f5d3a1b2c44",
                "executionId": _CALL,
                "at": "2026-02-20T14:31:00Z",
                "kind": "low_utility",
                "text": "that doesn't look like a movie list",
            }
        ],
    },
    "cohesion": {
        "score": 0.5,
        "warning": True,
        "confidence": 0.97,
        "failures": 6,
        "weight": 4.9,
        "withoutEvidence": 1,
        "axes": [
            {
                "clusterId": "b1c0a5de-0d4e-5a6d-8f53-2b9b3b1d6c10",
                "name": "transport",
                "axes": ["transport", "HTTP transport"],
                "count": 5,
                "share": 0.83,
            },
            {
                "clusterId": "4e7d1f7c-57a9-5a0b-8d7e-6a0f4c9d2e31",
                "name": "extraction",
                "axes": ["extraction"],
                "count": 6,
                "share": 1.0,
            },
        ],
        "message": "its boundary failures are about transport and extraction",
    },
    "recentReferrals": [
        {
            "executionId": _CALL,
            "at": "2026-02-20T14:30:00Z",
            "kind": "wrong_tool_boundary",
            "boundaryAxes": ["transport", "extraction"],
            "observedTaskShape": "fetch + extract",
            "suggestedSplit": ["fetch the page", "list the films on it"],
            "evidence": "the url answers with HTML, and only JSON is read here",
            "lacksEvidence": False,
        }
    ],
    "recommendationIds": ["0f6f1c1e-8a44-5d0e-9c3f-5b7f3b0f2a61"],
}
