"""What pages show, made by hand."""

from datetime import UTC, datetime
from typing import Any

from aftercall.models import FailurePattern, PatternFailures

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


def pattern(pattern_id: str = "p-1", **fields: Any) -> FailurePattern:
    """A failure pattern."""
    return FailurePattern.model_validate(
        {
            "patternId": pattern_id,
            "tool": {"serverName": "web", "toolName": "fetch_page"},
            "category": "timeout",
            "signature": "took <n> s",
            "count": 8,
            **fields,
        }
    )


def met(failures: int = 3, before: int | None = None, **fields: Any) -> PatternFailures:
    """A pattern that was met so often."""
    return PatternFailures(pattern=pattern(**fields), failures=failures, before=before)
