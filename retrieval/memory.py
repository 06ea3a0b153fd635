"""Memory: what the answers read, kept at hand; the store stays the truth.

Whoever changes something in the store calls `forget_*`, so that the next question reads it anew.
Of the tools of a workspace only the changed one is replaced (`tool_changed`): there may be
thousands, and whoever registers them would read all that are there for each.
"""

import asyncio
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from mongo.protocol import LogStore
from mongo.records import Change, HealthRow, StoredTool, ToolKey
from retrieval.boundaries.clusters import AxisClusters, axes_fact
from retrieval.classifier import CategoryHead, OwnHead, classifier_fact
from retrieval.confidence import Calibration, Scaling, shipped
from retrieval.fitness.registry import Registry
from retrieval.fitness.statistics import ToolStatistics
from retrieval.health.record import AxisBook, KnownHealth
from retrieval.knowledge.documents import Document
from retrieval.knowledge.recovery import workspace_wide
from retrieval.knowledge.rules import ToolKnowledge

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


_CALIBRATION = "calibration:"


def calibration_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's scaling of confidence."""
    return f"{_CALIBRATION}{workspace}"


_MAX_WORKSPACES = 20
"""Whose lists of tools are kept: they may be long, and are needed now and then only."""


_MAX_HEALTH = 10_000_000
"""Bytes of the rows whose health is kept. Decoded they take about five times as much; a row has
some 2 kB, and 40 kB of a tool of which as much is remembered as there is room for."""


