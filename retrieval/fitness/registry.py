"""Registry: all tools and promotions of a workspace at one moment, found by any of their names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from rapidfuzz import fuzz, process, utils

from aftercall.models import Namespace, Promotion, Tool, ToolSource
from aftercall.promotions_file import promoted_tool
from aftercall.versions import same_version
from mongo.records import StoredPromotion, StoredTool, ToolKey
from retrieval.fitness.statistics import NO_VERSION
from retrieval.knowledge.documents import document_id

_LEAST_NEARNESS = 60.0
"""Of 100: below it two names have little in common but their length."""


class Registry:
    """The tools and promotions of one workspace. Read only; a change makes a new registry.

    Building it copies no tool; indexes that a question does not need are not built for it.

    Args:
        tools: all registered tools, in any order.
        promotions: all that hold.
    """

    def __init__(
        self, tools: Iterable[StoredTool], promotions: Iterable[StoredPromotion] = ()
    ) -> None:
        self.by_id: Mapping[str, StoredTool] = {each.tool.tool_id: each for each in tools}
        self.promotions: Mapping[str, StoredPromotion] = {
            each.namespace: each for each in promotions
        }

    @cached_property
    def _by_namespace(self) -> dict[str, list[StoredTool]]:
        found: dict[str, list[StoredTool]] = {}
        for each in self.by_id.values():
            if each.tool.namespace is not None:
                found.setdefault(each.tool.namespace, []).append(each)
        for tool_id, each in self.by_id.items():
            if each.tool.namespace != tool_id:
                found.setdefault(tool_id, []).append(each)
        for members in found.values():
            members.sort(key=lambda each: each.tool.tool_id)
        return found

    def in_namespace(self, namespace: str) -> Sequence[StoredTool]:
        """Tools that name the namespace, and the one whose id it is; by id, empty when unknown."""
        return self._by_namespace.get(namespace, ())

    def descendants(self, tool_id: str) -> Iterator[StoredTool]:
        """Tools that evolved from this one, directly first; each once, also in a circle."""
        seen, level = {tool_id}, [tool_id]
        while level:
            children = [child for each in level for child in self._children.get(each, ())]
            level = []
            for child in children:
                if child.tool.tool_id not in seen:
                    seen.add(child.tool.tool_id)
                    level.append(child.tool.tool_id)
                    yield child

    @cached_property
    def _children(self) -> dict[str, list[StoredTool]]:
        found: dict[str, list[StoredTool]] = {}
        for _, each in sorted(self.by_id.items()):
            if each.tool.evolved_from is not None:
                found.setdefault(each.tool.evolved_from, []).append(each)
        return found

    def namespaces(self) -> list[Namespace]:
        """All namespaces that tools name, and all that are promoted, by name.

        A tool that names a namespace serves that one; its id is a namespace too (seed 002: the tool
        id is the capability), which is listed when it names none, or when somebody else serves it.
        """
        names = {
            name
            for name, members in self._by_namespace.items()
            if len(members) > 1
            or members[0].tool.namespace in (None, name)
            or name in self.promotions
        }
        return [
            Namespace(
                namespace=name,
                tool_ids=[each.tool.tool_id for each in self._by_namespace[name]],
                promoted_version=self._promoted_version(name),
            )
            for name in sorted(names)
        ]

    def nearest_names(self, name: str, limit: int = 3) -> list[str]:
        """Namespaces that somebody may have meant by a name that is none, nearest first."""
        return _nearest(name, sorted(self._by_namespace), limit)

    def nearest_tool_ids(self, tool_id: str, limit: int = 3) -> list[str]:
        """Tools that somebody may have meant by an id that is none, nearest first."""
        return _nearest(tool_id, sorted(self.by_id), limit)

    def _promoted_version(self, namespace: str) -> str | None:
        stored = self.promotions.get(namespace)
        return stored.promotion.evolved_version if stored else None


def _nearest(name: str, known: Sequence[str], limit: int) -> list[str]:
    """Known names that are spelt like this one or hold it, case and separators aside."""
    found = process.extract(
        name,
        known,
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit,
        score_cutoff=_LEAST_NEARNESS,
    )
    return [each for each, _, _ in found]


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


_SHOWN = 80
"""Characters of the asker's own name that a message repeats."""


class UnknownNameError(LookupError):
    """There is no namespace or tool of that name. `nearest` are those that were probably meant."""

    def __init__(self, what: str, name: str, nearest: Sequence[str], listed: str) -> None:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
        cure = f"; did you mean {_either(nearest)}?" if nearest else f"; {listed} lists all"
        super().__init__(f"there is no {what} {shown!r}{cure}")
        self.nearest = tuple(nearest)


class UnknownNamespaceError(UnknownNameError):
    """No tool serves the namespace, and nothing is promoted in it."""

    def __init__(self, namespace: str, nearest: Sequence[str]) -> None:
        super().__init__("namespace", namespace, nearest, "GET /namespaces")


class UnknownToolError(UnknownNameError):
    """No tool is registered under the id."""

    def __init__(self, tool_id: str, nearest: Sequence[str]) -> None:
        super().__init__("tool", tool_id, nearest, "GET /tools")


class NoToolFitsError(LookupError):
    """A namespace has tools, and none of them is to be offered for the scenario."""


def _either(names: Sequence[str]) -> str:
    return " or ".join(repr(name[:_SHOWN]) for name in names)


_KNOWN_IDS = 65_536

_by_registry: "WeakKeyDictionary[Registry, Mapping[str, StoredTool]]" = WeakKeyDictionary()


@lru_cache(_KNOWN_IDS)
def tool_document_id(tool: ToolKey, tool_id: str) -> str:
    """The id of a registered tool's document."""
    return document_id(tool.workspace, "tool", tool.server_name, tool.tool_name, tool_id)


def tools_by_document(registry: Registry) -> Mapping[str, StoredTool]:
    """The tools of a workspace by the id of their document; made once for a registry."""
    known = _by_registry.get(registry)
    if known is None:
        known = {
            tool_document_id(each.tool_key, tool_id): each
            for tool_id, each in registry.by_id.items()
        }
        _by_registry[registry] = known
    return known
