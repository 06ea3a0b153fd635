"""Learned repairs for their operator: evidence, suspicious ones, switching off and removing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple

from aftercall.models import LearnedRule, MarkBurst
from mongo.contents import RuleChange, RuleRemoval, removal_event
from mongo.protocol import Store
from mongo.records import Row, ToolKey
from retrieval.knowledge.memory import (
    KNOWLEDGE,
    MARKED,
    STATISTICS,
    TAUGHT,
    RowKind,
    tool_of_row,
    tool_row,
)
from retrieval.knowledge.rewrites.edits import edit_key
from retrieval.knowledge.rewrites.sentences import lesson_of
from retrieval.knowledge.rows.principals import principal_of
from retrieval.knowledge.tool.repairs import common_repairs
from retrieval.knowledge.tool.rules import ToolKnowledge

_PAGE = 50
"""Tools that are read together: what is known of one may take 100 kB."""
_BURST = 5
"""Marks of one key within an hour that are suspicious."""


class KnownRule(NamedTuple):
    """One learned repair, and the event content that removes it."""

    told: LearnedRule
    removal: RuleRemoval


async def find_rules(
    store: Store, workspace: str, tool: ToolKey | None = None
) -> AsyncIterator[KnownRule]:
    """Yield what was learned of one tool, or of each tool with a learned repair."""

    def read(row: Row) -> list[KnownRule]:
        return list(_read_rules(tool_of_row(workspace, row.key), KNOWLEDGE.decode_row(row)))

    async for row in _list_noted(store, workspace, KNOWLEDGE, TAUGHT, tool):
        for each in await asyncio.to_thread(read, row):
            yield each


def _read_rules(tool: ToolKey, known: ToolKnowledge) -> Iterable[KnownRule]:
    for signature in known.signatures.values():
        changes = signature.find_common_changes()
        found = {
            edit_key(each.edits): (each.edits, each.sessions, [e.agent for e in each.mended],
                                   each.execution_ids)
            for each in common_repairs(signature.examples, changes, own=True)
        }  # fmt: skip
        for key, rule in signature.rules.items():
            of_rule = (
                tuple(rule.edits),
                rule.repairs,
                rule.repair_agents(),
                tuple(rule.execution_ids),
            )
            found.setdefault(key, of_rule)
        for key, (edits, repairs, marks, ids) in found.items():
            keys = {*map(principal_of, marks)}  # an empty one stands for the owner
            what = f"{tool_row(tool)}\x1f{signature.signature}\x1f{key}"
            told = LearnedRule(
                rule_id=sha256(what.encode()).hexdigest()[:12],
                server_name=tool.server_name,
                tool_name=tool.tool_name or None,
                signature=signature.signature,
                lesson=lesson_of(edits),
                repairs=repairs,
                keys=sorted(keys),
                suspicious=len(keys) == 1 and "" not in keys,
                off=signature.is_off(edits),
                execution_ids=list(ids),
            )
            yield KnownRule(told, RuleRemoval(tool, signature.signature, key))


async def _list_noted(
    store: Store, workspace: str, kind: RowKind[Any], noted: RowKind[Any], tool: ToolKey | None
) -> AsyncIterator[Row]:
    """Yield rows of a kind, by key, of those tools only that another kind notes."""
    after = None
    while found := await store.knowledge.scan_rows(
        workspace, noted.name, _PAGE, after=after, tool=tool
    ):
        after = found[-1].key
        rows = await store.knowledge.get(workspace, kind.name, [each.key for each in found])
        for row in sorted(rows, key=attrgetter("key")):
            yield row


async def find_bursts(
    store: Store, workspace: str, tool: ToolKey | None = None
) -> AsyncIterator[MarkBurst]:
    """Yield the tools that one key marked again and again within an hour, with the count."""
    async for row in _list_noted(store, workspace, STATISTICS, MARKED, tool):
        marks = Counter(
            (each.by, each.at // 3600)
            for version in STATISTICS.decode_row(row).versions.values()
            for each in version.trials
            if each.severity is not None
        )
        if marks and max(marks.values()) >= _BURST:
            of, most = tool_of_row(workspace, row.key), max(marks.values())
            yield MarkBurst(server_name=of.server_name, tool_name=of.tool_name, marks=most)


async def change_rule(store: Store, rule: KnownRule, change: RuleChange = "remove") -> None:
    """Remove a rule, or switch it off or on; each learner and each rebuild reads the event."""
    event = removal_event(replace(rule.removal, change=change))
    await store.events.append(rule.removal.tool.workspace, [event])
