"""Tool profiles: what parameters calls had, in successes and in failures; bounded and mergeable."""

from retrieval.profile.merging import merge
from retrieval.profile.parameter import (
    COMMON_SESSIONS,
    MAX_VALUES,
    Boundary,
    CommonValue,
    ParameterProfile,
    ValueCount,
)
from retrieval.profile.shape import Shape
from retrieval.profile.tool import MAX_FAILED_CALLS, MAX_PARAMETERS, ToolProfile

__all__ = [
    "COMMON_SESSIONS",
    "MAX_FAILED_CALLS",
    "MAX_PARAMETERS",
    "MAX_VALUES",
    "Boundary",
    "CommonValue",
    "ParameterProfile",
    "Shape",
    "ToolProfile",
    "ValueCount",
    "merge",
]
