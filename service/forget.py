"""Forgetting: what an agent, a session, a key or a time has stated goes from log and knowledge.

Its events are deleted, and the events that quote them: outcomes, marks and corrections of its
calls, suggestions made of them. Of the base, which expired events taught, each row that bears a
mark of it goes whole. Then all is learned again without them, into a new generation with vectors of
its own, and the former one is removed. The store notes that something is forgotten and not yet
learned without, so that another process goes on where one was killed.
"""

import json
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from aftercall.models import ForgetRequest
from mongo import contents
from mongo.paging import all_events, all_rows
from mongo.protocol import Store
from mongo.records import Commit, Counter, Event, Removal, StateKind, StateRow, decode_json
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.principals import agent_mark, key_mark
from retrieval.knowledge.tool.profile import agent_token

_EVER = 2**40
"""Hours: more than there are, on either side of 1970."""
_STATES: frozenset[str] = frozenset(("tool", "promotion", "review"))


class Forgotten(ForgetRequest):
    """Whose words go of a workspace."""

    workspace: str

    def is_of(self, event: Event) -> bool:
        """Return whether an event is to go by itself."""
        is_later = self.before is not None and event.received_at >= self.before
        if is_later or self.key_id not in (None, event.principal):
            return False
        if self.agent is None and self.session_id is None:
            return bool(self.key_id or self.everything) or event.kind not in _STATES
        agent, session = _speaker(event)
        return self.agent in (None, agent) and self.session_id in (None, session)

    def is_waiting(self, line: bytes) -> bool:
        """Return whether a call that a recorder has still to send is to go, of one of its keys."""
        call = json.loads(line)
        if self.before is not None and datetime.fromisoformat(call["timestamp"]) >= self.before:
            return False
        said = (self.agent, call["agent"]), (self.session_id, call.get("sessionId"))
        return all(wanted in (None, found) for wanted, found in said)

    @property
    def subject(self) -> str:
        """Return what the audit states: no name of an agent or a session.

        It keeps no personal values.
        """
        if self.everything:
            return "everything"
        return self.key_id or ("a time" if self.before else "an agent or session")

    def marks(self) -> Iterator[bytes]:
        """Yield what rows of the base that bear its words hold, as JSON."""
        by = self.key_id
        if self.agent is not None:
            name = self.agent if by is None else contents.name_for_principal(by, self.agent)
            yield json.dumps(self.agent).encode()
            for mark in (agent_mark(name), agent_token(name)):
                yield f'{mark}"'.encode()  # behind the mark of whichever key
        elif self.session_id is None and by is not None:
            yield f'"{key_mark(by)}.'.encode()


def _speaker(event: Event) -> tuple[str | None, str | None]:
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
    """What goes: positions, by kind in number, and the ids that others may quote."""

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
                return given is not None and not self.calls.isdisjoint(given.evidence.execution_ids)
            case "outcome":
                said = decode_json(contents.SuggestionOutcome, event.data)
                return said.execution_id in self.calls or said.suggestion_id in self.suggestions
            case "mark":
                return decode_json(contents.FailureRecord, event.data).execution_id in self.calls
            case "correction":
                return decode_json(contents.CorrectionRecord, event.data).execution_id in self.calls
            case _:
                return False


async def forget(store: Store, whose: Forgotten) -> dict[str, int]:
    """Delete it from the log, the state and the base; how many events of each kind, and rows.

    What was learned of it still answers until all is learned again (`service.rebuild`).
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
    return {**found.kinds, **({"expired rows": rows} if rows else {})}


_FORGOTTEN, _WITHOUT = "forgotten", "learned_without"
"""Facts: the latest thing that was forgotten, and the latest that knowledge was made without."""


async def learned_without(store: Store) -> dict[str, str]:
    """Return what a rebuild that begins now may say when it switches.

    Nothing where that is stated.
    """
    latest = await store.metadata.get(_FORGOTTEN)
    is_said = not latest or latest == await store.metadata.get(_WITHOUT)
    return {} if is_said or latest is None else {_WITHOUT: latest}


async def _state_without(store: Store, workspace: str, gone: set[int]) -> list[StateRow]:
    touched: set[tuple[StateKind, str]] = set()
    left: dict[tuple[StateKind, str], StateRow] = {}
    async for event in all_events(store.events, workspace):
        if (row := state_of(workspace, event)) is not None and event.position in gone:
            touched.add((row.kind, row.key))
        elif row is not None:
            left[row.kind, row.key] = row
    return [left.get(each, StateRow(*each, None)) for each in sorted(touched)]


def state_of(workspace: str, event: Event) -> StateRow | None:
    """Return what a command left, whatever was there before."""
    match event.kind:
        case "tool":
            change = decode_json(contents.ToolChange, event.data)
            row = contents.tool_command(
                workspace, change.tool_id, None, change.after, event.principal
            )[1]
        case "promotion":
            row = contents.promotion_command(
                decode_json(contents.PromotionEvent, event.data), None
            )[1]
        case "review":
            said = json.loads(event.data)
            if pattern_id := said.get("pattern_id"):
                return StateRow("pattern", pattern_id, event.data)
            row = StateRow("review", said["recommendation_id"], event.data)
        case _:
            return None
    return StateRow(row.kind, row.key, row.data)


async def _base_without(store: Store, whose: Forgotten) -> int:
    """Remove rows of the base that bear its words; all with `before`, for none is younger."""
    base, workspace = await store.open_generation(0), whose.workspace
    marks, takes_all = list(whose.marks()), whose.everything or whose.before is not None
    gone = [
        Removal(row.kind, row.key)
        async for row in all_rows(base, workspace, None, by="serial")
        if takes_all or any(mark in row.data for mark in marks)
    ]
    if gone:
        await base.commit(Commit(workspace, removed=gone))
    names = ["*"] if takes_all else []
    if whose.agent is not None:
        names = [f"{kind}{whose.agent}" for kind in what.OF_AGENTS]
    if names:
        last = _EVER if whose.before is None else contents.hour_of(whose.before) - 1
        sums = await base.sum_counters(
            workspace, names, since=-_EVER, until=last, by=("hour", "tool", "what")
        )
        less = {Counter(e.what or "", e.hour or 0, e.tool): -e.number for e in sums}
        await base.commit(Commit(workspace, counters=less))
    return len(gone)
