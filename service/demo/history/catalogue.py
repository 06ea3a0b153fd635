"""All simulated tools, and which of them answers on a day."""

from functools import cached_property

from service.demo.history.servers import (
    calendar,
    commerce,
    files,
    library,
    metrics,
    tickets,
    web,
    words,
)
from service.demo.history.tools import SimTool

PHASES = 30
"""Days in which the tools' stories are told; a shorter or longer history stretches them."""

TOOLS: tuple[SimTool, ...] = (
    *web.TOOLS,
    *library.TOOLS,
    *words.TOOLS,
    *calendar.TOOLS,
    *tickets.TOOLS,
    *commerce.TOOLS,
    *metrics.TOOLS,
    *files.TOOLS,
)


class Catalogue:
    """The tools by server, name and day.

    Args:
        tools: all versions of all tools.
    """

    def __init__(self, tools: tuple[SimTool, ...] = TOOLS) -> None:
        self._tools = tools

    @cached_property
    def servers(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(dict.fromkeys(tool.server for tool in self._tools))

    def on(self, day: int) -> list[SimTool]:
        """The tools that answer on a day of the story, 0 to 29."""
        return [
            tool
            for tool in self._tools
            if tool.since <= day and (tool.until is None or day < tool.until)
        ]

    def answering(self, place: str, day: int) -> SimTool:
        """The version that answers on a day as `server.name`.

        Raises:
            KeyError: there is none.
        """
        for tool in self.on(day):
            if f"{tool.server}.{tool.name}" == place:
                return tool
        raise KeyError(place)

    def by_id(self, tool_id: str) -> SimTool:
        """The tool that is registered under an id.

        Raises:
            KeyError: there is none.
        """
        for tool in self._tools:
            if tool.tool_id == tool_id:
                return tool
        raise KeyError(tool_id)

    def new_between(self, after: int, day: int) -> list[SimTool]:
        """The versions that came after a day, up to another; -1 for before the first."""
        return [tool for tool in self._tools if after < tool.since <= day]
