"""Examples of choosing a tool and of promotions, shown in OpenAPI. The tests send each request."""

from typing import Any

from service.openapi import ErrorExample

_SCENARIO = "translate technical documentation from English to Spanish, keeping the code"

UNKNOWN_NAMESPACE: ErrorExample = (
    "No tool serves the namespace, or none of it is offered for this; the nearest names are told.",
    "not_found",
    "there is no namespace 'translater'; did you mean 'translator'?",
)

UNKNOWN_TOOL: ErrorExample = (
    "No tool is registered under the id; the nearest ids are told.",
    "not_found",
    "there is no tool 'translater'; did you mean 'translator'?",
)

NOT_PROMOTED: ErrorExample = (
    "Nothing is promoted there, or no tool serves the namespace.",
    "not_promoted",
    "nothing is promoted in 'translator'; the original serves it",
)

NOTHING_BEFORE: ErrorExample = (
    "All changes are undone already.",
    "nothing_before",
    "there is nothing to go back to in 'translator'; the original serves it",
)

NAMESPACES: dict[str, Any] = {
    "namespaces": [
        {
            "namespace": "translator",
            "toolIds": ["phrasebook", "translator"],
            "promotedVersion": "1.2.0",
        }
    ]
}

_ORIGINAL: dict[str, Any] = {
    "toolId": "translator",
    "namespace": "translator",
    "name": "translate",
    "serverName": "language",
    "version": "1.1.0",
    "description": "Translates a text into another language.",
    "tags": ["language"],
    "implementation": {"command": "python {tool_dir}/translator.py"},
    "updatedAt": "2026-02-20T14:30:00Z",
}

_EVOLVED: dict[str, Any] = {
    **_ORIGINAL,
    "version": "1.2.0",
    "implementation": {
        "command": "python {tool_dir}/translator.py",
        "evolved_file": "tools/executable/translator_v1_2.py",
    },
    "isEvolved": True,
}

_FAILURE: dict[str, Any] = {
    "scenario": "translate the API reference into French",
    "similarity": 0.81,
    "weight": 0.9,
    "at": "2026-02-20T11:02:00Z",
    "severity": "high",
    "errorMessage": "IndexError: list index out of range",
}

_BEST: dict[str, Any] = {
    "tool": _EVOLVED,
    "score": 0.6521,
    "source": "evolved",
    "factors": {
        "base": 1.0,
        "similarity": 0.78,
        "quality": 0.9,
        "failureDemotion": 0.7246,
        "similarFailures": [_FAILURE],
    },
    "belowThreshold": False,
}

_SECOND: dict[str, Any] = {
    "tool": _ORIGINAL,
    "score": 0.63,
    "source": "original",
    "factors": {"base": 0.9, "similarity": 0.78, "quality": 0.7, "failureDemotion": 1.0},
    "belowThreshold": False,
}

BEST: dict[str, Any] = {
    **_BEST,
    "candidates": [_BEST, _SECOND],
    "excluded": [
        {
            "toolId": "phrasebook",
            "reason": "it has the tag 'not-for-code' and the scenario says 'code'",
        }
    ],
    "threshold": 0.2,
    "mode": "fitness",
}

FINDING: dict[str, Any] = {
    "a scenario": {"scenario": _SCENARIO, "tags": [], "limit": 5},
    "by its lower bound": {"scenario": _SCENARIO, "tags": ["language"], "mode": "lower_bound"},
}

FOUND: dict[str, Any] = {
    "candidates": [
        {
            **_BEST,
            "score": 0.4069,
            "factors": {**_BEST["factors"], "base": 0.624},
        }
    ],
    "excluded": [],
    "threshold": 0.2,
    "mode": "fitness",
}

MARKING: dict[str, Any] = {
    "a failure": {
        "markId": "7c0d2c50-33a5-4e05-9f5c-6f5d3a1b2c44",
        "scenario": "translate the API reference into French",
        "errorMessage": "IndexError: list index out of range",
        "severity": "high",
        "negativeTags": ["not-for-code-blocks"],
    },
    "how bad a recorded call was": {
        "scenario": "translate the API reference into French",
        "errorMessage": "IndexError: list index out of range",
        "severity": "low",
        "executionId": "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11",
    },
}

MARKED: dict[str, Any] = {
    "markId": "7c0d2c50-33a5-4e05-9f5c-6f5d3a1b2c44",
    "toolId": "translator",
    "version": "1.2.0",
    "severity": "high",
    "duplicate": False,
    "quality": 0.9,
}

FAILURES: dict[str, Any] = {"failures": [_FAILURE]}

_PROMOTION: dict[str, Any] = {
    "evolvedVersion": "1.2.0",
    "evolvedFile": "tools/executable/translator_v1_2.py",
    "originalVersion": "1.1.0",
    "reason": "Evolved to fix: incorrect handling of code blocks",
    "mutation": "preserve code formatting in translations",
    "promotedAt": "2026-02-16T14:22:10Z",
}

PROMOTING: dict[str, Any] = {"a version in a file": _PROMOTION}

PROMOTION_STATUS: dict[str, Any] = {
    **_PROMOTION,
    "namespace": "translator",
    "inheritedQuality": 0.85,
    "evolved": {"version": "1.2.0", "successes": 28, "failures": 12, "quality": 0.71},
    "original": {"version": "1.1.0", "successes": 57, "failures": 3, "quality": 0.95},
    "failsMore": True,
    "probability": 0.999,
}

HISTORY: dict[str, Any] = {
    "namespace": "translator",
    "changes": [
        {"at": "2026-02-16T14:22:10Z", "action": "promoted", "promotion": _PROMOTION},
    ],
}

ROLLED_BACK: dict[str, Any] = {
    "namespace": "translator",
    "changes": [
        {"at": "2026-02-20T09:00:00Z", "action": "rolled_back", "promotion": _PROMOTION},
        {
            "at": "2026-02-19T18:30:00Z",
            "action": "promoted",
            "promotion": {
                **_PROMOTION,
                "evolvedVersion": "1.3.0",
                "evolvedFile": "tools/executable/translator_v1_3.py",
                "originalVersion": "1.2.0",
                "promotedAt": "2026-02-19T18:30:00Z",
            },
        },
        *HISTORY["changes"],
    ],
}

PROMOTIONS_FILE: dict[str, Any] = {
    "code_generator": {
        "evolved_version": "1.1.0",
        "evolved_file": "tools/executable/code_generator_v1_1.py",
        "original_version": "1.0.0",
        "reason": "Evolved to fix: timeout on large files",
        "mutation": "add streaming output for large code generation",
        "promoted_at": "2024-01-15T10:30:45Z",
    },
    "translator": {
        "evolved_version": "1.2.0",
        "evolved_file": "tools/executable/translator_v1_2.py",
        "original_version": "1.1.0",
        "reason": "Evolved to fix: incorrect handling of code blocks",
        "mutation": "preserve code formatting in translations",
        "promoted_at": "2024-01-16T14:22:10Z",
    },
}

PROMOTIONS_RECEIPT: dict[str, Any] = {
    "added": ["code_generator"],
    "changed": [],
    "removed": [],
    "unchanged": ["translator"],
    "unknownNamespaces": ["code_generator"],
}

FINDING_EVOLUTIONS: dict[str, Any] = {
    "a scenario": {"scenario": "translation breaks code blocks", "limit": 5}
}

EVOLUTIONS: dict[str, Any] = {
    "evolutions": [{"namespace": "translator", "promotion": _PROMOTION, "similarity": 0.74}]
}
