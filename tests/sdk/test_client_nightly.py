"""Both clients' methods for failure patterns."""

from typing import Any

import pytest

from aftercall.models import FailurePattern
from tests.sdk.loopback import Scripted

PATTERN = {
    "patternId": "p-1", "tool": {"toolName": "t"}, "category": "timeout", "signature": "slow",
    "count": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "GET /patterns"),
        (
            {"tool_name": "a/b", "server_name": "s", "category": "timeout", "limit": 3},
            "GET /patterns?toolName=a%2Fb&serverName=s&category=timeout&limit=3",
        ),
    ],
)
async def test_patterns_are_asked_for_as_the_contract_says(
    call: Any, scripted: Scripted, options: dict[str, Any], line: str
) -> None:
    """Without a filter the service's own defaults count."""
    scripted.answers({"patterns": [PATTERN], "consolidatedAt": None})
    [found] = await call("patterns", **options)
    assert scripted.request[0] == line
    assert isinstance(found, FailurePattern)
    assert (found.pattern_id, found.count) == ("p-1", 3)
