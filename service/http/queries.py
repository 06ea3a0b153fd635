"""Query strings, as models: unknown parameters are refused by name, as unknown fields are."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from aftercall.models import RankingMode, UsageWindow, WireModel
from aftercall.models.tools import Scenario


class _Best(WireModel):
    scenario: Scenario = Field(description="What is to be done, in words.")
    use_rag: bool = Field(
        default=True,
        description="Look for semantic matches and past failures too; else the promoted version "
        "and the original are compared by base and quality.",
    )
    mode: RankingMode = Field(default="fitness", description="How candidates are ranked.")
    limit: int = Field(default=10, ge=1, le=50, description="Candidates shown at most.")


class _Failures(WireModel):
    scenario: Scenario | None = Field(
        default=None, description="Failures in scenarios like this one come first."
    )
    limit: int = Field(default=20, ge=1, le=100)


class _History(WireModel):
    limit: int = Field(default=50, ge=1, le=500)


class _Tool(WireModel):
    use_evolved: bool = Field(
        default=False, description="The promoted version, where there is one, in its place."
    )


class _Window(WireModel):
    window: UsageWindow = Field(default="24h", description="Up to now.")


class _List(_Window):
    limit: int = Field(
        default=100, ge=1, le=500, description="Entries of each list in the answer, at most."
    )


class _Nothing(WireModel):
    pass


BestQuery = Annotated[_Best, Query()]
FailuresQuery = Annotated[_Failures, Query()]
HistoryQuery = Annotated[_History, Query()]
ToolQuery = Annotated[_Tool, Query()]
WindowQuery = Annotated[_Window, Query()]
ListQuery = Annotated[_List, Query()]
NoQuery = Annotated[_Nothing, Query()]
"""Of routes that take no parameters, so that what is meant for another route is not passed over."""
