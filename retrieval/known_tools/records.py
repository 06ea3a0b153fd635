"""Records: what the stores have of one tool, gathered before anything is told of it."""

from dataclasses import dataclass

from aftercall.models import Tool
from mongo.records import ToolKey
from retrieval.fitness.statistics import ToolStatistics
from retrieval.health.record import KnownHealth
from retrieval.knowledge import ToolKnowledge
from retrieval.parameters import ToolView, view_of_schema
from retrieval.profile import ToolProfile


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool: as it is registered, if it is, and what was learned of its calls, if anything."""

    key: ToolKey
    tool: Tool | None = None
    knowledge: ToolKnowledge | None = None
    health: KnownHealth | None = None
    statistics: ToolStatistics | None = None

    @property
    def profile(self) -> ToolProfile | None:
        """The profile of the live schema; without a schema that of the newest calls."""
        if self.knowledge is None:
            return None
        if self.tool is not None and self.tool.schema_hash is not None:
            return self.knowledge.profile(self.tool.schema_hash)
        return next(reversed(self.knowledge.profiles.values()), None)

    def schema_view(self) -> ToolView | None:
        """The parameters by the live schema; None where there is none, or it says nothing."""
        if self.tool is None or self.tool.input_schema is None:
            return None
        view = view_of_schema(self.tool.input_schema)
        states_none = view.closed or self.tool.input_schema.get("properties") == {}
        return view if view.parameters or states_none else None
