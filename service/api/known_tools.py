"""Knowledge about tools, as a block for a prompt or a page of documentation."""

import asyncio
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal, TypeAlias

from cachetools import TTLCache
from fastapi import APIRouter, Query, Response
from pydantic import Field

from aftercall.models import LearnedContract, LearnedContracts, LearnedSentence, WireModel
from aftercall.models.base import Name
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.known_tools.facts import ToolFacts, facts_of, use_of
from retrieval.answers.known_tools.pages import markdown_page, prompt_block
from retrieval.knowledge.rows.registry import Registry, UnknownNameError, UnknownNamespaceError
from retrieval.knowledge.tool.record import ToolRecord
from service.api.tools import find_called_tools
from service.context import Context, Space
from service.requests import Suggest

router = APIRouter(tags=["known tools"])
_NO_NAMES: list[Name] = []
_MEDIA_TYPES = {"prompt": "text/plain", "markdown": "text/markdown"}
MAX_RECORDED = 500
"""Tools without registration in an answer, the latest used; more fill no prompt."""
MAX_REGISTERED = 2_000
"""Registered tools that are looked at, as many as are kept in memory; the latest put."""
_LEAST_TOKENS = 10
"""Fewest tokens of any tool, in either form: tools that cannot fit need not be read."""
_AT_A_TIME = 64
"""Tools that are read together: what is known of one may take 200 kB in memory, and more."""
_Kept: TypeAlias = tuple[list["weakref.ref[object] | None"], ToolFacts]


class _Facts(TTLCache[ToolKey, _Kept]):
    """The facts of each tool with their source objects; `Memory` replaces objects that change.

    Facts fade over days and agents ask often, so they are kept for a minute.
    """

    def __init__(self) -> None:
        super().__init__(maxsize=2_000, ttl=60)


class KnownToolsQuery(WireModel):
    """The tools that are wanted, and the form of the text."""

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


@router.get(
    "/known-tools",
    summary="What is known of tools, for a prompt or for documentation",
    response_class=Response,
)
async def read_known_tools(space: Suggest, query: Annotated[KnownToolsQuery, Query()]) -> Response:
    """Return signatures, success rates, refusals, common mistakes and their repairs as a text.

    Within `maxTokens` the most useful comes first: every tool's signature as long as it fits, then
    what saves the most failed calls. All words of tools and users are escaped data.
    """
    text = await write_known_tools(space, query)
    return Response(text, headers={"content-type": f"{_MEDIA_TYPES[query.format]}; charset=utf-8"})