class Memory:
    """Read-side cache over the log store, bounded by counts, and by size where that varies."""

    def __init__(
        self, store: LogStore, *, max_tools: int = 2_000, max_documents: int = 20_000
    ) -> None:
        self._store = store
        self._knowledge: _Lru[ToolKey, ToolKnowledge | None] = _Lru(max_tools)
        self._tools: _Lru[ToolKey, StoredTool | None] = _Lru(max_tools)
        self._registered: _Lru[str, list[StoredTool]] = _Lru(_MAX_WORKSPACES)
        self._registries: _Lru[str, Registry] = _Lru(_MAX_WORKSPACES)
        self._statistics: _Lru[ToolKey, ToolStatistics | None] = _Lru(max_tools)
        self._health: _Lru[ToolKey, KnownHealth | None] = _Lru(max_tools, _MAX_HEALTH)
        self._axis_clusters: _Lru[str, AxisClusters] = _Lru(_MAX_WORKSPACES)
        self._documents: _Lru[tuple[str, str], Document] = _Lru(max_documents)
        self._calibrations: _Lru[str, Calibration] = _Lru(max_tools)
        self._heads: _Lru[str, CategoryHead | None] = _Lru(_MAX_WORKSPACES)

    async def knowledge(self, tool: ToolKey) -> ToolKnowledge | None:
        """What is known of a tool; not to be changed by the caller."""
        if tool not in self._knowledge:
            generation = self._knowledge.generation
            row = await self._store.get_knowledge(tool)
            value = ToolKnowledge.model_validate_json(row.data) if row else None
            self._knowledge.put(tool, value, generation)
            return value
        return self._knowledge[tool]

    async def statistics(self, tools: Sequence[ToolKey]) -> dict[ToolKey, ToolStatistics]:
        """How those of the tools fared of which something is known; not to be changed."""
        found = {each: self._statistics[each] for each in tools if each in self._statistics}
        missing = [each for each in dict.fromkeys(tools) if each not in found]
        if missing:
            generation = self._statistics.generation
            rows = await self._store.get_statistics(missing)
            read = {row.tool: ToolStatistics.model_validate_json(row.data) for row in rows}
            for each in missing:
                found[each] = read.get(each)
                self._statistics.put(each, found[each], generation)
        return {each: known for each in tools if (known := found[each]) is not None}

    async def health(self, tools: Sequence[ToolKey]) -> dict[ToolKey, KnownHealth]:
        """The health of those of the tools of which any is known; not to be changed.

        That of many tools is large: ask for those that are needed at a time.
        """
        found = {each: self._health[each] for each in tools if each in self._health}
        missing = [each for each in dict.fromkeys(tools) if each not in found]
        if missing:
            generation = self._health.generation
            rows = await self._store.get_health(missing)
            # In a thread, for it may be many; one is read sooner than a thread is there.
            read = await asyncio.to_thread(_decoded, rows) if len(rows) > 1 else _decoded(rows)
            sizes = {row.tool: len(row.data) for row in rows}
            for each in missing:
                found[each] = read.get(each)
                self._health.put(each, found[each], generation, sizes.get(each, 0))
        return {each: known for each in tools if (known := found[each]) is not None}

    async def axis_book(self, workspace: str) -> AxisBook:
        """All boundary axes of a workspace; read anew each time, for it is asked for rarely."""
        rows = await self._store.get_health([workspace_wide(workspace)])
        return AxisBook.model_validate_json(rows[0].data) if rows else AxisBook()

    async def axis_clusters(self, workspace: str) -> AxisClusters:
        """The clusters of a workspace's axes, as the latest clustering left them."""
        if workspace not in self._axis_clusters:
            generation = self._axis_clusters.generation
            fact = await self._store.get_fact(axes_fact(workspace))
            value = AxisClusters.model_validate_json(fact) if fact else AxisClusters()
            self._axis_clusters.put(workspace, value, generation)
            return value
        return self._axis_clusters[workspace]

    async def tool(self, tool: ToolKey) -> StoredTool | None:
        """The registered tool that executions name so."""
        if tool not in self._tools:
            generation = self._tools.generation
            value = await self._store.find_tool(tool)
            self._tools.put(tool, value, generation)
            return value
        return self._tools[tool]

    async def tools(self, workspace: str) -> list[StoredTool]:
        """All registered tools of a workspace, by id; not to be changed by the caller."""
        if workspace not in self._registered:
            generation = self._registered.generation
            value = await self._store.list_tools(workspace)
            self._registered.put(workspace, value, generation)
            return value
        return self._registered[workspace]

    async def registry(self, workspace: str) -> Registry:
        """All tools and promotions of a workspace."""
        if workspace not in self._registries:
            generation = self._registries.generation
            tools = await self.tools(workspace)
            value = Registry(tools, await self._store.list_promotions(workspace))
            self._registries.put(workspace, value, generation)
            return value
        return self._registries[workspace]

    async def calibration(self, workspace: str) -> Calibration:
        """How the workspace's confidence is calibrated: as shipped until it has its own."""
        if workspace not in self._calibrations:
            generation = self._calibrations.generation
            fact = await self._store.get_fact(calibration_fact(workspace))
            scaling = Scaling.model_validate_json(fact) if fact else Scaling()
            value = shipped().model_copy(update={"scaling": scaling})
            self._calibrations.put(workspace, value, generation)
            return value
        return self._calibrations[workspace]

    async def category_head(self, workspace: str, embedder: str) -> CategoryHead | None:
        """What tells the kind of a message that no grammar knows: its own, else the shipped one.

        None when there is none for the vectors of this embedder.
        """
        if workspace not in self._heads:
            generation = self._heads.generation
            fact = await self._store.get_fact(classifier_fact(workspace))
            own = await asyncio.to_thread(_own_head, fact) if fact else None
            self._heads.put(workspace, own, generation)
        else:
            own = self._heads[workspace]
        return own if own is not None and own.embedder == embedder else CategoryHead.load(embedder)

    async def documents(self, workspace: str, ids: Sequence[str]) -> dict[str, Document]:
        """Those of the documents that exist, by id."""
        missing = [each for each in ids if (workspace, each) not in self._documents]
        if missing:
            generation = self._documents.generation
            for row in await self._store.get_documents(workspace, missing):
                document = Document.model_validate_json(row.data)
                self._documents.put((workspace, row.document_id), document, generation)
        found = {each: self._documents.get((workspace, each)) for each in ids}
        return {each: document for each, document in found.items() if document}

    def forget_calibration(self, workspace: str) -> None:
        """The workspace's scaling has changed."""
        self._calibrations.forget(workspace)

    def forget_category_head(self, workspace: str) -> None:
        """The workspace's head was fitted anew."""
        self._heads.forget(workspace)

    def tool_changed(self, before: StoredTool | None, after: StoredTool | None) -> None:
        """A tool was put or deleted; told in the order of the changes, as soon as each is durable.

        Args:
            before: what was registered under the id, if anything.
            after: what is now; None when it was deleted.
        """
        for changed in (before, after):  # the id may have stood for another name until now
            if changed is not None:
                self._tools.forget(changed.tool_key)
        changed = after or before
        if changed is not None:
            tool_id, workspace = changed.tool.tool_id, changed.workspace
            self._registered.change(workspace, lambda tools: with_change(tools, tool_id, after))
            self._registries.forget(workspace)

    def forget_tool(self, tool: ToolKey) -> None:
        """The registered tool has changed, or may have."""
        self._tools.forget(tool)
        self._registered.forget(tool.workspace)
        self._registries.forget(tool.workspace)

    def forget_promotions(self, workspace: str) -> None:
        """What is promoted in the workspace has changed."""
        self._registries.forget(workspace)

    def forget_knowledge(self, tools: Sequence[ToolKey]) -> None:
        """What is known of these tools has changed."""
        for tool in tools:
            self._knowledge.forget(tool)

    def forget_statistics(self, tools: Sequence[ToolKey]) -> None:
        """How these tools fared has changed."""
        for tool in tools:
            self._statistics.forget(tool)

    def forget_health(self, tools: Sequence[ToolKey]) -> None:
        """The health of these tools has changed."""
        for tool in tools:
            self._health.forget(tool)

    def forget_axis_clusters(self, workspace: str) -> None:
        """The workspace's axes were clustered anew."""
        self._axis_clusters.forget(workspace)

    def forget_documents(self, documents: Sequence[tuple[str, str]]) -> None:
        """These documents (workspace, id) have changed."""
        for document in documents:
            self._documents.forget(document)

    def forget(self, change: Change) -> None:
        """Another process changed something, or may have."""
        workspace = change.workspace
        if change.everything:
            self._forget_workspace(workspace)
        self.forget_knowledge(change.learned)
        self.forget_statistics(change.learned)
        self.forget_health(change.learned)
        self.forget_documents([(workspace, each) for each in change.documents])
        if change.registry or change.everything:
            self._tools.forget_where(lambda tool: tool.workspace == workspace)
            self._registered.forget(workspace)
            self._registries.forget(workspace)
        for fact in change.facts:
            self._calibrations.forget(fact.removeprefix(_CALIBRATION))
            self._axis_clusters.forget(fact.removeprefix(axes_fact("")))
            self._heads.forget(fact.removeprefix(classifier_fact("")))

    def forget_all(self) -> None:
        """What was learned is another one's: nothing that is kept holds any more."""
        for kept in (
            self._knowledge, self._tools, self._registered, self._registries, self._statistics,
            self._health, self._axis_clusters, self._documents, self._calibrations, self._heads,
        ):  # fmt: skip
            kept.clear()

    def _forget_workspace(self, workspace: str) -> None:
        for tools in (self._knowledge, self._statistics, self._health):
            tools.forget_where(lambda tool: tool.workspace == workspace)
        self._documents.forget_where(lambda document: document[0] == workspace)
        self._calibrations.forget(workspace)
        self._axis_clusters.forget(workspace)
        self._heads.forget(workspace)


