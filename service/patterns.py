"""Failure patterns, as the latest nightly run left them."""

import asyncio

from pydantic import Field

from aftercall.models import ErrorCategory, FailurePattern, FailurePatternList, WireModel
from aftercall.models.base import Name
from ingest.nightly.patterns import MAX_PATTERNS, patterns_fact
from mongo.records import ToolKey
from retrieval.patterns import Pattern, decoded
from service.context import Context
from service.statistics.patterns import told_pattern


class PatternsQuery(WireModel):
    """Which patterns are asked for."""

    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)

    def includes(self, pattern: Pattern) -> bool:
        """Whether a pattern is one of them."""
        return (
            self.tool_name in (None, pattern.tool_name)
            and self.server_name in (None, pattern.server_name)
            and self.category in (None, pattern.category)
        )


async def failure_patterns(
    context: Context, workspace: str, query: PatternsQuery
) -> FailurePatternList:
    """Those that are asked for, most failures first.

    Raises:
        StoreError: when the store cannot say.
    """
    is_filtered = (query.tool_name, query.server_name, query.category) != (None, None, None)
    rows = await context.store.list_patterns(
        workspace, MAX_PATTERNS if is_filtered else query.limit
    )
    at = await context.store.get_fact(patterns_fact(workspace))
    ids = {each.tool_key: each.tool.tool_id for each in await context.memory.tools(workspace)}

    def shown() -> list[FailurePattern]:
        found = []
        for row in rows:
            pattern = decoded(row.data)
            if query.includes(pattern):
                tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
                found.append(told_pattern(pattern, tool, ids.get(tool), context.redactor))
            if len(found) == query.limit:
                break
        return found

    return FailurePatternList.model_validate(
        {"patterns": await asyncio.to_thread(shown), "consolidated_at": at}
    )
