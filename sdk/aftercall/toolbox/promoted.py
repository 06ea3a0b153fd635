"""The promoted version of a tool, as a promotions file has it. No I/O."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from aftercall.errors import ConfigurationError
from aftercall.versions import same_version
from aftercall.wire import Promotion, Tool

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


def promoted_tool(original: Tool, promotion: Promotion, known: Iterable[Tool] = ()) -> Tool:
    """The version that a promotion puts in the place of a tool.

    It is the original with the new version and `evolved_file` in its implementation (seed 002); for
    a promotion without a file the tool among `known` that evolved from the original.

    Raises:
        ConfigurationError: the promotion has no file, and no such tool is known.
    """
    if promotion.evolved_file is None:
        for tool in known:
            is_newer = tool.evolved_from == original.tool_id
            if is_newer and same_version(tool.version or "", promotion.evolved_version):
                return tool.model_copy(update={"is_evolved": True})
        raise ConfigurationError(
            f"{original.tool_id!r} is promoted to {promotion.evolved_version} without a file, and "
            "no tool of that version is known here; register it with evolvedFrom, or name a file"
        )
    implementation = original.implementation if isinstance(original.implementation, dict) else {}
    return original.model_copy(
        update={
            "version": promotion.evolved_version,
            "is_evolved": True,
            "implementation": {**implementation, "evolved_file": promotion.evolved_file},
        }
    )


def bare_tool(tool_id: str, version: str) -> Tool:
    """A tool of which nothing is known but what a promotions file says."""
    return Tool(tool_id=tool_id, name=tool_id, version=version, updated_at=_NEVER)
