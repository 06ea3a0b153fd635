"""Forgetting: the words of an agent, a session, a key or a time go from log and knowledge.

Its events are deleted, and the events that quote them: outcomes, marks and corrections of its
calls, suggestions made from them. The base, which expired events taught, loses each row that bears
a mark of it. Then everything is learned again into a new generation with vectors of its own, and
the former generation is removed. The store notes that something is forgotten and not yet learned
without, so that another process continues if one is killed.
"""

import json
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from uuid import uuid4

from aftercall.models import ForgetRequest
from mongo import contents
from mongo.paging import all_events, all_rows
from mongo.protocol import Store
from mongo.records import Commit, Counter, Event, Removal, Row, StateKind, StateRow, decode_json
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.principals import agent_mark, key_mark
from retrieval.knowledge.tool.profile import agent_token

_StateKey: TypeAlias = tuple[StateKind, str]
_EVER = 2**40
"""Hours: more than there are, on either side of 1970."""
_STATES: frozenset[str] = frozenset(("tool", "promotion", "review"))


class Forgotten(ForgetRequest):
    """Whose words are deleted from a workspace."""

    workspace: str

    def is_of(self, event: Event) -> bool:
        """Return whether an event is to be deleted for itself."""
        if self.before is not None and event.received_at >= self.before:
            return False
        if self.key_id not in (None, event.principal):
            return False
        if self.agent is None and self.session_id is None:
            takes_states = bool(self.key_id or self.everything)
            return takes_states or event.kind not in _STATES
        agent, session = _find_speaker(event)
        return self.agent in (None, agent) and self.session_id in (None, session)

    def is_waiting(self, line: bytes) -> bool:
        """Return whether a call that a recorder has still to send is to be deleted."""
        call = json.loads(line)
        if self.before is not None:
            made_at = datetime.fromisoformat(call["timestamp"])
            if made_at >= self.before:
                return False
        is_of_agent = self.agent in (None, call["agent"])
        return is_of_agent and self.session_id in (None, call.get("sessionId"))

    @property
    def subject(self) -> str:
        """Return what the audit notes of it: no agent, no session, no personal values."""
        if self.everything:
            return "everything"
        return self.key_id or ("a time" if self.before else "an agent or session")

    def list_marks(self) -> Iterator[bytes]:
        """Yield the marks, as JSON, by which rows of the base show these words."""
        by = self.key_id
        if self.agent is not None:
            name = self.agent
            if by is not None:
                name = contents.name_for_principal(by, name)
            yield json.dumps(self.agent).encode()
            # A row has either mark after the mark of some key.
            yield f'{agent_mark(name)}"'.encode()
            yield f'{agent_token(name)}"'.encode()
        elif self.session_id is None and by is not None:
            yield f'"{key_mark(by)}.'.encode()


def _find_speaker(event: Event) -> tuple[str | None, str | None]:
    match event.kind:
        case "execution":
            call = contents.execution_of(event).execution
            return call.agent, call.session_id
        case "suggestion":
            issued = decode_json(contents.IssuedSuggestion, event.data)
            return issued.agent, issued.session
        case "outcome":
            return decode_json(contents.SuggestionOutcome, event.data).agent, None
        case "correction":
            return decode_json(contents.CorrectionRecord, event.data).agent, None
        case _:
            return None, None


@dataclass(slots=True)
class _Found:
    """The events to delete: positions, counts by kind, and the ids that others may quote."""

    positions: list[int] = field(default_factory=list)
    kinds: Tally[str] = field(default_factory=Tally)
    calls: set[str] = field(default_factory=set)
    suggestions: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        self.positions.append(event.position)
        self.kinds[event.kind] += 1
        if event.kind == "execution":
            self.calls.add(event.id)
        elif event.kind == "suggestion":
            self.suggestions.add(event.id)

    def is_quoted_by(self, event: Event) -> bool:
        match event.kind:
            case "suggestion":
                given = decode_json(contents.IssuedSuggestion, event.data).suggestion
                if given is None:
                    return False
                quoted = given.evidence.execution_ids
                return not self.calls.isdisjoint(quoted)
            case "outcome":
                outcome = decode_json(contents.SuggestionOutcome, event.data)
                is_of_call = outcome.execution_id in self.calls
                return is_of_call or outcome.suggestion_id in self.suggestions
            case "mark":
                mark = decode_json(contents.FailureRecord, event.data)
                return mark.execution_id in self.calls
            case "correction":
                correction = decode_json(contents.CorrectionRecord, event.data)
                return correction.execution_id in self.calls
            case _:
                return False


