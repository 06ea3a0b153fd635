"""Known tools: which are asked about, and what the stores have of them."""

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from rapidfuzz import fuzz, process, utils

from aftercall.redaction import Redactor
from mongo.protocol import LogStore
from mongo.records import StoredTool, ToolKey
from retrieval.boundaries.cohesion import DEFAULT_RULES, CohesionRules
from retrieval.fitness.registry import Registry, UnknownNamespaceError, UnknownToolError
from retrieval.known_tools import (
    ToolFacts,
    ToolRecord,
    facts_of,
    markdown_page,
    prompt_block,
    use_of,
)
from retrieval.memory import Memory

KnownToolsForm = Literal["prompt", "markdown"]

MAX_RECORDED = 500
"""Tools without registration that are told of, the latest used; more fill no prompt."""

MAX_REGISTERED = 2_000
"""Registered tools that are looked at, as many as are kept in memory; the latest put."""

_LEAST_TOKENS = 10
"""Of any tool, in either form: of more tools than fit by this, nothing needs to be read."""

_KEPT_FOR = timedelta(minutes=1)
"""What is told of a tool is kept for so long: it fades over days, and agents ask often."""

_MAX_KEPT = 2_000
"""Tools of which it is kept, as many as in `Memory`."""

_LEAST_NEARNESS = 60.0
"""Of 100, as in `retrieval.fitness.registry`."""

_MOST_NEAR = 3


_AT_A_TIME = 64
"""Tools that are read together: what is remembered of one may take 200 kB in memory, and more."""


class _Kept(NamedTuple):
    """What was told of a tool, and what it was made from, by identity: `Memory` changes nothing.

    The sources are referred to weakly: how many of them stay is for `Memory` to say.
    """

    at: datetime
    sources: "tuple[weakref.ref[object] | None, ...]"
    facts: ToolFacts


