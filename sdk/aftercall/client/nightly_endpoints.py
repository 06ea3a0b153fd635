"""The endpoints for what the nightly run makes, as data."""

from aftercall.client.requests import Request, query, reads
from aftercall.models import ErrorCategory, FailurePattern, FailurePatternList


def patterns(
    tool_name: str | None,
    server_name: str | None,
    category: ErrorCategory | None,
    limit: int | None,
) -> Request[list[FailurePattern]]:
    """`GET /patterns`."""
    asked = query(
        {
            "toolName": tool_name,
            "serverName": server_name,
            "category": category,
            "limit": limit,
        }
    )
    read = reads(FailurePatternList)
    return Request("GET", f"/patterns{asked}", lambda content: read(content).patterns)