async def forget_events(store: Store, whose: Forgotten) -> dict[str, int]:
    """Delete the words from log, state and base; return the counts of events by kind, and of rows.

    What was learned from them is still used in answers until all is learned again
    (`service.rebuild`).
    """
    found, log = _Found(), store.events
    before = await store.metadata.get(_FORGOTTEN)
    await store.metadata.put(_FORGOTTEN, uuid4().hex)
    async for event in all_events(log, whose.workspace):
        if whose.is_of(event):
            found.add(event)
    gone = set(found.positions)
    async for event in all_events(log, whose.workspace):  # suggestions before their outcomes
        if event.position not in gone and found.is_quoted_by(event):
            found.add(event)
    state = await _state_without(store, whose.workspace, set(found.positions))
    if state:  # first: what is left of a killed one is found by its events
        await log.append(whose.workspace, [], state)
    await log.forget_events(whose.workspace, found.positions)
    rows = await _base_without(store, whose)
    if not (found.positions or rows):
        await store.metadata.put(_FORGOTTEN, before or "")
    counts = dict(found.kinds)
    if rows:
        counts["expired rows"] = rows
    return counts


_FORGOTTEN, _WITHOUT = "forgotten", "learned_without"
"""Facts: the latest thing that was forgotten, and the latest that knowledge was made without."""


async def learned_without(store: Store) -> dict[str, str]:
    """Return the fact that a rebuild which begins now notes when it switches.

    The result is empty if that fact is noted already.
    """
    latest = await store.metadata.get(_FORGOTTEN)
    noted = await store.metadata.get(_WITHOUT)
    if not latest or latest == noted:
        return {}
    return {_WITHOUT: latest}


async def _state_without(store: Store, workspace: str, gone: set[int]) -> list[StateRow]:
    touched: set[_StateKey] = set()
    left: dict[_StateKey, StateRow] = {}
    async for event in all_events(store.events, workspace):
        row = state_of(workspace, event)
        if row is None:
            continue
        key = row.kind, row.key
        if event.position in gone:
            touched.add(key)
        else:
            left[key] = row
    rows: list[StateRow] = []
    for kind, name in sorted(touched):
        rows.append(left.get((kind, name), StateRow(kind, name, None)))
    return rows


def state_of(workspace: str, event: Event) -> StateRow | None:
    """Return what a command left, whatever was there before."""
    match event.kind:
        case "tool":
            change = decode_json(contents.ToolChange, event.data)
            _, row = contents.tool_command(
                workspace, change.tool_id, None, change.after, event.principal
            )
        case "promotion":
            promotion = decode_json(contents.PromotionEvent, event.data)
            _, row = contents.promotion_command(promotion, None)
        case "review":
            review = json.loads(event.data)
            pattern_id = review.get("pattern_id")
            if pattern_id:
                return StateRow("pattern", pattern_id, event.data)
            row = StateRow("review", review["recommendation_id"], event.data)
        case _:
            return None
    return StateRow(row.kind, row.key, row.data)


async def _base_without(store: Store, whose: Forgotten) -> int:
    """Remove rows of the base that bear its words; all with `before`, for none is younger."""
    base = await store.open_generation(0)
    workspace = whose.workspace
    marks = list(whose.list_marks())
    takes_all = whose.everything or whose.before is not None

    def bears_mark(row: Row) -> bool:
        return any(mark in row.data for mark in marks)

    rows = all_rows(base, workspace, None, by="serial")
    gone = [Removal(row.kind, row.key) async for row in rows if takes_all or bears_mark(row)]
    if gone:
        await base.commit(Commit(workspace, removed=gone))
    names = ["*"] if takes_all else []
    if whose.agent is not None:
        names = [f"{kind}{whose.agent}" for kind in what.OF_AGENTS]
    if names:
        last = _EVER
        if whose.before is not None:
            last = contents.hour_of(whose.before) - 1
        sums = await base.sum_counters(
            workspace, names, since=-_EVER, until=last, by=("hour", "tool", "what")
        )
        less: dict[Counter, int] = {}
        for each in sums:
            counter = Counter(each.what or "", each.hour or 0, each.tool)
            less[counter] = -each.number
        await base.commit(Commit(workspace, counters=less))
    return len(gone)
