"""The registry: all tools and promotions of a workspace at one moment, by any of their names.

Also who serves a namespace: its promoted version, its originals, and all others in it. A tool may
name the one that it evolved from. Anything that is stored may hold a circle all the same (two puts
at once, an import), so every walk here ends when it meets a tool again.

Registering a tool is optional, so a tool is found by its registered id, and by the name under which
its calls are recorded: `toolName` or `serverName/toolName`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

from rapidfuzz import fuzz, process, utils

from aftercall.models import Namespace, Promotion, Tool, ToolName, ToolSource
from aftercall.models.tools import same_version
from aftercall.promotions_file import promoted_tool
from aftercall.redaction import Redactor
from aftercall.tables import gather_values
from mongo.contents import StoredPromotion, StoredTool
from mongo.records import ToolKey
from retrieval.knowledge.rows.documents import document_id
from retrieval.knowledge.rows.statistics import NO_VERSION

MAX_KNOWN = 5_000
"""Tools of a workspace that a name is looked for among; the latest used."""
_LEAST_NEARNESS = 60.0
"""Of 100: below it two names have little in common but their length."""
_SHOWN = 80
"""Characters of the asker's own name that a message repeats."""


class UnknownNameError(LookupError):
    """There is nothing of that name. `nearest` are those that were probably meant."""

    def __init__(
        self, name: str, nearest: Sequence[str] = (), what: str = "tool", listed: str = "GET /tools"
    ) -> None:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
        meant = " or ".join(repr(each[:_SHOWN]) for each in nearest)
        cure = f"; did you mean {meant}?" if nearest else f"; {listed} lists all"
        super().__init__(f"there is no {what} {shown!r}{cure}")
        self.nearest = tuple(nearest)


class UnknownNamespaceError(UnknownNameError):
    """No tool serves the namespace, and nothing is promoted in it."""

    def __init__(self, namespace: str, nearest: Sequence[str]) -> None:
        super().__init__(namespace, nearest, "namespace", "GET /namespaces")


class UnknownToolError(UnknownNameError):
    """No tool is registered under the id."""


class NoToolFitsError(LookupError):
    """A namespace has tools, and none of them is to be offered for the scenario."""


