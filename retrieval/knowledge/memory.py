"""Memory: what the answers read of the current generation, kept decoded; and the kinds of rows.

Rows of one kind are written by one place: ingest writes what it learns from the log, the nightly
job what it consolidates.

Who changes something states so (`forget_rows`, `forget_state`); what other processes did is noticed
by `follow`, which is called twice a second where others may write.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from aftercall.models import Outcome
from aftercall.tables import gather_values
from mongo.contents import CorrectionRecord, StoredPromotion, StoredTool, ToolChange, tool_of
from mongo.protocol import Knowledge, Store
from mongo.records import Cursor, Row, StateRow, ToolKey, decode_json
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.patterns.clusters import AxisClusters
from retrieval.knowledge.rows.cache import FormerRows, RowCache
from retrieval.knowledge.rows.documents import Document
from retrieval.knowledge.rows.health import AxisBook, KnownHealth
from retrieval.knowledge.rows.registry import Registry
from retrieval.knowledge.rows.statistics import ToolTrials
from retrieval.knowledge.session.recent_calls import RecentCalls
from retrieval.knowledge.tool.rules import ToolKnowledge

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)  # each is one, and a key of many tables
class RowKind(Generic[T]):
    """A kind of rows."""

    name: str
    type: type[T]

    def decode_row(self, row: Row) -> T:
        """Return what a row states."""
        return decode_json(self.type, row.data)


class Registered(BaseModel):
    """Tools that are registered under one name, by id, the latest put last."""

    schema_hashes: dict[str, str | None] = Field(default_factory=dict)

    @property
    def schema_hash(self) -> str | None:
        """Return the schema hash of the tool that executions of this name mean."""
        return next(reversed(self.schema_hashes.values()), None)


class CallNotes(BaseModel):
    """What someone stated of one call, in a mark or a correction."""

    counted: dict[str, tuple[str, Outcome]] = Field(default_factory=dict)
    """As what it counts for a tool (by `tool_row`): the version, and the outcome."""
    waiting: list[CorrectionRecord] = Field(default_factory=list)


class MendedFailure(BaseModel):
    """A failure and the success that repaired it, by the times that callers gave them."""

    failed_id: str
    mended_id: str
    failed_at: datetime
    mended_at: datetime
    signature: str
    edit_key: str = ""
    followed_suggestion: bool = False
    """Whether the success followed a suggestion, and so teaches by its outcome."""


class JudgedSuggestion(BaseModel):
    """What a suggestion's confidence was, and what became of it; the agent where it is known."""

    outcome: Outcome
    confidence: float
    """What the caller was shown, in [0, 1]."""
    estimate: float | None = None
    """As `mongo.contents.IssuedSuggestion.estimate`."""
    agent: str | None = None


class Followed(BaseModel):
    """A call that states that it followed a suggestion, recorded before the suggestion was."""

    execution_id: str
    outcome: Outcome
    agent: str
    worked_at: datetime
    failed_id: str | None = None
    failed_at: datetime | None = None
    """Of the failure that it repairs, where that is known."""


class FollowedCalls(BaseModel):
    """All such calls of one suggestion."""

    calls: list[Followed] = Field(default_factory=list)


class Names(BaseModel):
    """Names that are shown apart; of further ones the calls are counted together."""

    names: list[str] = Field(default_factory=list)


