"""Lineage: who serves a namespace: its promoted version, its originals, and all others in it.

A tool may name the one that it evolved from. What is stored may hold a circle all the same (two
puts at once, an import), so every walk here ends when it meets a tool again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from aftercall.models import Promotion, Tool, ToolSource
from aftercall.promoted import promoted_tool
from aftercall.versions import same_version
from mongo.records import StoredPromotion, StoredTool, ToolKey
from retrieval.fitness.registry import Registry
from retrieval.fitness.statistics import NO_VERSION


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that may serve a namespace, and where its record is."""

    workspace: str
    tool: Tool
    source: ToolSource
    versions: tuple[str, ...]
    """Versions whose trials are its own, as calls named them; "" is calls that named none."""
    start: float = 1.0
    """Its quality before its first trial, in [0, 1]: what a promoted version inherited."""
    since: datetime | None = None
    """From when `start` held."""

    @property
    def key(self) -> ToolKey:
        """The tool as executions name it."""
        return ToolKey(self.workspace, self.tool.server_name, self.tool.name)

    def counts(self, version: str) -> bool:
        """Whether trials of a version are its own; `1.2` and `1.2.0` are one version."""
        return any(own == version or same_version(own, version) for own in self.versions)


def candidates_of(registry: Registry, namespace: str) -> list[Candidate]:
    """All tools of a namespace: its promoted version, its originals, then the others, each once.

    Empty for a namespace that no tool serves. The original is the tool whose id is the namespace;
    where there is none, each tool that evolved from no other registered one.
    """
    members = registry.in_namespace(namespace)
    originals = _originals(registry, namespace)
    promoted = _promoted_in(registry, namespace)
    candidates = [] if promoted is None else [promoted[1]]
    candidates += [
        plain_candidate(registry, each, "original")
        for each in originals
        if promoted is None or not _same(each.tool, promoted[1].tool)
    ]
    known = {each.tool.tool_id for each in candidates}
    candidates += [
        plain_candidate(registry, each, "semantic")
        for each in members
        if each.tool.tool_id not in known
    ]
    return candidates


def offered(registry: Registry, stored: StoredTool) -> Candidate:
    """A tool that was found by search, as it is offered: its promoted version where it has one."""
    for namespace in filter(None, (stored.tool.tool_id, stored.tool.namespace)):
        promoted = _promoted_in(registry, namespace)
        if promoted is None:
            continue
        original, candidate = promoted
        if stored.tool.tool_id in (original.tool.tool_id, candidate.tool.tool_id):
            return candidate
    return plain_candidate(registry, stored, "semantic")


def plain_candidate(registry: Registry, stored: StoredTool, source: ToolSource) -> Candidate:
    """A tool as it is registered, as a candidate."""
    versions = _versions(registry, stored)
    return Candidate(stored.workspace, stored.tool, source, versions)


def original_of(registry: Registry, namespace: str) -> StoredTool | None:
    """The tool that a promotion in the namespace stands in for; None where no tool serves it."""
    originals = _originals(registry, namespace)
    if not originals:
        return None
    stored = registry.promotions.get(namespace)
    return originals[0] if stored is None else _promoted_from(originals, stored.promotion)


def find_cycle(tool_id: str, evolved_from: str | None, registry: Registry) -> list[str] | None:
    """The circle that a tool would close by evolving from another; None when it closes none.

    The ids from the tool back to itself, such as `["a", "b", "a"]`. A circle that is stored
    already and that the tool is no part of is none of its making.
    """
    chain = [tool_id]
    for ancestor in _ancestors(registry, evolved_from):
        chain.append(ancestor)
        if ancestor == tool_id:
            return chain
    return None


def _same(one: Tool, other: Tool) -> bool:
    """Whether the promoted version is what is registered: the tool was put anew since then."""
    versions = one.version or NO_VERSION, other.version or NO_VERSION
    return one.tool_id == other.tool_id and same_version(*versions)


def _ancestors(registry: Registry, tool_id: str | None) -> Iterator[str]:
    """The id and what it evolved from, nearest first; each once, also in a circle."""
    seen: set[str] = set()
    while tool_id is not None and tool_id not in seen:
        seen.add(tool_id)
        yield tool_id
        stored = registry.by_id.get(tool_id)
        tool_id = stored.tool.evolved_from if stored else None


def _originals(registry: Registry, namespace: str) -> list[StoredTool]:
    """The originals of a namespace, by id; of tools that evolved in a circle all are."""
    if (named := registry.by_id.get(namespace)) is not None:
        return [named]
    members = list(registry.in_namespace(namespace))
    first = [
        each
        for each in members
        if each.tool.evolved_from in (None, each.tool.tool_id)
        or each.tool.evolved_from not in registry.by_id
    ]
    return first or members


def _promoted_from(originals: list[StoredTool], promotion: Promotion) -> StoredTool:
    """Of several originals the one of the version that the promotion names, else the first."""
    for each in originals:
        if same_version(each.tool.version or NO_VERSION, promotion.original_version):
            return each
    return originals[0]


def _promoted_in(registry: Registry, namespace: str) -> tuple[StoredTool, Candidate] | None:
    """Who is promoted in a namespace, and the original in whose place; None where nobody serves so.

    That is also where there is nothing to run: the promoted tool was deleted, and no file is named.
    The original serves until the tool is back.
    """
    stored = registry.promotions.get(namespace)
    if stored is None:
        return None
    originals = _originals(registry, namespace)
    if not originals:
        return None
    original = _promoted_from(originals, stored.promotion)
    candidate = _promoted(registry, original, stored)
    return None if candidate is None else (original, candidate)


def _promoted(
    registry: Registry, original: StoredTool, stored: StoredPromotion
) -> Candidate | None:
    """The promoted version: a registered tool that evolved from the original, or made from it.

    None where neither can be.
    """
    promotion = stored.promotion
    inherited = stored.inherited_quality, promotion.promoted_at
    for each in registry.descendants(original.tool.tool_id):
        if same_version(each.tool.version or NO_VERSION, promotion.evolved_version):
            tool = each.tool.model_copy(update={"is_evolved": True})
            versions = _versions(registry, each)
            return Candidate(each.workspace, tool, "evolved", versions, *inherited)
    if promotion.evolved_file is None and not same_version(
        original.tool.version or NO_VERSION, promotion.evolved_version
    ):
        return None
    tool, versions = promoted_tool(original.tool, promotion), (promotion.evolved_version,)
    return Candidate(original.workspace, tool, "evolved", versions, *inherited)


def _versions(registry: Registry, stored: StoredTool) -> tuple[str, ...]:
    """Its own version, and calls that named none unless they may have been its ancestor's."""
    own = stored.tool.version or NO_VERSION
    ancestors = _ancestors(registry, stored.tool.evolved_from)
    shared = any(
        (known := registry.by_id.get(each)) is not None
        and known is not stored
        and known.tool_key == stored.tool_key
        for each in ancestors
    )
    return (own,) if shared else tuple(dict.fromkeys((NO_VERSION, own)))
