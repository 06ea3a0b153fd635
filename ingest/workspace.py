"""The workspace cache: decoded rows of one workspace as of one commit, learned into in place."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from aftercall.models import Execution
from aftercall.tables import keep_latest
from ingest.pacing import let_answers_pass
from mongo.contents import StoredExecution, named_execution_of, thread_of
from mongo.protocol import EventLog, Knowledge
from mongo.records import Removal, Row, ToolKey, encode_json
from retrieval.knowledge.memory import (
    AXES,
    CALL,
    DOCUMENT,
    HEALTH,
    KNOWLEDGE,
    MARKED,
    REPAIR,
    STATISTICS,
    TAUGHT,
    TROUBLE,
    USED,
    VECTOR,
    RowKind,
)
from retrieval.knowledge.rows.documents import Document
from retrieval.knowledge.session.session_calls import EarlierCall, extract_values, session_call
from retrieval.knowledge.tool.rules import ToolKnowledge

T = TypeVar("T")
_KEPT: Mapping[str, int] = {
    KNOWLEDGE.name: 1_000, STATISTICS.name: 1_000, HEALTH.name: 250, DOCUMENT.name: 3_000,
    AXES.name: 1, CALL.name: 100, REPAIR.name: 0,
}  # fmt: skip
"""Rows that stay decoded between batches: health takes up to 200 kB a tool, a scenario 5 KiB. A
repair is only written, and of a call little is stated later."""
_EMPTY = frozenset(each.name for each in (VECTOR, TROUBLE, USED, TAUGHT, MARKED))
"""Kinds whose key and rank say all, and which no one reads here."""
_KEPT_OTHERS = 2_000
_MAX_SESSIONS, _MAX_CALLS = 500, 4_000
SESSION_CALLS = 200
"""Calls of a session, the latest by arrival, that repairs are looked for in."""


class WorkspaceCache:
    """Rows of one workspace. Anything that is changed is collected until `taken`.

    Valid as long as no one else commits to the workspace: who keeps one looks at the serial number.
    """

    def __init__(self, workspace: str, serial: int = 0) -> None:
        self.workspace = workspace
        self.serial = serial
        """Of the commit whose rows these are."""
        self.sessions: OrderedDict[str, deque[StoredExecution]] = OrderedDict()
        """The latest calls of sessions, oldest arrival first, up to the cursor."""
        self._session_calls: dict[str, EarlierCall] = {}
        self._rows: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._sizes: dict[str, int] = {}
        """Bytes of what was last written of the tools whose knowledge is here."""
        self._changed: dict[tuple[str, str], tuple[ToolKey | None, int, bytes]] = {}
        """Rows to write: of what tool, their rank, and the data of those that are no object."""
        self._removed: dict[tuple[str, str], None] = {}

    async def load(self, knowledge: Knowledge, wanted: Iterable[tuple[RowKind[Any], str]]) -> None:
        """Read those of the rows that are not here yet; one read for each kind."""
        missing: dict[RowKind[Any], dict[str, None]] = {}
        for kind, key in wanted:
            if (kind.name, key) in self._rows:
                self._rows.move_to_end((kind.name, key))
            else:
                missing.setdefault(kind, {})[key] = None
        read = await asyncio.gather(
            *(knowledge.get(self.workspace, kind.name, keys) for kind, keys in missing.items())
        )
        if any(read):
            decoded = await asyncio.to_thread(_decode_rows, missing, read)
        else:
            decoded = [{}] * len(read)
        for (kind, keys), found in zip(missing.items(), decoded, strict=True):
            self._rows.update({(kind.name, key): found.get(key) for key in keys})

    def get(self, kind: RowKind[T], key: str) -> T | None:
        """Return a row that was loaded; None without one."""
        found: T | None = self._rows[kind.name, key]
        return found

    def get_or_make(self, kind: RowKind[T], key: str) -> T:
        """Return a row that was loaded, made empty when none exists."""
        found: T | None = self._rows[kind.name, key]
        if found is None:
            found = self._rows[kind.name, key] = kind.type()
        return found

    def put(
        self,
        kind: RowKind[T],
        key: str,
        value: T | None = None,
        *,
        tool: ToolKey | None = None,
        rank: int = 0,
    ) -> None:
        """Note a new or changed row; without a value it is the row that is loaded."""
        place = (kind.name, key)
        if value is not None:
            self._rows[place] = value
        self._changed[place] = tool, rank, b""
        if self._removed:
            self._removed.pop(place, None)

    def remove(self, kind: RowKind[Any], key: str) -> None:
        """Note that a row is gone."""
        self._rows[kind.name, key] = None
        self._changed.pop((kind.name, key), None)
        self._removed[kind.name, key] = None

    async def load_sessions(self, log: EventLog, sessions: set[str], *, before: int) -> None:
        """Read the calls before a position of those of the sessions that are not here yet."""
        if not (unknown := sessions - self.sessions.keys()):
            return
        found = await log.latest_events(
            self.workspace, "execution", SESSION_CALLS, sessions=unknown, before=before
        )
        for session in unknown:
            self.sessions[session] = deque(maxlen=SESSION_CALLS)
        for event in reversed(found):
            self.sessions[str(event.session)].append(named_execution_of(event))

    def remember_call(self, stored: StoredExecution) -> deque[StoredExecution]:
        """Add a call to its session; the latest calls of that, in the order of arrival."""
        session = thread_of(stored.execution)
        calls = self.sessions.setdefault(session, deque(maxlen=SESSION_CALLS))
        self.sessions.move_to_end(session)
        calls.append(stored)
        return calls

    def session_call(self, execution: Execution) -> EarlierCall:
        """Return a call of a session with its plain values."""
        if (known := self._session_calls.get(execution.execution_id)) is None:
            values = extract_values(execution.result)
            known = session_call(execution.tool_name, execution.parameters, values)
            keep_latest(self._session_calls, execution.execution_id, known, _KEPT_OTHERS)
        return known

    def put_document(self, document: Document, position: int, tool: ToolKey | None = None) -> None:
        """Note a new or changed document, which gets a vector when its text is new."""
        known = self.get(DOCUMENT, document.document_id)
        is_new = known is not document and (
            known is None or (known.text, known.terms) != (document.text, document.terms)
        )
        self.put(DOCUMENT, document.document_id, document, tool=tool)
        if is_new:
            self._changed[VECTOR.name, document.document_id] = None, position, b""

    def remove_document(self, document_id: str, position: int) -> None:
        """Note that a document is gone; its vector is removed later."""
        self.remove(DOCUMENT, document_id)
        self._changed[VECTOR.name, document_id] = None, position, b"{}"

    def take_changes(self) -> tuple[list[Row], list[Removal]]:
        """Return what was changed since the last time, encoded, and what was removed."""
        rows = [
            Row(*place, self._encode_row(place, data), tool, rank)
            for place, (tool, rank, data) in self._changed.items()
        ]
        self._sizes |= {row.key: len(row.data) for row in rows if row.kind == KNOWLEDGE.name}
        removed = [Removal(*place) for place in self._removed]
        self._changed.clear()
        self._removed.clear()
        return rows, removed

    def shrink_cache(self) -> None:
        """Forget what was used longest ago, beyond what is kept of each kind."""
        numbers = Counter(kind for kind, _ in self._rows)
        beyond = {kind: n - _KEPT.get(kind, _KEPT_OTHERS) for kind, n in numbers.items()}
        for place in list(self._rows):
            if beyond[place[0]] > 0:
                beyond[place[0]] -= 1
                del self._rows[place]
        self._sizes = {k: n for k, n in self._sizes.items() if (KNOWLEDGE.name, k) in self._rows}
        kept = 0
        for number, session in enumerate(reversed(list(self.sessions))):
            kept += len(self.sessions[session])
            if number >= _MAX_SESSIONS or kept > _MAX_CALLS:
                del self.sessions[session]

    def give_knowledge(self) -> dict[str, tuple[ToolKnowledge, int]]:
        """Return what was learned of tools, by key, with its bytes in the store; here no longer."""
        given = {key: (self._rows.pop((KNOWLEDGE.name, key)), n) for key, n in self._sizes.items()}
        self._sizes.clear()
        return given

    def clear_cache(self) -> None:
        """Forget everything, a row at a time, so that other threads run."""
        while self._rows:
            self._rows.popitem()
        self.sessions.clear()

    def _encode_row(self, place: tuple[str, str], data: bytes) -> bytes:
        let_answers_pass()
        if place[0] in _EMPTY:
            return data
        sparse = place[0] == HEALTH.name  # of which most is empty, and nothing shows kinds apart
        return encode_json(self._rows[place], sparse=sparse)


def _decode_rows(
    kinds: Iterable[RowKind[Any]], read: Iterable[Iterable[Row]]
) -> list[dict[str, Any]]:
    """Return what rows hold, by key, for each kind."""
    found = []
    for kind, rows in zip(kinds, read, strict=True):
        held = {}
        for row in rows:
            let_answers_pass()
            held[row.key] = kind.decode_row(row)
        found.append(held)
    return found
