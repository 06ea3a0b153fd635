"""Reading what shows a pattern: its repairs, the calls it stands for, and what mends it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.models import Execution, FailurePattern
from mongo.records import RepairRow, ToolKey
from retrieval.known_tools.common import ToolRecord
from retrieval.patterns import Pattern, decoded
from service.context import Context
from service.dashboard.shown.call_text import ShownCall, shown_call
from service.dashboard.shown.repair_rules import ShownRule, rules_of
from service.dashboard.shown.repairs import (
    ShownRepair,
    belonging_to,
    ids_of,
    repairs_of,
    shown_repairs,
)

MAX_LOOKED: Final = 500
"""Latest repairs of a tool among which those of a pattern are looked for."""

MAX_REPAIRS: Final = 5
"""Repairs of one pattern that its page shows."""

MAX_EXAMPLES: Final = 5

_TRIED: Final = 3
"""Repairs of a pattern that are read for one example: the calls of the latest may have expired."""


@dataclass(frozen=True, slots=True)
class Example:
    """What shows a pattern best: a repair, else a failed call; both None when none is left."""

    repair: ShownRepair | None = None
    failed: ShownCall | None = None


@dataclass(frozen=True, slots=True)
class PatternEvidence:
    """All that a pattern's page shows beside what the statistics say."""

    examples: tuple[ShownCall, ...]
    """Latest first."""
    gone: int
    """Examples whose executions have expired or were removed."""
    repairs: tuple[ShownRepair, ...]
    """Latest first."""
    repairs_gone: int
    """Repairs among the latest ones whose executions are gone."""
    rules: tuple[ShownRule, ...]
    """The surest first."""


async def examples_of(
    services: Context, workspace: str, patterns: Sequence[FailurePattern]
) -> dict[str, Example]:
    """An example of each pattern, by its id: a few questions to the store, however many there are.

    Raises:
        StoreError: when the store cannot say.
    """
    rows = await services.store.get_patterns(workspace, [each.pattern_id for each in patterns])
    known = {row.pattern_id: decoded(row.data) for row in rows}
    mending = await _latest_repairs(services, workspace, list(known.values()))
    ids = [each for found in mending.values() for each in ids_of(found)]
    ids += [each for pattern in patterns for each in pattern.examples[-_TRIED:]]
    calls = await _executions(services, workspace, list(dict.fromkeys(ids)))
    redactor = services.redactor
    shown = {}
    for pattern in patterns:
        repairs = shown_repairs(mending.get(pattern.pattern_id, ()), calls, redactor)
        failed = next((calls[each] for each in reversed(pattern.examples) if each in calls), None)
        shown[pattern.pattern_id] = Example(
            repair=next(repairs, None),
            failed=None if failed is None else shown_call(redactor.call(failed)),
        )
    return shown


async def evidence_of(
    services: Context, workspace: str, pattern: FailurePattern
) -> PatternEvidence:
    """What shows one pattern.

    Raises:
        StoreError: when the store cannot say.
    """
    rows = await services.store.get_patterns(workspace, [pattern.pattern_id])
    mending: list[RepairRow] = []
    rules: list[ShownRule] = []
    if rows:
        known = decoded(rows[0].data)
        tool = ToolKey(workspace, known.server_name, known.tool_name)
        belongs = belonging_to(workspace, known)
        mending = repairs_of(await services.store.list_repairs(tool, MAX_LOOKED), belongs)
        rules = rules_of(await record_of(services, tool), belongs, services.redactor)
    calls = await _executions(
        services, workspace, [*pattern.examples, *ids_of(mending[:MAX_REPAIRS])]
    )
    redactor = services.redactor
    examples = [calls[each] for each in reversed(pattern.examples) if each in calls]
    found = shown_repairs(mending[:MAX_REPAIRS], calls, redactor)
    repairs = tuple(sorted(found, key=lambda each: each.mended.at, reverse=True))
    shown = (shown_call(redactor.call(each)) for each in examples[:MAX_EXAMPLES])
    return PatternEvidence(
        examples=tuple(sorted(shown, key=lambda each: each.at, reverse=True)),
        gone=len(pattern.examples) - len(examples),
        repairs=repairs,
        repairs_gone=len(mending[:MAX_REPAIRS]) - len(repairs),
        rules=tuple(rules),
    )


async def record_of(services: Context, tool: ToolKey) -> ToolRecord:
    """All that the memory has of a tool.

    Raises:
        StoreError: when the store cannot say.
    """
    stored = await services.memory.tool(tool)
    return ToolRecord(
        tool,
        stored.tool if stored is not None else None,
        await services.memory.knowledge(tool),
        (await services.memory.health([tool])).get(tool),
        (await services.memory.statistics([tool])).get(tool),
    )


async def _latest_repairs(
    services: Context, workspace: str, patterns: Sequence[Pattern]
) -> dict[str, list[RepairRow]]:
    """The latest repairs of each pattern, by its id; each tool is asked about once."""
    of_tools: dict[ToolKey, list[RepairRow]] = {}
    found = {}
    for pattern in patterns:
        tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
        if tool not in of_tools:
            of_tools[tool] = await services.store.list_repairs(tool, MAX_LOOKED)
        belongs = belonging_to(workspace, pattern)
        found[pattern.pattern_id] = repairs_of(of_tools[tool], belongs)[:_TRIED]
    return found


async def _executions(
    services: Context, workspace: str, ids: Sequence[str]
) -> dict[str, Execution]:
    found = await services.store.get_executions(workspace, ids) if ids else []
    return {each.execution.execution_id: each.execution for each in found}
