"""Examples of recommendations, shown in OpenAPI."""

from typing import Any

from service.openapi import ErrorExample
from service.routes.fitness_examples import PROMOTION_STATUS

_ID = "0f6f1c1e-8a44-5d0e-9c3f-5b7f3b0f2a61"

UNKNOWN_RECOMMENDATION: ErrorExample = (
    "Nothing is suggested under the id, and nobody ever acted on it.",
    "not_found",
    f"there is no recommendation '{_ID}'; GET /recommendations?state=all lists all",
)

UNKNOWN_TOOL: ErrorExample = (
    "Nothing is known of a tool or a namespace of that name.",
    "not_found",
    "there is no tool 'page_raeder'; did you mean 'page_reader'?",
)

_SPLIT: dict[str, Any] = {
    "recommendationId": _ID,
    "kind": "split",
    "tool": {"toolId": "page_reader", "serverName": "web", "toolName": "read_page"},
    "message": 'split "page_reader", which is asked to do several jobs: its 8 boundary '
    'failures name "transport" (75%) and "extraction" (62%); it proposes '
    '"fetch the page" + "list the films on it"',
    "confidence": 0.98,
    "priority": 6.71,
    "evidence": {
        "counts": [{"what": "boundary failure", "count": 8, "weight": 6.85}],
        "calls": 41,
        "axes": [
            {
                "clusterId": "b1c0a5de-0d4e-5a6d-8f53-2b9b3b1d6c10",
                "name": "transport",
                "axes": ["transport", "HTTP transport"],
                "count": 6,
                "share": 0.75,
            },
            {
                "clusterId": "4e7d1f7c-57a9-5a0b-8d7e-6a0f4c9d2e31",
                "name": "extraction",
                "axes": ["extraction"],
                "count": 5,
                "share": 0.62,
            },
        ],
        "suggestedSplits": [["fetch the page", "list the films on it"]],
        "quotes": ["asked for the films on a page"],
        "executionIds": ["3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11"],
    },
    "firstSeen": "2026-02-16T09:12:00Z",
    "lastSeen": "2026-02-20T14:30:00Z",
}

_REVIEW: dict[str, Any] = {
    "recommendationId": "c2a9d8be-6f0c-5f2b-9a87-1d2e3f4a5b6c",
    "kind": "review_promotion",
    "namespace": "translator",
    "message": "version 1.2.0 of 'translator' fails more often than 1.1.0 did: 12 of 40 calls "
    "against 3 of 60 calls; look at its failures, evolve it, or roll the promotion back",
    "confidence": 0.999,
    "priority": 9.99,
    "evidence": {
        "counts": [{"what": "failures of the promoted version", "count": 12, "weight": 12.0}],
        "calls": 40,
        "promotion": PROMOTION_STATUS,
    },
    "firstSeen": "2026-02-16T14:22:10Z",
}

RECOMMENDATIONS: dict[str, Any] = {"recommendations": [_REVIEW, _SPLIT]}

CHANGING: dict[str, Any] = {
    "taken": {"state": "taken", "changedBy": "eve"},
    "done": {"state": "done", "reason": "two tools now", "changedBy": "eve"},
    "dismissed": {"state": "dismissed", "reason": "an empty list is the right answer here"},
}

CHANGED: dict[str, Any] = {
    **_SPLIT,
    "state": "done",
    "stateReason": "two tools now",
    "stateChangedAt": "2026-02-21T08:00:00Z",
    "stateChangedBy": "eve",
}
