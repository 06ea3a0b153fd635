"""Calls, marks, tools and promotions for the tests of how tools fare, and what was learned."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from aftercall.models import Execution, Promotion, Severity, Tool
from mongo.contents import FailureRecord, PromotionEvent, StoredPromotion, StoredTool
from mongo.protocol import LogStore
from mongo.records import ToolKey
from retrieval.fitness.statistics import ToolTrials
from retrieval.knowledge.documents import Document
from tests.retrieval.cases import an_execution

WORKSPACE = "default"
TOOL = ToolKey(WORKSPACE, "srv", "translate")
START = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)


def id_of(number: int) -> str:
    return str(UUID(int=number))


def tool_of(number: int) -> ToolKey:
    """One of three tools."""
    return TOOL._replace(tool_name=f"tool_{number % 3}")


def worded(number: int) -> str:
    """Wordings that differ by letters, since digits are masked."""
    return "scenario " + "".join(chr(97 + int(digit)) for digit in f"{number:04d}")


def a_call(number: int, *, failed: bool = False, tool: ToolKey = TOOL, **fields: Any) -> Execution:
    """The call of that number, so many minutes after the start."""
    return an_execution(
        execution_id=id_of(number),
        timestamp=(START + timedelta(minutes=number)).isoformat(),
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        outcome="failure" if failed else "success",
        error={"type": "E", "message": f"broken in call {number}"} if failed else None,
        **fields,
    )


def a_mark(
    number: int,
    *,
    of: int | None = None,
    severity: Severity = "high",
    version: str | None = None,
    scenario: str = "translate code comments",
    tags: Sequence[str] = (),
    tool: ToolKey = TOOL,
) -> FailureRecord:
    """The mark of that number, so many minutes after the start; `of` is the number of a call."""
    return FailureRecord(
        tool=tool,
        tool_id=tool.tool_name,
        mark_id=id_of(1_000_000 + number),
        version=version,
        scenario=scenario,
        error_message=f"marked in {number}",
        severity=severity,
        marked_at=START + timedelta(minutes=number),
        negative_tags=tuple(tags),
        execution_id=None if of is None else id_of(of),
    )


def a_tool(tool_id: str = "t", *, name: str = "translate", **fields: Any) -> StoredTool:
    """A registered tool."""
    given = {"toolId": tool_id, "name": name, "serverName": "srv", "updatedAt": START} | fields
    return StoredTool(WORKSPACE, Tool.model_validate(given))


def a_promotion(
    namespace: str = "translate", version: str = "1.1.0", reason: str = "Evolved to fix: timeouts"
) -> PromotionEvent:
    """A promotion of the namespace."""
    promotion = Promotion(
        evolved_version=version,
        original_version="1.0.0",
        reason=reason,
        mutation="add streaming output",
        promoted_at=START,
    )
    promoted = StoredPromotion(WORKSPACE, namespace, promotion)
    return PromotionEvent(WORKSPACE, namespace, START, "promoted", promoted)


async def statistics_of(store: LogStore, tool: ToolKey = TOOL) -> ToolTrials:
    """How the tool fared, as stored."""
    [row] = await store.get_statistics([tool])
    return ToolTrials.model_validate_json(row.data)


async def counted(
    store: LogStore, version: str = "", tool: ToolKey = TOOL
) -> tuple[list[str], int, int]:
    """A version's kinds of trials, oldest first, its successes and its failures."""
    known = (await statistics_of(store, tool)).versions[version]
    return [each.kind for each in known.trials], known.successes, known.failures


async def documents_of(
    store: LogStore, ids: Sequence[str], workspace: str = WORKSPACE
) -> list[Document]:
    """Documents by id, as stored."""
    rows = await store.get_documents(workspace, ids)
    return [Document.model_validate_json(row.data) for row in rows]


async def scenarios_of(store: LogStore, tool: ToolKey = TOOL) -> list[Document]:
    """The scenario documents of a tool, by text."""
    ids = list((await statistics_of(store, tool)).scenarios)
    return sorted(
        await documents_of(store, ids, tool.workspace), key=lambda each: each.text.lower()
    )