class Registry:
    """The tools and promotions of one workspace. Read only; a change makes a new registry."""

    def __init__(
        self,
        tools: Iterable[StoredTool],
        promotions: Iterable[StoredPromotion] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self.is_whole = is_whole
        """Whether it has all tools of its workspace."""
        self.by_id: Mapping[str, StoredTool] = {each.tool.tool_id: each for each in tools}
        self.promotions: Mapping[str, StoredPromotion] = {
            each.namespace: each for each in promotions
        }
        self.promoted: dict[str, tuple[StoredTool, ToolCandidate] | None] = {}
        """By namespace, as far as it was asked for: the original, and what is in its place."""
        self._shown: dict[int, tuple[Tool, Tool]] = {}

    def show_tool(self, tool: Tool, redactor: Redactor) -> Tool:
        """Return a tool of this registry without secrets, looked through once."""
        if id(tool) not in self._shown:
            masked = redactor.tool(tool)
            self._shown[id(tool)] = tool, tool if masked == tool else masked
        return self._shown[id(tool)][1]

    @cached_property
    def by_document(self) -> Mapping[str, StoredTool]:
        """Tools by the id of their document in the vector index."""
        return {tool_document_id(each.tool_key, id_): each for id_, each in self.by_id.items()}

    def in_namespace(self, namespace: str) -> Sequence[StoredTool]:
        """Tools that name the namespace, and the one whose id it is; by id, empty when unknown."""
        return self._by_namespace.get(namespace, ())

    def list_descendants(self, tool_id: str) -> Iterator[StoredTool]:
        """Tools that evolved from this one, directly first; each once, also in a circle."""
        seen = {tool_id}
        level = [tool_id]
        while level:
            children = [child for each in level for child in self._children.get(each, ())]
            level = []
            for child in children:
                if child.tool.tool_id not in seen:
                    seen.add(child.tool.tool_id)
                    level.append(child.tool.tool_id)
                    yield child

    def list_ancestors(self, tool_id: str | None) -> Iterator[str]:
        """Yield the id and what it evolved from, nearest first; each once, also in a circle."""
        seen: set[str] = set()
        while tool_id is not None and tool_id not in seen:
            seen.add(tool_id)
            yield tool_id
            stored = self.by_id.get(tool_id)
            tool_id = stored.tool.evolved_from if stored else None

    def list_namespaces(self) -> list[Namespace]:
        """Return all namespaces that tools name, and all that are promoted, by name.

        A tool that names a namespace serves that one; its id is a namespace too (seed 002: the tool
        id is the capability), which is listed when it names none, or when someone else serves it.
        """
        listed = []
        for name, members in sorted(self._by_namespace.items()):
            promoted = self.promotions.get(name)
            is_own = members[0].tool.namespace in (None, name)
            if promoted is None and len(members) == 1 and not is_own:
                continue
            ids = [each.tool.tool_id for each in members]
            version = promoted.promotion.evolved_version if promoted else None
            listed.append(Namespace(namespace=name, tool_ids=ids, promoted_version=version))
        return listed

    def nearest_names(self, name: str) -> list[str]:
        """Namespaces that an unknown name may have meant, nearest first."""
        return names_like(name, self._by_namespace)

    @cached_property
    def _by_name(self) -> dict[tuple[ToolKey, str | None], StoredTool]:
        # Tools that were imported have one position.
        in_order = sorted(self.by_id.values(), key=lambda t: (t.position, t.tool.updated_at))
        found: dict[tuple[ToolKey, str | None], StoredTool] = {}
        for each in in_order:
            found |= dict.fromkeys(((each.tool_key, by) for by in each.principals), each)
            # Another key's registration of the same name takes nothing from the first one's.
            first = found.setdefault((each.tool_key, None), each)
            if not each.principals or not set(each.principals).isdisjoint(first.principals):
                found[each.tool_key, None] = each
        return found

    @cached_property
    def shared_names(self) -> frozenset[ToolKey]:
        """Tools that share their name with a tool of another server."""
        keys = {each.tool_key for each in self.by_id.values()}
        often = Counter(each.tool_name for each in keys)
        return frozenset(each for each in keys if often[each.tool_name] > 1)

    def find_named(self, tool: ToolKey, principal: str | None = None) -> StoredTool | None:
        """Return the tool that executions name so.

        The principal's own, else of who named it first.
        """
        return self._by_name.get((tool, principal)) or self._by_name.get((tool, None))

    def tool_name(self, tool: ToolKey) -> ToolName:
        """Return the names of a tool: those of its calls, and its id where it is registered."""
        stored = self.find_named(tool)
        return name_tool(tool, stored.tool.tool_id if stored else None)

    @cached_property
    def _by_namespace(self) -> dict[str, list[StoredTool]]:
        members: dict[str, list[StoredTool]] = {}
        for tool_id, each in sorted(self.by_id.items()):
            for name in {tool_id, each.tool.namespace or tool_id}:
                members.setdefault(name, []).append(each)
        return members

    @cached_property
    def _children(self) -> dict[str, list[StoredTool]]:
        return gather_values(
            (each.tool.evolved_from, each)
            for _, each in sorted(self.by_id.items())
            if each.tool.evolved_from is not None
        )


@lru_cache(65_536)
def tool_document_id(tool: ToolKey, tool_id: str) -> str:
    """Return the id of a registered tool's document.

    Under another name the tool has another one.
    """
    return document_id(tool.workspace, "tool", tool.server_name, tool.tool_name, tool_id)


@dataclass(frozen=True, slots=True)
class ToolCandidate:
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
        """Tool as executions name it."""
        return ToolKey(self.workspace, self.tool.server_name, self.tool.name)

    def counts_version(self, version: str) -> bool:
        """Return whether trials of a version are its own; `1.2` and `1.2.0` are one version."""
        return version in self.versions or any(same_version(own, version) for own in self.versions)


def candidates_of(registry: Registry, namespace: str) -> list[ToolCandidate]:
    """Return all tools of a namespace.

    Its promoted version, its originals, then the others, each once.

    Empty for a namespace that no tool serves. The original is the tool whose id is the namespace;
    where none exists, each tool that evolved from no other registered one.
    """
    promoted = _promoted_in(registry, namespace)
    evolved = None if promoted is None else promoted[1]
    candidates = [] if evolved is None else [evolved]
    candidates += [
        plain_candidate(registry, each, "original")
        for each in _original_tools(registry, namespace)
        # The promoted version may be what is registered: the tool was put again since then.
        if evolved is None
        or each.tool.tool_id != evolved.tool.tool_id
        or not same_version(each.tool.version or NO_VERSION, evolved.tool.version or NO_VERSION)
    ]
    known = {each.tool.tool_id for each in candidates}
    candidates += [
        plain_candidate(registry, each, "semantic")
        for each in registry.in_namespace(namespace)
        if each.tool.tool_id not in known
    ]
    return candidates


def offer_tool(registry: Registry, stored: StoredTool) -> ToolCandidate:
    """Return a tool that was found by search, as it is offered.

    Its promoted version where it has one.
    """
    for namespace in filter(None, (stored.tool.tool_id, stored.tool.namespace)):
        promoted = _promoted_in(registry, namespace)
        if promoted is None:
            continue
        original, candidate = promoted
        if stored.tool.tool_id in (original.tool.tool_id, candidate.tool.tool_id):
            return candidate
    return plain_candidate(registry, stored, "semantic")


def plain_candidate(registry: Registry, stored: StoredTool, source: ToolSource) -> ToolCandidate:
    """Return a tool as it is registered, as a candidate."""
    return ToolCandidate(stored.workspace, stored.tool, source, _own_versions(registry, stored))


def original_of(registry: Registry, namespace: str) -> StoredTool | None:
    """Return the tool that a promotion in the namespace stands in for.

    None where no tool serves it.

    Of several originals it is the one of the version that the promotion names, else the first.
    """
    originals = _original_tools(registry, namespace)
    if (stored := registry.promotions.get(namespace)) is not None:
        version = stored.promotion.original_version
        for each in originals:
            if same_version(each.tool.version or NO_VERSION, version):
                return each
    if originals:
        return originals[0]
    return None


def find_cycle(tool_id: str, evolved_from: str | None, registry: Registry) -> list[str] | None:
    """Return the circle that a tool would close by evolving, such as `["a", "b", "a"]`."""
    chain = [tool_id]
    for ancestor in registry.list_ancestors(evolved_from):
        chain.append(ancestor)
        if ancestor == tool_id:
            return chain
    return None


def _original_tools(registry: Registry, namespace: str) -> Sequence[StoredTool]:
    """Return the originals of a namespace, by id; of tools that evolved in a circle all are."""
    if (named := registry.by_id.get(namespace)) is not None:
        return [named]
    members = registry.in_namespace(namespace)
    first = [
        each
        for each in members
        if each.tool.evolved_from in (None, each.tool.tool_id)
        or each.tool.evolved_from not in registry.by_id
    ]
    return first or members


def _promoted_in(registry: Registry, namespace: str) -> tuple[StoredTool, ToolCandidate] | None:
    """Return the original and the version in its place.

    None where no version is, or none can be run.
    """
    stored = registry.promotions.get(namespace)
    if stored is None:
        return None
    if namespace not in registry.promoted:
        registry.promoted[namespace] = _find_replacement(registry, stored)
    return registry.promoted[namespace]


def _find_replacement(
    registry: Registry, stored: StoredPromotion
) -> tuple[StoredTool, ToolCandidate] | None:
    original = original_of(registry, stored.namespace)
    if original is None:
        return None
    promotion: Promotion = stored.promotion
    inherited = stored.inherited_quality, promotion.promoted_at
    for each in registry.list_descendants(original.tool.tool_id):
        if same_version(each.tool.version or NO_VERSION, promotion.evolved_version):
            tool = each.tool.model_copy(update={"is_evolved": True})
            versions = _own_versions(registry, each)
            return original, ToolCandidate(each.workspace, tool, "evolved", versions, *inherited)
    if promotion.evolved_file is None and not same_version(
        original.tool.version or NO_VERSION, promotion.evolved_version
    ):
        return None
    tool = promoted_tool(original.tool, promotion)
    own = (promotion.evolved_version,)
    return original, ToolCandidate(original.workspace, tool, "evolved", own, *inherited)


def _own_versions(registry: Registry, stored: StoredTool) -> tuple[str, ...]:
    """Its own version, and calls that named none unless they may have been its ancestor's."""
    own = stored.tool.version or NO_VERSION
    ancestors = map(registry.by_id.get, registry.list_ancestors(stored.tool.evolved_from))
    shared = any(
        known is not None and known is not stored and known.tool_key == stored.tool_key
        for known in ancestors
    )
    if shared:
        return (own,)
    return tuple(dict.fromkeys((NO_VERSION, own)))


def recorded_name(tool: ToolKey) -> str:
    """Return the name of a tool that is not registered."""
    if tool.server_name is None:
        return tool.tool_name
    return f"{tool.server_name}/{tool.tool_name}"


def name_tool(tool: ToolKey, tool_id: str | None) -> ToolName:
    """Return the names of a tool, for an answer."""
    return ToolName(tool_id=tool_id, server_name=tool.server_name, tool_name=tool.tool_name)


def possible_tools(workspace: str, name: str) -> Iterator[ToolKey]:
    """Yield the tools that a name could mean as it stands.

    Both parts may hold slashes themselves.
    """
    yield ToolKey(workspace, None, name)
    for place, char in enumerate(name):
        if char == "/" and 0 < place < len(name) - 1:
            yield ToolKey(workspace, name[:place], name[place + 1 :])


def find_meant(name: str, recorded: Iterable[ToolKey]) -> list[ToolKey]:
    """Recorded tools of that name, on whatever server; several when the server must be named."""
    return [tool for tool in recorded if tool.tool_name == name]


def nearest_names(name: str, tool_ids: Iterable[str], recorded: Iterable[ToolKey]) -> list[str]:
    """Return the names that an unknown name may have meant, nearest first."""
    return names_like(name, {*tool_ids, *map(recorded_name, recorded)})


def names_like(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that are spelt like this one or hold it; case makes no difference."""
    found = process.extract(
        name,
        sorted(known),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=3,
        score_cutoff=_LEAST_NEARNESS,
    )
    return [each for each, _, _ in found]