def with_change(
    tools: Sequence[StoredTool], tool_id: str, after: StoredTool | None
) -> list[StoredTool]:
    """Tools by id, with the one of that id replaced, added, or gone when `after` is None."""
    changed = list(tools)
    place = bisect_left(changed, tool_id, key=lambda each: each.tool.tool_id)
    is_there = place < len(changed) and changed[place].tool.tool_id == tool_id
    changed[place : place + is_there] = [] if after is None else [after]
    return changed


def _own_head(fact: str) -> CategoryHead | None:
    head = OwnHead.model_validate_json(fact).head
    return None if head is None else CategoryHead.of_json(head)


def _decoded(rows: Sequence[HealthRow]) -> dict[ToolKey, KnownHealth]:
    """In between whoever waits for the interpreter gets it."""
    read: dict[ToolKey, KnownHealth] = {}
    for row in rows:
        time.sleep(0)
        read[row.tool] = KnownHealth.model_validate_json(row.data)
    return read


class _Kept(NamedTuple, Generic[V]):
    value: V
    size: int


class _Lru(Generic[K, V]):
    """A bounded map; `generation` keeps a slow read from putting back what was just changed.

    Args:
        capacity: entries that are kept, the most recent.
        max_size: of all entries together, in the unit of `put`; None for any.
    """

    def __init__(self, capacity: int, max_size: int | None = None) -> None:
        self._items: OrderedDict[K, _Kept[V]] = OrderedDict()
        self._capacity = capacity
        self._max_size = max_size
        self._size = 0
        self.generation = 0

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def __getitem__(self, key: K) -> V:
        self._items.move_to_end(key)
        return self._items[key].value

    def get(self, key: K) -> V | None:
        return self[key] if key in self._items else None

    def put(self, key: K, value: V, generation: int, size: int = 0) -> None:
        if generation != self.generation:
            return
        self._drop(key)
        self._items[key] = _Kept(value, size)
        self._size += size
        while len(self._items) > self._capacity or (
            self._max_size is not None and self._size > self._max_size
        ):
            self._drop(next(iter(self._items)))

    def change(self, key: K, changed: Callable[[V], V]) -> None:
        """Replace what is kept by what is made of it; a read that is under way is not kept."""
        self.generation += 1
        if key in self._items:
            kept = self._items[key]
            self._items[key] = kept._replace(value=changed(kept.value))

    def forget(self, key: K) -> None:
        self.generation += 1
        self._drop(key)

    def forget_where(self, is_meant: Callable[[K], bool]) -> None:
        self.generation += 1
        for key in [key for key in self._items if is_meant(key)]:
            self._drop(key)

    def clear(self) -> None:
        self.forget_where(lambda _: True)

    def _drop(self, key: K) -> None:
        dropped = self._items.pop(key, None)
        if dropped is not None:
            self._size -= dropped.size
