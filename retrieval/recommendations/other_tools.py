"""Which registered tools do one of the jobs already that a tool is asked to do."""

import re
from collections.abc import Iterable

from mongo.records import StoredTool, ToolKey
from retrieval.fitness.registry import Registry
from retrieval.recommendations.words import MAX_OTHER_TOOLS

_NAMES_INSIDE = re.compile(r"[\w./-]+")
_IS_WRITTEN_AS_A_NAME = re.compile(r"\w[_./-]\w|\d")
"""`http_client` inside a sentence is a name. `search` is a word: by itself only it means a tool."""


class ToolNames:
    """The registered tools of a workspace by their ids and names.

    Args:
        registry: all registered tools.
    """

    def __init__(self, registry: Registry) -> None:
        self._by_key: dict[ToolKey, StoredTool] = {}
        self._by_name: dict[str, list[StoredTool]] = {}
        for each in sorted(registry.by_id.values(), key=lambda each: each.tool.tool_id):
            held = self._by_key.get(each.tool_key)
            if held is None or each.tool.updated_at > held.tool.updated_at:
                self._by_key[each.tool_key] = each  # as the store finds it: the latest put
            for name in {each.tool.tool_id.casefold(), each.tool.name.casefold()}:
                self._by_name.setdefault(name, []).append(each)

    def registered(self, tool: ToolKey) -> StoredTool | None:
        """The tool that executions name so."""
        return self._by_key.get(tool)

    def named_in(self, parts: Iterable[str], *, besides: ToolKey) -> list[str]:
        """The ids of tools that the parts of a split name, in their order; a few.

        A part names a tool when it is its id or its name, case aside, or holds one that is written
        as a name.

        Args:
            parts: in the tool's own words.
            besides: the tool that is to be split.
        """
        found: dict[str, None] = {}
        for part in parts:
            for name in (part.strip(), *_names_inside(part)):
                for each in self._by_name.get(name.casefold(), ()):
                    if each.tool_key != besides:
                        found.setdefault(each.tool.tool_id, None)
            if len(found) >= MAX_OTHER_TOOLS:
                break
        return list(found)[:MAX_OTHER_TOOLS]


def _names_inside(part: str) -> list[str]:
    words = (each.strip("./-") for each in _NAMES_INSIDE.findall(part))
    return [each for each in words if _IS_WRITTEN_AS_A_NAME.search(each)]
