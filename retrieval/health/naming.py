"""Naming: which tool somebody means. Pure.

Registering a tool is optional, so a tool is found by its registered id, and by the name under which
its calls are recorded: `toolName` or `serverName/toolName`.
"""

from collections.abc import Iterable, Iterator, Sequence

from rapidfuzz import fuzz, process, utils

from aftercall.models import ToolName
from mongo.records import ToolKey

MAX_KNOWN = 5_000
"""Tools of a workspace that a name is looked for among; the latest used."""

_LEAST_NEARNESS = 60.0
"""Of 100: below it two names have little in common but their length (as for registered ids)."""


def recorded_name(tool: ToolKey) -> str:
    """The name of a tool that is not registered."""
    return tool.tool_name if tool.server_name is None else f"{tool.server_name}/{tool.tool_name}"


def named(tool: ToolKey, tool_id: str | None) -> ToolName:
    """A tool as it is told."""
    return ToolName(tool_id=tool_id, server_name=tool.server_name, tool_name=tool.tool_name)


def possible_tools(workspace: str, name: str) -> Iterator[ToolKey]:
    """The tools that a name could mean as it stands: both parts may hold slashes themselves."""
    yield ToolKey(workspace, None, name)
    for place, char in enumerate(name):
        if char == "/" and 0 < place < len(name) - 1:
            yield ToolKey(workspace, name[:place], name[place + 1 :])


def meant(name: str, recorded: Iterable[ToolKey]) -> list[ToolKey]:
    """Recorded tools of that name, on whatever server; several when the server must be named."""
    return [tool for tool in recorded if tool.tool_name == name]


def nearest_names(
    name: str, tool_ids: Iterable[str], recorded: Iterable[ToolKey], limit: int = 3
) -> Sequence[str]:
    """Names that somebody may have meant by one that is none, nearest first."""
    known = sorted({*tool_ids, *(recorded_name(tool) for tool in recorded)})
    found = process.extract(
        name,
        known,
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit,
        score_cutoff=_LEAST_NEARNESS,
    )
    return [each for each, _, _ in found]
