"""The loopback service with scripted suggestions, which drive the gateway's retries.

What a suggestion should be is tested with the true service.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.sdk.loopback import Loopback

Json = dict[str, Any]


def suggestion(*changes: Json, confidence: float = 0.95, **more: Any) -> Json:
    """A suggestion in the wire's form."""
    return {
        "suggestionId": str(uuid4()),
        "action": "change_parameters",
        "changes": [{"reason": "the error says so", **change} for change in changes],
        "confidence": confidence,
        "evidence": {"repairs": 3},
        "lesson": "names of zones are IANA names",
    } | more


def answer(*suggestions: Json, safe: bool = True) -> Json:
    """An answer of `/suggest` in the wire's form."""
    return {
        "pattern": {"category": "invalid_parameters", "signature": "<s>", "confidence": 0.9},
        "suggestions": list(suggestions),
        "retry": {"safe": safe, "reason": "scripted"},
        "abstained": not suggestions,
        "tookMs": 1.0,
    }


@dataclass
class ContractService(Loopback):
    """`suggest` decides each answer and may be replaced at any time."""

    suggest: Callable[[Json], Json] = lambda _: answer()

    @property
    def questions(self) -> list[Json]:
        """The bodies of `POST /suggest`."""
        return [r.json for r in self.requests if r.path == "/suggest"]

    @property
    def recorded(self) -> list[Json]:
        """The executions, in the order in which they came."""
        return list(self.executions.values())
