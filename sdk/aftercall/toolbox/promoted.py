"""Which entry of a promotions file is meant for a tool, and what it puts in its place. No I/O."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from aftercall.errors import ConfigurationError
from aftercall.executors.protocol import evolved_file_of
from aftercall.models import Promotion, Tool
from aftercall.promoted import promoted_tool
from aftercall.versions import same_version

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def entry_for(tool: Tool, promotions: Mapping[str, Promotion]) -> Promotion | None:
    """The entry that stands in for a tool: under its id, else under its namespace.

    Of the tools in a namespace it is one that evolved from no other, and has the original version
    that the entry names.
    """
    if tool.tool_id in promotions:
        return promotions[tool.tool_id]
    entry = promotions.get(tool.namespace or "")
    if entry is None or tool.evolved_from is not None:
        return None
    is_meant = tool.version is None or same_version(tool.version, entry.original_version)
    return entry if is_meant else None


def in_place_of(original: Tool, entry: Promotion, known: Iterable[Tool] = ()) -> Tool:
    """The version that an entry puts in the place of a tool.

    For an entry without a file it is the tool among `known` that evolved from the original.

    Raises:
        ConfigurationError: the entry has no file, and no such tool is known.
    """
    if entry.evolved_file is not None:
        return promoted_tool(original, entry)
    for tool in known:
        is_newer = tool.evolved_from == original.tool_id
        if is_newer and same_version(tool.version or "", entry.evolved_version):
            return tool.model_copy(update={"is_evolved": True})
    raise ConfigurationError(
        f"{original.tool_id!r} is promoted to {entry.evolved_version} without a file, and no tool "
        "of that version is known here; register it with evolvedFrom, or name a file"
    )


def original_id(tool: Tool) -> str:
    """The id of the tool that a promoted version stands in for; an original's own."""
    is_registered = tool.is_evolved and evolved_file_of(tool) is None
    return (tool.evolved_from if is_registered else None) or tool.tool_id


def bare_tool(tool_id: str, version: str) -> Tool:
    """A tool of which nothing is known but what a promotions file says."""
    return Tool(tool_id=tool_id, name=tool_id, version=version, updated_at=_NEVER)
