"""Failure patterns as they are told: the store's, filtered, without secrets."""

import asyncio

from aftercall.models import ErrorCategory, FailurePattern, FailurePatternList
from aftercall.redaction import Redactor
from ingest.nightly.patterns import MAX_PATTERNS, patterns_fact
from mongo.protocol import LogStore
from mongo.records import ToolKey
from retrieval.health.report import named
from retrieval.memory import Memory
from retrieval.patterns.record import Pattern, decoded


async def failure_patterns(
    workspace: str,
    *,
    tool_name: str | None,
    server_name: str | None,
    category: ErrorCategory | None,
    limit: int,
    store: LogStore,
    memory: Memory,
    redactor: Redactor,
) -> FailurePatternList:
    """Those that are asked for, most failures first.

    Raises:
        StoreError: when the store cannot say.
    """
    is_filtered = (tool_name, server_name, category) != (None, None, None)
    rows = await store.list_patterns(workspace, MAX_PATTERNS if is_filtered else limit)
    at = await store.get_fact(patterns_fact(workspace))
    ids = {each.tool_key: each.tool.tool_id for each in await memory.tools(workspace)}

    def is_meant(pattern: Pattern) -> bool:
        return (
            tool_name in (None, pattern.tool_name)
            and server_name in (None, pattern.server_name)
            and category in (None, pattern.category)
        )

    def made() -> list[FailurePattern]:
        found = []
        for row in rows:
            pattern = decoded(row.data)
            if is_meant(pattern):
                tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
                found.append(told_pattern(pattern, tool, ids.get(tool), redactor))
            if len(found) == limit:
                break
        return found

    return FailurePatternList.model_validate(
        {"patterns": await asyncio.to_thread(made), "consolidated_at": at}
    )


def told_pattern(
    pattern: Pattern, tool: ToolKey, tool_id: str | None, redactor: Redactor
) -> FailurePattern:
    """A pattern as it is answered: without secrets, whenever it was learned."""
    wordings = [redactor.text(each) for each in pattern.signatures or [pattern.leader]]
    return FailurePattern(
        pattern_id=pattern.pattern_id,
        tool=named(tool, tool_id),
        category=pattern.category,
        signature=wordings[0],
        wordings=list(dict.fromkeys(wordings)),
        count=pattern.count,
        mended=pattern.mended,
        agents=pattern.agents,
        examples=pattern.execution_ids,
        lesson=redactor.text(pattern.lesson),
        first_seen=pattern.first_seen,
        last_seen=pattern.last_seen,
    )
