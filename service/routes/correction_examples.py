"""Examples of users' corrections, shown in OpenAPI. The tests send each request."""

from typing import Any

from service.openapi import ErrorExample

_EXECUTION = "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11"

NOTHING_TO_CORRECT: ErrorExample = (
    "No such call of the session is recorded.",
    "not_found",
    "no call is recorded of session 's-42'; flush the recorder and send this again, or name the "
    "executionId that was corrected",
)

CONFLICT: ErrorExample = (
    "The id is taken by a correction with other content.",
    "conflict",
    "correctionId: 0f6c7a4e-33a5-4e05-9f5c-6f5d3a1b2c44 is already stored with other content; "
    "every correction needs an id of its own",
)

CORRECTING: dict[str, Any] = {
    "an answer of little use": {
        "correctionId": "0f6c7a4e-33a5-4e05-9f5c-6f5d3a1b2c44",
        "executionId": _EXECUTION,
        "text": "that doesn't look like a movie list",
    },
    "not this tool's job": {
        "executionId": _EXECUTION,
        "text": "I asked for the page, not for a summary of it",
        "kind": "wrong_tool_boundary",
        "boundaryAxes": ["transport", "summarisation"],
        "agent": "librarian",
    },
}

CORRECTED: dict[str, Any] = {
    "correctionId": "0f6c7a4e-33a5-4e05-9f5c-6f5d3a1b2c44",
    "executionId": _EXECUTION,
    "serverName": "film-server",
    "toolName": "find_films",
    "tied": True,
    "duplicate": False,
}

CORRECTIONS: dict[str, Any] = {
    "corrections": [
        {
            "correctionId": "0f6c7a4e-33a5-4e05-9f5c-6f5d3a1b2c44",
            "executionId": _EXECUTION,
            "serverName": "film-server",
            "toolName": "find_films",
            "at": "2026-02-20T14:30:00Z",
            "kind": "low_utility",
            "text": "that doesn't look like a movie list",
            "boundaryAxes": [],
            "agent": None,
        }
    ]
}