KNOWLEDGE = RowKind("knowledge", ToolKnowledge)
"""Of a tool; the workspace's own, under `retrieval.knowledge.tool.rules.workspace_wide`."""
STATISTICS = RowKind("statistics", ToolTrials)
HEALTH = RowKind("health", KnownHealth)
USED = RowKind("used", dict[str, Any])
"""Tools that were called, ranked by the latest use, in milliseconds. Empty, as the next three:
names are asked for without what is known of them."""
TROUBLE = RowKind("trouble", dict[str, Any])
TAUGHT = RowKind("taught", dict[str, Any])
MARKED = RowKind("marked", dict[str, Any])
"""Tools for which a repair was ever learned, or a call ever marked or corrected; empty as well."""
AXES = RowKind("axes", AxisBook)
"""All boundary axes of the workspace, under the key ''."""
DOCUMENT = RowKind("document", Document)
VECTOR = RowKind("vector", dict[str, Any])
"""Documents (by id) whose vector is to be made; to be removed, when the row has any data. Ranked by
the position that asks for it."""
REPAIR = RowKind("repair", MendedFailure)
"""Ranked by position."""
JUDGED = RowKind("judged", JudgedSuggestion)
"""By the id of the outcome's event, ranked by position."""
REGISTERED = RowKind("registered", Registered)
CALL = RowKind("call", CallNotes)
"""By execution id."""
FOLLOWED = RowKind("followed", FollowedCalls)
"""By the id of a suggestion that is not known yet."""
AGENTS = RowKind("agents", Names)
"""Agents that counters show apart, under the key ''."""
SIGNATURES = RowKind("signatures", Names)
VERSIONS = RowKind("versions", Names)
"""Signatures and versions of a tool that counters show apart."""
SKIPPED = RowKind("skipped", dict[str, Any])
"""Events that nothing could be learned from, by position."""

PATTERN = "pattern"
"""Made by the nightly job, by id, ranked by failures and then the latest."""
CALIBRATION = "calibration"
AXIS_CLUSTERS = "axis_clusters"
CONSOLIDATED = "consolidated"
"""Results of the nightly job for the workspace, each one row under the key ''."""
NIGHTLY = (PATTERN, CALIBRATION, AXIS_CLUSTERS, CONSOLIDATED)


def tool_row(tool: ToolKey) -> str:
    """Return the key of a tool's row."""
    return f"{tool.server_name or ''}\x1f{tool.tool_name}"


def tool_of_row(workspace: str, key: str) -> ToolKey:
    """Return the reverse of `tool_row`."""
    server, _, name = key.partition("\x1f")
    return ToolKey(workspace, server or None, name)


_MAX_HEALTH = 10_000_000
"""Bytes of the rows whose health is kept. Decoded they take about five times as much; a row has
some 2 kB, and 100 kB of a tool that fills its space."""

_MAX_KNOWLEDGE = 40_000_000
"""The same of what is known of tools: decoded some four times as much; 70 kB a tool of 500 calls,
170 kB one of 5,000. With less than is asked about, each question decodes again, for 10 ms."""

_MAX_TOOLS = 2_000
_MAX_DOCUMENTS = 10_000
"""Rows kept of the kinds that are small: 1 kB each."""

_MAX_WORKSPACES = 20
"""Whose lists of tools are kept: they may be long, and are needed now and then only."""

_CHANGES = 8
"""Changes of the tools of one name that are read at a time: mostly none waits to be learned."""

_LONG = 150_000
"""Bytes of rows that are decoded in a thread: some 2 ms. While calls are recorded, the way to a
thread and back takes as long."""

_NO_CLUSTERS = AxisClusters()
"""The same one each time: what was made of it is known to hold still."""

_MAX_CHANGED = 4_000
"""Rows that another process changed and that are forgotten one by one; of more, all are."""


