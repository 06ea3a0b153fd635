"""All that a store has of something, read in pages."""

from collections.abc import AsyncIterator
from typing import Literal

from mongo.protocol import EventLog, Knowledge
from mongo.records import Event, Row, ToolKey

_PAGE = 500


async def all_events(log: EventLog, workspace: str) -> AsyncIterator[Event]:
    """Yield the log of a workspace in its order, without input schemas."""
    position = 0
    while page := await log.read_after(workspace, position, _PAGE):
        for event in page:
            yield event
        position = page[-1].position


async def all_rows(
    knowledge: Knowledge,
    workspace: str,
    kind: str | None,
    *,
    by: Literal["key", "serial"] = "key",
    tool: ToolKey | None = None,
) -> AsyncIterator[Row]:
    """Rows as `Knowledge.scan_rows` gives them."""
    after: str | int | None = None
    while page := await knowledge.scan_rows(workspace, kind, _PAGE, by=by, after=after, tool=tool):
        for row in page:
            yield row
        after = getattr(page[-1], by)