class KnownTools:
    """Tells what is known of tools.

    Args:
        store: knows which tools were called.
        memory: knows the tools and what was learned of them.
        redactor: masks secrets in whatever is told.
        public_url: the base of links to the dashboard; None for no links.
        cohesion: when a tool is said to be asked for several jobs.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        redactor: Redactor,
        public_url: str | None = None,
        cohesion: CohesionRules = DEFAULT_RULES,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._memory = memory
        self._redactor = redactor
        self._public_url = public_url
        self._cohesion = cohesion
        self._clock = clock
        self._kept: OrderedDict[ToolKey, _Kept] = OrderedDict()

    async def tell(
        self,
        workspace: str,
        *,
        tools: Sequence[str] = (),
        namespace: str | None = None,
        max_tokens: int = 2_000,
        form: KnownToolsForm = "prompt",
    ) -> str:
        """What is known, the most useful first, in at most `max_tokens` by the estimate.

        Args:
            workspace: whose tools.
            tools: registered ids; else names of recorded tools, with or without their server and a
                slash. Several and a namespace add up; with neither it is all tools.
            namespace: the tools that serve it.
            max_tokens: from 50 on there is room for a block that holds none.
            form: for a prompt, or for a page of documentation.

        Raises:
            UnknownToolError, UnknownNamespaceError: there is none; the nearest names are told.
            StoreError: when the store cannot say.
        """
        registry = await self._memory.registry(workspace)
        if tools or namespace is not None:
            wanted = await self._named(workspace, registry, tools, namespace)
        else:
            wanted = _by_key(_latest_put(registry.by_id.values()))
            for key in await self._recorded(workspace):
                wanted.setdefault(key, None)
        ordered = await self._by_use(list(wanted))
        told = ordered[: max_tokens // _LEAST_TOKENS]
        facts = await self._facts(workspace, registry, {key: wanted[key] for key in told})
        # In a thread, for it is many small steps of work that must not hold up the other callers.
        return await asyncio.to_thread(
            self._render, facts, len(ordered) - len(told), max_tokens, form
        )

    def _render(
        self, facts: Sequence[ToolFacts], further: int, max_tokens: int, form: KnownToolsForm
    ) -> str:
        if form == "markdown":
            return markdown_page(facts, max_tokens, further=further, dashboard_url=self._public_url)
        return prompt_block(facts, max_tokens, further=further)

    async def _recorded(self, workspace: str) -> list[ToolKey]:
        return await self._store.tools_with_health(workspace, MAX_RECORDED)

    async def _named(
        self, workspace: str, registry: Registry, names: Sequence[str], namespace: str | None
    ) -> dict[ToolKey, StoredTool | None]:
        found: list[StoredTool] = []
        if namespace is not None:
            members = registry.in_namespace(namespace)
            if not members:
                raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
            found.extend(members)
        found.extend(registry.by_id[name] for name in names if name in registry.by_id)
        wanted = _by_key(found)
        others = [name for name in names if name not in registry.by_id]
        if others:
            by_key = _by_key(_latest_put(registry.by_id.values()))
            for key in await self._keys_of(workspace, registry, others):
                wanted.setdefault(key, by_key.get(key))
        return wanted

    async def _keys_of(
        self, workspace: str, registry: Registry, names: Sequence[str]
    ) -> list[ToolKey]:
        """Recorded tools of these names; several where servers have tools of one name."""
        recorded = await self._recorded(workspace)
        # One that was used longer ago than the latest some hundreds is found by its exact name.
        possible = list(dict.fromkeys(key for name in names for key in _possible(workspace, name)))
        known = await self._memory.health(possible[:MAX_RECORDED])
        every = list(dict.fromkeys([*recorded, *known]))
        found: list[ToolKey] = []
        for name in names:
            meant = [key for key in every if name in _names_of(key)]
            if not meant:
                raise UnknownToolError(name, _nearest(name, registry, every))
            found.extend(meant)
        return found

    async def _by_use(self, tools: Sequence[ToolKey]) -> list[ToolKey]:
        """The most useful first; of equal ones the latest used, then by their names."""
        now = self._clock()
        ranks: dict[ToolKey, tuple[float, float, str, str]] = {}
        for some in _some_at_a_time(tools):
            health = await self._memory.health(some)
            for key in some:
                known = health.get(key)
                used = known.used_at.timestamp() if known is not None and known.used_at else 0.0
                ranks[key] = (-use_of(known, now), -used, key.server_name or "", key.tool_name)
        return sorted(ranks, key=ranks.__getitem__)

    async def _facts(
        self, workspace: str, registry: Registry, wanted: Mapping[ToolKey, StoredTool | None]
    ) -> list[ToolFacts]:
        clusters = await self._memory.axis_clusters(workspace)
        names = frozenset(each.tool.name for each in registry.by_id.values())
        now = self._clock()
        told = []
        for some in _some_at_a_time(list(wanted)):
            for record in await self._records({key: wanted[key] for key in some}):
                sources = (
                    record.tool, record.knowledge, record.health, record.statistics, clusters,
                    registry,
                )  # fmt: skip
                facts = self._unchanged(record.key, sources, now)
                if facts is None:
                    facts = facts_of(
                        record,
                        clusters=clusters,
                        now=now,
                        clean=self._redactor.text,
                        tool_names=names,
                        rules=self._cohesion,
                    )
                    self._keep(record.key, _Kept(now, tuple(map(_referred, sources)), facts))
                    await asyncio.sleep(0)  # many tools must not keep the other callers waiting
                told.append(facts)
        return told

    async def _records(self, wanted: Mapping[ToolKey, StoredTool | None]) -> list[ToolRecord]:
        keys = list(wanted)
        health = await self._memory.health(keys)
        statistics = await self._memory.statistics(keys)
        knowledge = await asyncio.gather(*(self._memory.knowledge(key) for key in keys))
        return [
            ToolRecord(
                key, stored.tool if stored else None, known, health.get(key), statistics.get(key)
            )
            for (key, stored), known in zip(wanted.items(), knowledge, strict=True)
        ]

    def _unchanged(
        self, key: ToolKey, sources: tuple[object | None, ...], now: datetime
    ) -> ToolFacts | None:
        kept = self._kept.get(key)
        if kept is None or not timedelta() <= now - kept.at < _KEPT_FOR:
            return None
        same = all(
            new is None if old is None else new is not None and old() is new
            for old, new in zip(kept.sources, sources, strict=True)
        )
        return kept.facts if same else None

    def _keep(self, key: ToolKey, kept: _Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)


def _some_at_a_time(tools: Sequence[ToolKey]) -> Iterable[Sequence[ToolKey]]:
    return (tools[start : start + _AT_A_TIME] for start in range(0, len(tools), _AT_A_TIME))


def _referred(source: object | None) -> "weakref.ref[object] | None":
    return None if source is None else weakref.ref(source)


def _latest_put(tools: Iterable[StoredTool]) -> list[StoredTool]:
    latest = sorted(tools, key=lambda each: (each.tool.updated_at, each.tool.tool_id))
    return latest[-MAX_REGISTERED:]


def _by_key(tools: Iterable[StoredTool]) -> dict[ToolKey, StoredTool | None]:
    """By the name that executions have; of several ids that share one, the last."""
    return {each.tool_key: each for each in tools}


def _possible(workspace: str, name: str) -> Iterable[ToolKey]:
    yield ToolKey(workspace, None, name)
    for place, char in enumerate(name):
        if char == "/" and 0 < place < len(name) - 1:
            yield ToolKey(workspace, name[:place], name[place + 1 :])


def _names_of(key: ToolKey) -> tuple[str, ...]:
    if key.server_name is None:
        return (key.tool_name,)
    return key.tool_name, f"{key.server_name}/{key.tool_name}"


def _nearest(name: str, registry: Registry, recorded: Sequence[ToolKey]) -> list[str]:
    """What was probably meant, of ids and recorded names, nearest first."""
    known = dict.fromkeys([*sorted(registry.by_id), *(_names_of(key)[-1] for key in recorded)])
    found = process.extract(
        name,
        list(known),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=_MOST_NEAR,
        score_cutoff=_LEAST_NEARNESS,
    )
    return [each for each, _, _ in found]
