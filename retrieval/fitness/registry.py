"""Registry: all tools and promotions of a workspace at one moment, found by any of their names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from rapidfuzz import fuzz, process, utils

from aftercall.models import Namespace
from mongo.records import StoredPromotion, StoredTool

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
