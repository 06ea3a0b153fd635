"""Which document of the vector index is about which registered tool.

The id holds server and name too, so that a tool which is put anew under another name gets another
document, and the old one goes.
"""

from collections.abc import Mapping
from functools import lru_cache
from weakref import WeakKeyDictionary

from mongo.records import StoredTool, ToolKey
from retrieval.documents import document_id
from retrieval.fitness.registry import Registry

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
