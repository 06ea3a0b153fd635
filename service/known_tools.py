"""Known tools: which are asked about, and what the stores have of them, as a text."""

import asyncio
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import Field

from aftercall.models import LearnedContract, LearnedSentence, WireModel
from aftercall.models.base import Name
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.known_tools.facts import ToolFacts, facts_of, use_of
from retrieval.answers.known_tools.pages import markdown_page, prompt_block
from retrieval.knowledge.rows.registry import Registry, UnknownNameError, UnknownNamespaceError
from retrieval.knowledge.tool.record import ToolRecord
from service.context import Context
from service.tools import tools_called

MAX_RECORDED = 500
"""Tools without registration in an answer, the latest used; more fill no prompt."""
MAX_REGISTERED = 2_000
"""Registered tools that are looked at, as many as are kept in memory; the latest put."""
_LEAST_TOKENS = 10
"""Of any tool, in either form: of more tools than fit by this, nothing needs to be read."""
_AT_A_TIME = 64
"""Tools that are read together: what is known of one may take 200 kB in memory, and more."""


class KnownToolsQuery(WireModel):
    """Which tools are asked about, and in which form."""

    tool: list[Name] = Field(
        default_factory=list,
        max_length=100,
        description="A registered id, else a recorded toolName or serverName/toolName; repeatable. "
        "Without tool and namespace it is all tools.",
    )
    namespace: Name | None = Field(default=None, description="Also the tools that serve it.")
    max_tokens: int = Field(
        default=2_000,
        ge=50,
        le=100_000,
        description="Tokens of the answer at most, by an estimate that is an upper bound.",
    )
    format: Literal["prompt", "markdown"] = Field(
        default="prompt", description="A `<known_tools>` block, or Markdown for documentation."
    )


async def known_tools(context: Context, workspace: str, query: KnownToolsQuery) -> str:
    """Return what is known, most useful first, in at most `max_tokens`.

    Of all tools, or of the named.
    """
    registry = await context.memory.read_registry(workspace)
    if query.tool or query.namespace is not None:
        wanted = await _named(context, workspace, registry, query)
    else:
        put = sorted(registry.by_id.values(), key=lambda e: (e.tool.updated_at, e.tool.tool_id))
        wanted = _by_key(put[-MAX_REGISTERED:])
        for key in await context.memory.list_called(workspace, MAX_RECORDED):
            wanted.setdefault(key, None)
    ordered = await _by_use(context, list(wanted))
    first = ordered[: query.max_tokens // _LEAST_TOKENS]
    facts = await _facts(context, workspace, registry, {key: wanted[key] for key in first})

    def render() -> str:
        write = prompt_block if query.format == "prompt" else markdown_page
        return write(
            facts,
            query.max_tokens,
            further=len(ordered) - len(first),
            dashboard_url=context.settings.server.public_url,
        )

    # In a thread, for it is many small steps of work that must not hold up the other callers.
    return await asyncio.to_thread(render)


async def learned_contracts(
    context: Context, workspace: str, names: Sequence[str]
) -> list[LearnedContract]:
    """Return what calls of tools keep getting wrong; `names` as those of `KnownToolsQuery`.

    Tools that are unknown, and those of which nothing is known to go wrong, are left out.
    """
    registry = await context.memory.read_registry(workspace)
    wanted: dict[ToolKey, StoredTool | None] = {}
    for name in names:
        with suppress(UnknownNameError):  # a tool that was never called
            query = KnownToolsQuery(tool=[name])
            wanted |= await _named(context, workspace, registry, query)
    return [
        LearnedContract(
            tool_name=each.key.tool_name,
            server_name=each.key.server_name,
            sentences=[
                LearnedSentence(
                    text=lesson.text,
                    failures=lesson.failures,
                    confidence=lesson.confidence,
                    alone=lesson.alone,
                )
                for lesson in each.lessons
            ],
        )
        for each in await _facts(context, workspace, registry, wanted)
        if each.lessons
    ]


async def _named(
    context: Context, workspace: str, registry: Registry, query: KnownToolsQuery
) -> dict[ToolKey, StoredTool | None]:
    names, found = query.tool, list[StoredTool]()
    if query.namespace is not None:
        if not (members := registry.in_namespace(query.namespace)):
            raise UnknownNamespaceError(query.namespace, registry.nearest_names(query.namespace))
        found.extend(members)
    found.extend(registry.by_id[name] for name in names if name in registry.by_id)
    wanted = _by_key(found)
    for name in names:
        if name not in registry.by_id:
            for key in await tools_called(context, workspace, name):
                wanted.setdefault(key, registry.find_named(key))
    return wanted


async def _by_use(context: Context, tools: Sequence[ToolKey]) -> list[ToolKey]:
    now = context.clock()
    ranks: dict[ToolKey, tuple[float, float, str, str]] = {}
    for some in _some_at_a_time(tools):
        health = await context.memory.read_health(some)
        for key in some:
            known = health.get(key)
            used = known.used_at.timestamp() if known is not None and known.used_at else 0.0
            ranks[key] = (-use_of(known, now), -used, key.server_name or "", key.tool_name)
    return sorted(ranks, key=ranks.__getitem__)


async def _facts(
    context: Context,
    workspace: str,
    registry: Registry,
    wanted: Mapping[ToolKey, StoredTool | None],
) -> list[ToolFacts]:
    clusters = await context.memory.axis_clusters(workspace)
    names = frozenset(each.tool.name for each in registry.by_id.values())
    now, memory = context.clock(), context.memory
    found = []
    for some in _some_at_a_time(list(wanted)):
        health = await memory.read_health(some)
        knowledge = await asyncio.gather(*(memory.read_knowledge(key) for key in some))
        for key, known in zip(some, knowledge, strict=True):
            stored = wanted[key]
            record = ToolRecord(key, stored.tool if stored else None, known, health.get(key))
            sources: tuple[object | None, ...] = (
                record.tool, record.knowledge, record.health, clusters, registry,
            )  # fmt: skip
            if (facts := _unchanged(context, record.key, sources)) is None:
                facts = facts_of(
                    record,
                    clusters=clusters,
                    now=now,
                    clean=context.redactor.text,
                    tool_names=names,
                    rules=context.cohesion,
                )
                context.tool_facts[record.key] = (
                    [None if each is None else weakref.ref(each) for each in sources],
                    facts,
                )
                await asyncio.sleep(0)  # many tools must not keep the other callers waiting
            found.append(facts)
    return found


def _unchanged(
    context: Context, key: ToolKey, sources: Sequence[object | None]
) -> ToolFacts | None:
    """Return what was made of a tool lately, if it was made from these very objects."""
    entry = context.tool_facts.get(key)  # one look: it may expire between two
    if entry is None:
        return None
    kept, facts = entry
    same = (
        new is None if old is None else new is not None and old() is new
        for old, new in zip(kept, sources, strict=True)
    )
    return facts if all(same) else None


def _some_at_a_time(tools: Sequence[ToolKey]) -> Iterable[Sequence[ToolKey]]:
    return (tools[start : start + _AT_A_TIME] for start in range(0, len(tools), _AT_A_TIME))


def _by_key(tools: Iterable[StoredTool]) -> dict[ToolKey, StoredTool | None]:
    """By the name that executions have; of several ids that share one, the last."""
    return {each.tool_key: each for each in tools}
