"""Where a failed call stands: gathered for the advice, cheaply unless other tools matter."""

from collections.abc import Sequence
from datetime import datetime

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.models import FailedCall
from aftercall.outcomes import REFERRALS
from aftercall.redaction import Redactor
from mongo.records import StoredTool, ToolKey
from retrieval.advice.advise import needs_other_tools
from retrieval.advice.situation import Situation
from retrieval.elsewhere import other_tools
from retrieval.health.record import Referred
from retrieval.index.protocol import Hit
from retrieval.knowledge.recovery import (
    TRANSIENT,
    RecoveryTimes,
    Repeats,
    repeats_of,
    session_mark,
    workspace_wide,
)
from retrieval.knowledge.rules import ToolKnowledge, signature_id
from retrieval.memory import Memory
from retrieval.reading.reader import ErrorReading


async def situation_of(
    tool: ToolKey,
    call: FailedCall,
    reading: ErrorReading,
    *,
    knowledge: ToolKnowledge | None,
    registered: StoredTool | None,
    hits_anywhere: Sequence[Hit],
    memory: Memory,
    redactor: Redactor,
    now: datetime,
) -> Situation:
    """Where a failed call stands, beside its case.

    Args:
        tool: the tool that failed.
        call: the failed call, redacted.
        reading: its error.
        knowledge: what is known of the tool.
        registered: the tool as registered.
        hits_anywhere: successes of any tool that are near; none unless `needs_like_calls`.
        memory: for what is known of the workspace and its other tools.
        redactor: says which values are open today.
        now: the time, with a zone.

    Raises:
        StoreError: when the store cannot say.
    """

    def may_show(name: str, value: JsonValue) -> bool:
        shown = {name: value}
        return same_json(redactor.parameters(tool.tool_name, shown), shown)

    others = needs_other_tools(reading, call.error, tool.tool_name)
    return Situation(
        now=now,
        tool_name=tool.tool_name,
        namespace=registered.tool.namespace if registered else None,
        server_name=tool.server_name,
        attempt=call.attempt,
        repeats=_repeats(call, reading, knowledge, now),
        recoveries=await _recoveries(tool.workspace, reading, knowledge, memory),
        others=await other_tools(tool.workspace, memory, hits_anywhere) if others else (),
        referrals=await _referrals(tool, reading, memory),
        may_show=may_show,
    )


async def _referrals(tool: ToolKey, reading: ErrorReading, memory: Memory) -> tuple[Referred, ...]:
    if reading.category not in REFERRALS:
        return ()
    health = await memory.health([tool])
    return tuple(health[tool].referrals) if tool in health else ()


def _repeats(
    call: FailedCall, reading: ErrorReading, knowledge: ToolKnowledge | None, now: datetime
) -> Repeats:
    if knowledge is None or not call.parameters_known:
        return Repeats()
    return repeats_of(
        knowledge.runs,
        call.parameters,
        signature_id(reading.signature),
        reading.category,
        session=session_mark(call.session_id, call.agent),
        now=now,
    )


async def _recoveries(
    workspace: str, reading: ErrorReading, knowledge: ToolKnowledge | None, memory: Memory
) -> tuple[RecoveryTimes, ...]:
    """The tool's own, then those of all tools of the workspace."""
    if reading.category not in TRANSIENT:
        return ()
    everywhere = await memory.knowledge(workspace_wide(workspace))
    found = (each.recoveries.get(reading.category) for each in (knowledge, everywhere) if each)
    return tuple(times for times in found if times)
