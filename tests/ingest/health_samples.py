"""Calls and corrections for the tests of the health of tools, and what was learned."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from aftercall.models import Execution, ReferralKind
from mongo.contents import CorrectionRecord
from mongo.protocol import LogStore
from mongo.records import ToolKey
from retrieval.health.record import AxisBook, KnownHealth
from retrieval.knowledge.rules import workspace_wide
from tests.ingest.fitness_samples import START, TOOL, WORKSPACE, a_call, id_of


def a_referral(
    number: int,
    *axes: str,
    kind: ReferralKind = "wrong_tool_boundary",
    tool: ToolKey = TOOL,
    evidence: str | None = "the page is HTML",
    **fields: Any,
) -> Execution:
    """The call of that number, which the tool refers elsewhere."""
    details: dict[str, Any] = {"boundaryAxes": list(axes)}
    if evidence is not None:
        details["evidence"] = evidence
    error = {"type": kind, "message": f"not my job in call {number}", "details": details}
    return _failed(number, error, tool, fields)


def a_failure(
    number: int, kind: str, *, tool: ToolKey = TOOL, details: Any = None, **fields: Any
) -> Execution:
    """The call of that number, which failed with an error of that type."""
    error = {"type": kind, "message": f"broken in call {number}", "details": details or {}}
    return _failed(number, error, tool, fields)


def a_correction(
    number: int,
    of: int,
    *axes: str,
    text: str = "that doesn't look like a movie list",
    workspace: str = WORKSPACE,
) -> CorrectionRecord:
    """The correction of that number, so many minutes after the start, of the call `of`."""
    return CorrectionRecord(
        workspace=workspace,
        correction_id=id_of(2_000_000 + number),
        execution_id=id_of(of),
        kind="low_utility",
        text=text,
        corrected_at=START + timedelta(minutes=number),
        boundary_axes=tuple(axes),
    )


async def health_of(store: LogStore, tool: ToolKey = TOOL) -> KnownHealth:
    """The health of the tool, as stored."""
    [row] = await store.get_health([tool])
    return KnownHealth.model_validate_json(row.data)


async def book_of(store: LogStore, workspace: str = WORKSPACE) -> AxisBook:
    """The axes of the workspace, as stored."""
    rows = await store.get_health([workspace_wide(workspace)])
    return AxisBook.model_validate_json(rows[0].data) if rows else AxisBook()


def counts_of(known: KnownHealth, names: Sequence[str]) -> list[int]:
    """The counts of these tallies."""
    return [getattr(known, name).count for name in names]


def _failed(number: int, error: dict[str, Any], tool: ToolKey, fields: dict[str, Any]) -> Execution:
    call = a_call(number, failed=True, tool=tool, **fields)
    return Execution.model_validate(call.model_dump() | {"error": error})