async def write_known_tools(space: Space, query: KnownToolsQuery) -> str:
    """Return the text about the named tools, else about all, in at most `max_tokens`."""
    context, workspace = space
    registry = await context.memory.read_registry(workspace)
    if query.tool or query.namespace is not None:
        wanted = await _find_named(space, registry, query)
    else:
        put = sorted(registry.by_id.values(), key=lambda e: (e.tool.updated_at, e.tool.tool_id))
        wanted = _index_by_key(put[-MAX_REGISTERED:])
        for key in await context.memory.list_called(workspace, MAX_RECORDED):
            wanted.setdefault(key, None)
    ordered = await _sort_by_use(context, list(wanted))
    first = ordered[: query.max_tokens // _LEAST_TOKENS]
    facts = await _gather_facts(space, registry, {key: wanted[key] for key in first})

    def render_text() -> str:
        write = prompt_block if query.format == "prompt" else markdown_page
        return write(
            facts,
            query.max_tokens,
            further=len(ordered) - len(first),
            dashboard_url=context.settings.server.public_url,
        )

    # A thread renders it, so that other callers do not wait.
    return await asyncio.to_thread(render_text)


@router.get("/known-tools/contracts", summary="What calls of tools keep getting wrong")
async def read_contracts(
    space: Suggest, tool: Annotated[list[Name], Query(max_length=100)] = _NO_NAMES
) -> LearnedContracts:
    """Return a sentence for each frequent mistake that is repaired in one way, most frequent first.

    `tool` is a registered id, else a recorded toolName or serverName/toolName; repeatable. Unknown
    ones are left out. The sentences are data: names and values in them are those of calls.
    """
    context, workspace = space
    registry = await context.memory.read_registry(workspace)
    wanted: dict[ToolKey, StoredTool | None] = {}
    for name in tool:
        with suppress(UnknownNameError):  # a tool that was never called
            query = KnownToolsQuery(tool=[name])
            wanted |= await _find_named(space, registry, query)
    contracts = [
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
        for each in await _gather_facts(space, registry, wanted)
        if each.lessons
    ]
    return LearnedContracts(contracts=contracts)


async def _find_named(
    space: Space, registry: Registry, query: KnownToolsQuery
) -> dict[ToolKey, StoredTool | None]:
    names, found = query.tool, list[StoredTool]()
    if query.namespace is not None:
        if not (members := registry.in_namespace(query.namespace)):
            raise UnknownNamespaceError(query.namespace, registry.nearest_names(query.namespace))
        found.extend(members)
    found.extend(registry.by_id[name] for name in names if name in registry.by_id)
    wanted = _index_by_key(found)
    for name in names:
        if name not in registry.by_id:
            for key in await find_called_tools(space, name):
                wanted.setdefault(key, registry.find_named(key))
    return wanted


async def _sort_by_use(context: Context, tools: Sequence[ToolKey]) -> list[ToolKey]:
    now = context.clock()
    ranks: dict[ToolKey, tuple[float, float, str, str]] = {}
    for some in _split_tools(tools):
        health = await context.memory.read_health(some)
        for key in some:
            known = health.get(key)
            used = known.used_at.timestamp() if known is not None and known.used_at else 0.0
            ranks[key] = (-use_of(known, now), -used, key.server_name or "", key.tool_name)
    return sorted(ranks, key=ranks.__getitem__)


async def _gather_facts(
    space: Space, registry: Registry, wanted: Mapping[ToolKey, StoredTool | None]
) -> list[ToolFacts]:
    context, workspace = space
    clusters = await context.memory.axis_clusters(workspace)
    names = frozenset(each.tool.name for each in registry.by_id.values())
    now, memory = context.clock(), context.memory
    found = []
    for some in _split_tools(list(wanted)):
        health = await memory.read_health(some)
        knowledge = await asyncio.gather(*(memory.read_knowledge(key) for key in some))
        for key, known in zip(some, knowledge, strict=True):
            stored = wanted[key]
            record = ToolRecord(key, stored.tool if stored else None, known, health.get(key))
            sources: tuple[object | None, ...] = (
                record.tool, record.knowledge, record.health, clusters, registry,
            )  # fmt: skip
            if (facts := _find_unchanged(context, record.key, sources)) is None:
                facts = facts_of(
                    record,
                    clusters=clusters,
                    now=now,
                    clean=context.redactor.text,
                    tool_names=names,
                    rules=context.cohesion,
                )
                context.caches.get_cache(_Facts)[record.key] = (
                    [None if each is None else weakref.ref(each) for each in sources],
                    facts,
                )
                await asyncio.sleep(0)  # many tools must not keep the other callers waiting
            found.append(facts)
    return found


def _find_unchanged(
    context: Context, key: ToolKey, sources: Sequence[object | None]
) -> ToolFacts | None:
    """Return the kept facts of a tool, if they were made from these very objects."""
    entry = context.caches.get_cache(_Facts).get(key)  # one look: it may expire between two
    if entry is None:
        return None
    kept, facts = entry
    same = (
        new is None if old is None else new is not None and old() is new
        for old, new in zip(kept, sources, strict=True)
    )
    return facts if all(same) else None


def _split_tools(tools: Sequence[ToolKey]) -> Iterable[Sequence[ToolKey]]:
    return (tools[start : start + _AT_A_TIME] for start in range(0, len(tools), _AT_A_TIME))


def _index_by_key(tools: Iterable[StoredTool]) -> dict[ToolKey, StoredTool | None]:
    """Return tools by the name in executions; of several ids with one name, the last."""
    return {each.tool_key: each for each in tools}