class Memory:
    """Read-side cache over a store, bounded by counts, and by size where that varies.

    `knowledge` is another generation than the current one.
    """

    def __init__(self, store: Store, *, knowledge: Knowledge | None = None) -> None:
        self._store = store
        self._own = knowledge
        self._rows: dict[str, RowCache[Any]] = {
            KNOWLEDGE.name: RowCache(_MAX_KNOWLEDGE, by_size=True),
            STATISTICS.name: RowCache(_MAX_TOOLS),
            HEALTH.name: RowCache(_MAX_HEALTH, by_size=True),
            DOCUMENT.name: RowCache(_MAX_DOCUMENTS),
            AXIS_CLUSTERS: RowCache(_MAX_WORKSPACES),
            CALIBRATION: RowCache(_MAX_TOOLS),
        }
        self._called: RowCache[list[ToolKey]] = RowCache(_MAX_WORKSPACES)
        """The tools used last, by how many."""
        self._tools: RowCache[list[StoredTool]] = RowCache(_MAX_WORKSPACES)
        self._registries: RowCache[Registry] = RowCache(_MAX_WORKSPACES)
        self._names: RowCache[Registry] = RowCache(_MAX_TOOLS)
        """Tools of one name, by `tool_row`, of workspaces that have many."""
        self._first: RowCache[list[StoredTool]] = RowCache(_MAX_WORKSPACES)
        """The first tools by id of these, by how many."""
        self._large: set[str] = set()
        """Workspaces that were seen to have many registered tools."""
        self.calls = RecentCalls(store.events)
        self._former = FormerRows[ToolKnowledge]()
        self._serials: dict[str, int] | None = None
        self._commands: dict[str, int] = {}

    @property
    def _knowledge(self) -> Knowledge:
        return self._own or self._store.knowledge

    async def read_knowledge(self, tool: ToolKey) -> ToolKnowledge | None:
        """Return what is known of a tool; not to be changed by the caller."""
        return await self._read_row(tool.workspace, KNOWLEDGE, tool_row(tool))

    async def read_sibling(self, tool: ToolKey) -> ToolKnowledge | None:
        """Return what is known of a tool; while much is learned, what was known a moment ago.

        Not to be changed by the caller.
        """
        place = tool.workspace, tool_row(tool)
        former = None
        if not self._rows[KNOWLEDGE.name].is_known(*place):
            former = self._former.find_row(*place)
        return former or await self.read_knowledge(tool)

    async def read_statistics(self, tools: Sequence[ToolKey]) -> dict[ToolKey, ToolTrials]:
        """Return the statistics of the known tools; not to be changed."""
        return await self._of_tools(STATISTICS, tools)

    async def read_health(self, tools: Sequence[ToolKey]) -> dict[ToolKey, KnownHealth]:
        """Return the health of the tools that have any, which is large.

        Not to change.
        """
        return await self._of_tools(HEALTH, tools)

    async def read_documents(self, workspace: str, ids: Sequence[str]) -> dict[str, Document]:
        """Return those of the documents that exist, by id."""
        found = await self._read_rows(workspace, DOCUMENT, ids)
        return {each: document for each, document in found.items() if document}

    async def axis_book(self, workspace: str) -> AxisBook:
        """Return all boundary axes of a workspace.

        Read again each time, for it is asked for rarely.
        """
        rows = await self._knowledge.get(workspace, AXES.name, [""])
        if rows:
            return await asyncio.to_thread(AXES.decode_row, rows[0])
        return AxisBook()

    async def axis_clusters(self, workspace: str) -> AxisClusters:
        """Return the clusters of a workspace's axes, as the latest clustering left them."""
        kind = RowKind(AXIS_CLUSTERS, AxisClusters)
        return await self._read_row(workspace, kind) or _NO_CLUSTERS

    async def read_scaling(self, workspace: str) -> Scaling:
        """Return the scaling of a workspace: none until it has outcomes enough."""
        scaling = await self._read_row(workspace, RowKind(CALIBRATION, Scaling))
        return Scaling() if scaling is None else scaling

    async def find_tool(self, tool: ToolKey, principal: str | None = None) -> StoredTool | None:
        """Return the registered tool that executions name so, as `Registry.find_named`."""
        return (await self._tools_of_name(tool)).find_named(tool, principal)

    async def list_called(self, workspace: str, limit: int) -> list[ToolKey]:
        """Return the tools that were called, the latest used first; not to be changed."""
        if (known := self._called.get(workspace, str(limit))) is None:
            seen = self._called.changes
            rows = await self._store.knowledge.scan_rows(workspace, USED.name, limit, by="rank")
            known = [tool_of_row(workspace, row.key) for row in rows]
            self._called.put(workspace, str(limit), known, seen)
        return known

    async def list_tools(self, workspace: str) -> list[StoredTool]:
        """Return all registered tools of a workspace, by id; not to be changed by the caller."""
        known = self._tools.get(workspace, "")
        if known is None:
            seen = self._tools.changes
            known = await self._read_tools(workspace)
            self._tools.put(workspace, "", known, seen)
        return known

    async def list_first_tools(self, workspace: str, most: int) -> list[StoredTool]:
        """Return the first registered tools by id, at most so many; not to be changed."""
        if await self._whole_registry(workspace) is not None:
            return (await self.list_tools(workspace))[:most]
        key = str(most)
        known = self._first.get(workspace, key)
        if known is None:
            seen = self._first.changes
            known = await self._read_tools(workspace, limit=most)
            self._first.put(workspace, key, known, seen)
        return known

    async def read_server_names(self, workspace: str, server: str | None) -> set[str]:
        """Return the names of a server's registered tools; None: of those without one.

        Where there are many, one that was put a moment ago is missing until that is learned.
        """
        if await self._whole_registry(workspace) is not None:
            tools = (each.tool_key for each in await self.list_tools(workspace))
            return {each.tool_name for each in tools if each.server_name == server}
        prefix = after = tool_row(ToolKey(workspace, server, ""))
        found = set[str]()
        while rows := await self._knowledge.scan_rows(
            workspace, REGISTERED.name, _MAX_TOOLS, after=after
        ):
            own = [row for row in rows if row.key.startswith(prefix)]
            is_there = (row.key for row in own if REGISTERED.decode_row(row).schema_hashes)
            found.update(key.removeprefix(prefix) for key in is_there)
            if len(own) < len(rows):
                break
            after = rows[-1].key
        return found

    async def read_registry_of(self, workspace: str, tools: Collection[ToolKey]) -> Registry:
        """Return a registry that knows these tools by the names of their calls, or that of all.

        Where there are many, a tool that was put a moment ago is missing until that is learned.
        """
        if (known := await self._whole_registry(workspace)) is not None:
            return known
        found = await self._read_tools(workspace, await self._learned_ids(workspace, tools))
        evolves = any(each.tool.evolved_from for each in found)
        if evolves or await self._store.events.count_state(workspace, "promotion"):
            return await self.read_registry(
                workspace
            )  # what stands for what is seen in all of them
        return Registry(found, is_whole=False)

    async def read_lineage(self, workspace: str, ids: Collection[str]) -> Registry:
        """Return a registry of the tools of these ids and all that they evolved from, or of all.

        It has each of them that is registered now, and no promotions unless it is of all.
        """
        if (known := await self._whole_registry(workspace)) is not None:
            return known
        found: dict[str, StoredTool] = {}
        asked, wanted = set[str](), set(ids)
        while wanted:
            asked |= wanted
            read = await self._read_tools(workspace, sorted(wanted))
            found |= {each.tool.tool_id: each for each in read}
            wanted = {each.tool.evolved_from for each in read if each.tool.evolved_from} - asked
        return Registry(found.values(), is_whole=False)

    async def list_uncalled_tools(self, workspace: str, looked_at: int) -> list[StoredTool]:
        """Return registered tools that no call was learned of, by server and name.

        They are looked for among the first `looked_at` names, as far as those are learned.
        """
        rows = await self._knowledge.scan_rows(workspace, REGISTERED.name, looked_at)
        used = await self._knowledge.get(workspace, USED.name, [row.key for row in rows])
        called = {row.key for row in used}
        ids: list[str] = []
        for row in rows:
            if row.key not in called:
                ids += REGISTERED.decode_row(row).schema_hashes
        return await self._read_tools(workspace, ids)

    async def _whole_registry(self, workspace: str) -> Registry | None:
        """Return the registry of a workspace if it is here or has few tools; else None."""
        if (known := self._registries.get(workspace, "")) is not None:
            return known
        if workspace not in self._large:
            if await self._store.events.count_state(workspace, "tool") <= _MAX_TOOLS:
                return await self.read_registry(workspace)
            self._large.add(workspace)
        return None

    async def _tools_of_name(self, tool: ToolKey) -> Registry:
        """Return a registry that has all tools of a name, those put a moment ago included."""
        workspace, key = tool.workspace, tool_row(tool)
        if (known := await self._whole_registry(workspace)) is not None:
            return known
        if (known := self._names.get(workspace, key)) is None:
            seen = self._names.changes
            # The cursor first: what is learned meanwhile is read twice, and nothing is missed.
            cursor = (await self._knowledge.read_cursors()).get(workspace, Cursor()).position
            ids = await self._learned_ids(workspace, [tool])
            ids += await self._unlearned_ids(tool, cursor)
            read = await self._read_tools(workspace, list(dict.fromkeys(ids)))
            known = Registry((each for each in read if each.tool_key == tool), is_whole=False)
            self._names.put(workspace, key, known, seen)
        return known

    async def _learned_ids(self, workspace: str, tools: Collection[ToolKey]) -> list[str]:
        keys = [tool_row(each) for each in tools]
        rows = await self._knowledge.get(workspace, REGISTERED.name, keys)
        return [name for row in rows for name in REGISTERED.decode_row(row).schema_hashes]

    async def _unlearned_ids(self, tool: ToolKey, cursor: int) -> list[str]:
        """Return the ids that were put or deleted under a name behind the cursor."""
        found: list[str] = []
        before = None
        while True:
            events = await self._store.events.latest_events(
                tool.workspace, "tool", _CHANGES, tool=tool, before=before
            )
            new = [each for each in events if each.position > cursor]
            found += [decode_json(ToolChange, each.data).tool_id for each in new]
            if not new or len(new) < len(events):
                return found
            before = new[-1].position

    async def _read_tools(
        self, workspace: str, ids: Sequence[str] | None = None, limit: int | None = None
    ) -> list[StoredTool]:
        """Return the registered tools of these ids, or the first by id, or all."""
        rows = await self._store.events.read_state(workspace, "tool", ids, limit=limit)
        return await asyncio.to_thread(_decode_tools, workspace, rows)

    async def read_registry(self, workspace: str) -> Registry:
        """Return all tools and promotions of a workspace."""
        known = self._registries.get(workspace, "")
        if known is None:
            seen = self._registries.changes
            tools = await self.list_tools(workspace)
            rows = await self._store.events.read_state(workspace, "promotion")
            stored = ((decode_json(StoredPromotion, row.data or b""), row.position) for row in rows)
            known = Registry(tools, [replace(each, position=at) for each, at in stored])
            self._registries.put(workspace, "", known, seen)
        return known

    def adopt_tools(
        self, workspace: str, tools: Mapping[str, tuple[ToolKnowledge, int]], serial: int
    ) -> None:
        """Adopt what is known of tools as of the latest commit, with its size.

        What is here already stays, for what was made of it holds still.
        """
        if self._serials is not None and self._serials.get(workspace) == serial:
            cache = self._rows[KNOWLEDGE.name]
            for key, (known, size) in tools.items():
                kept = cache.get(workspace, key) or known
                cache.put(workspace, key, kept, cache.changes, size)

    def forget_rows(self, workspace: str, rows: Sequence[tuple[str, str]], serial: int = 0) -> None:
        """Forget rows, by kind and key, that a commit of this serial number changed."""
        serials = self._serials
        if serials is not None and serials.get(workspace, 0) == serial - 1:
            serials[workspace] = serial
        known = self._rows[KNOWLEDGE.name]
        changed = [(workspace, key) for kind, key in rows if kind == KNOWLEDGE.name]
        self._former.keep_rows(changed, known)
        for kind, key in rows:
            if kind in self._rows:
                self._rows[kind].forget_key(workspace, key)
            elif kind == USED.name:
                self._called.clear_items()

    def tool_changed(self, workspace: str, tool_id: str, after: StoredTool | None) -> None:
        """Note that a tool was put, or deleted when `after` is missing, once that is durable."""
        known = self._tools.get(workspace, "")
        self.forget_state(workspace)
        if known is not None:  # there may be thousands, which are not read again for one of them
            changed = list(known)
            place = bisect_left(changed, tool_id, key=lambda each: each.tool.tool_id)
            is_there = place < len(changed) and changed[place].tool.tool_id == tool_id
            changed[place : place + is_there] = [] if after is None else [after]
            self._tools.put(workspace, "", changed, self._tools.changes)

    def forget_state(self, workspace: str) -> None:
        """Tools or promotions of the workspace have changed, or may have."""
        self._tools.forget_key(workspace, "")
        self._registries.forget_key(workspace, "")
        self._names.clear_items()
        self._first.clear_items()

    def forget_all(self) -> None:
        """Forget everything, because another generation is current."""
        self._clear_rows()
        self._former.clear_rows()
        self.calls.clear_calls()
        self._tools.clear_items()
        self._registries.clear_items()
        self._names.clear_items()
        self._first.clear_items()
        self._large.clear()
        self._serials = None

    def _clear_rows(self) -> None:
        for cache in (*self._rows.values(), self._called):
            cache.clear_items()

    async def follow_changes(self) -> None:
        """Forget what other processes have changed since the last time.

        Raises:
            StoreError: the store cannot be read; nothing is missed by doing it again.
        """
        knowledge = self._knowledge
        cursors = await knowledge.read_cursors()
        if self._serials is None:  # what was read until now may be older than these cursors
            self._clear_rows()
            self._serials = {workspace: cursor.serial for workspace, cursor in cursors.items()}
        for workspace, cursor in cursors.items():
            # At 0 nothing was committed yet, and that nothing is known may have been kept.
            seen = self._serials.get(workspace, 0)
            if seen < cursor.serial:
                rows = await knowledge.list_changed(
                    workspace, [*self._rows, USED.name], seen, _MAX_CHANGED
                )
                self.forget_rows(workspace, rows)
                if len(rows) == _MAX_CHANGED:
                    known = self._rows[KNOWLEDGE.name]
                    self._former.keep_rows(list(known), known)
                    self._clear_rows()
            self._serials[workspace] = cursor.serial
        self._former.drop_old()
        for workspace, head in (await self._store.events.read_heads()).items():
            if self._commands.get(workspace, 0) != head.commands:
                self.forget_state(workspace)
            self._commands[workspace] = head.commands

    async def _of_tools(self, kind: RowKind[T], tools: Sequence[ToolKey]) -> dict[ToolKey, T]:
        found: dict[ToolKey, T | None] = {}
        of_workspaces = gather_values((each.workspace, each) for each in tools)
        for workspace, own in of_workspaces.items():
            keys = [tool_row(each) for each in own]
            read = await self._read_rows(workspace, kind, keys)
            found |= {each: read[key] for each, key in zip(own, keys, strict=True)}
        return {each: value for each, value in found.items() if value is not None}

    async def _read_row(self, workspace: str, kind: RowKind[T], key: str = "") -> T | None:
        rows = await self._read_rows(workspace, kind, [key])
        return rows[key]

    async def _read_rows(
        self, workspace: str, kind: RowKind[T], keys: Sequence[str]
    ) -> dict[str, T | None]:
        cache: RowCache[Any] = self._rows[kind.name]
        found: dict[str, T | None] = {key: cache.get(workspace, key) for key in keys}
        if missing := [key for key in found if not cache.is_known(workspace, key)]:
            seen = cache.changes
            rows = await self._knowledge.get(workspace, kind.name, missing)
            sizes = {row.key: len(row.data) for row in rows}
            # What is short is read sooner than a thread is there.
            is_long = sum(sizes.values()) > _LONG
            # Not `call_aside`, where what is recorded waits in a line.
            read = (
                await asyncio.to_thread(_decode_rows, kind, rows)
                if is_long
                else _decode_rows(kind, rows)
            )
            for key in missing:
                found[key] = read.get(key)
                cache.put(workspace, key, found[key], seen, sizes.get(key, 1))
        return found


def _decode_tools(workspace: str, rows: Iterable[StateRow]) -> list[StoredTool]:
    return [tool_of(workspace, row) for row in rows]


def _decode_rows(kind: RowKind[T], rows: Sequence[Row]) -> dict[str, Any]:
    read = ((row.key, kind.decode_row(row)) for row in rows)
    return {
        key: each.limit_principals() if isinstance(each, KnownHealth) else each
        for key, each in read
    }
